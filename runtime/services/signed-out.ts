/** Sessions that were logged out before their time: a list on disk, as short as their lives. */
import { readFile } from 'node:fs/promises'
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

export async function createSignedOut({ path, now, log }: SignedOutParts): Promise<SignedOut> {
  const ends = new Map(parse(await readFile(path, 'utf8').catch(() => '')))
  let writing: Promise<void> = Promise.resolve()

  function prune() {
    const at = now().getTime()
    for (const [id, end] of ends) if (end <= at || ends.size > MOST) ends.delete(id)
  }

  async function write() {
    prune()
    await replaceFile(path, `${JSON.stringify(Object.fromEntries(ends))}\n`, 0o600)
  }

  return {
    has: (id) => ends.has(id),
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

/** Anything else than such a list is none. */
function parse(text: string): readonly (readonly [string, number])[] {
  const found = destr<unknown>(text)
  if (typeof found !== 'object' || found === null) return []
  return Object.entries(found)
    .filter((entry): entry is [string, number] => typeof entry[1] === 'number')
    .slice(-MOST)
}
