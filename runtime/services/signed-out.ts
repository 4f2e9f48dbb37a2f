/** Sessions that were logged out before their time: a list on disk, as short as their lives. */
import { readFileSync, statSync } from 'node:fs'
import { destr } from 'destr'
import { renderError } from '../core/fault.ts'
import { replaceFile } from './atomic-file.ts'

export interface SignedOut {
  has(id: string): boolean
  /** Counts at once; on disk when it resolves. `until`: when the session would end by itself. */
  add(id: string, until: Date): Promise<void>
}

export interface SignedOutParts {
  /** `<state_dir>/signed-out.json`. */
  readonly path: string
  now(): Date
  readonly log: { warn(message: string): void }
}

/** Far more than log out in a week; past it the oldest go first. */
const MOST = 10_000

/**
 * Server and cache share the key of sessions, and so this file: each takes up what the other wrote,
 * at the next question. A look at the file's times is microseconds; the signature costs more.
 */
export function createSignedOut({ path, now, log }: SignedOutParts): SignedOut {
  const ends = new Map<string, number>()
  let seen: string | null = null
  let writing: Promise<void> = Promise.resolve()

  function takeUp() {
    const present = identify(path)
    if (present === seen) return
    seen = present
    for (const [id, end] of read(path)) ends.set(id, end)
  }

  async function write() {
    takeUp()
    const at = now().getTime()
    for (const [id, end] of ends) if (end <= at || ends.size > MOST) ends.delete(id)
    await replaceFile(path, `${JSON.stringify(Object.fromEntries(ends))}\n`, 0o600)
  }

  return {
    has(id) {
      takeUp()
      return ends.has(id)
    },
    async add(id, until) {
      ends.set(id, until.getTime())
      // Who logs out is logged out, whatever becomes of the file.
      writing = writing.then(write).catch((thrown: unknown) => {
        log.warn(`a logged-out session is forgotten at the next start: ${renderError(thrown)}`)
      })
      await writing
    },
  }
}

function identify(path: string): string | null {
  const found = statSync(path, { throwIfNoEntry: false })
  return found === undefined ? null : `${found.ino}:${found.mtimeMs}:${found.size}`
}

/** Anything else than such a list is none. */
function read(path: string): readonly (readonly [string, number])[] {
  try {
    const found = destr<unknown>(readFileSync(path, 'utf8'))
    return Object.entries(Object(found))
      .filter((entry): entry is [string, number] => typeof entry[1] === 'number')
      .slice(-MOST)
  } catch {
    return [] // It went away meanwhile, or cannot be read: then it says nothing.
  }
}
