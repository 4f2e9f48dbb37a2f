/** Sessions that were logged out before they expired: a list on disk, pruned when it grows long. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { z } from 'zod'
import { renderError } from '../../foundation/fault.ts'
import { parseJson } from '../../foundation/json-reader.ts'
import { isMissing } from '../../foundation/system-error.ts'
import { replaceFile } from '../../host/atomic-file.ts'
import { identify } from './secret.ts'

export type SignedOut = ReturnType<typeof createSignedOut>

interface SignedOutDependencies {
  /** `<state_dir>/signed-out.json`. */
  readonly path: string
  now(): Date
  readonly log: { warn(message: string): void }
  /** This is called with the words of the log each time that the file is found damaged. */
  onDamage?(message: string): void
}

/** Nobody has as many sessions that log out in a week; past this number the oldest go first. */
const MAX = 10_000
/** So many stay whatever the clock says: it may be wrong, and a session must not come back. */
const KEPT = 1000
/** Begins the entry of all sessions that were issued up to a time, in seconds. */
const ALL = '*:'

/**
 * Server and cache share the key of sessions, and so this file: each takes up what the other wrote,
 * at the next question. A look at the file's times is microseconds; the signature costs more.
 */
export function createSignedOut({ path, now, log, onDamage }: SignedOutDependencies) {
  const ends = new Map<string, number>()
  /** Whatever was issued up to this second has ended. */
  let last = -Infinity
  let seen: string | null = null
  let writing: Promise<void> = Promise.resolve()

  function takeUp() {
    const present = identify(path)
    if (present === seen) return
    seen = present
    const found = present === null ? [] : read(path)
    if (found === null) report()
    for (const [id, end] of found ?? []) {
      ends.set(id, end)
      if (id.startsWith(ALL)) last = Math.max(last, Number(id.slice(ALL.length)) || 0)
    }
  }

  function report() {
    const message = `${basename(path)} is damaged: sessions that were logged out before may count again until they expire. A new password (flasher-web password) ends all sessions.`
    log.warn(message)
    onDamage?.(message)
  }

  async function write() {
    takeUp()
    const at = now().getTime()
    for (const [id, end] of ends) {
      if (id.startsWith(ALL)) continue
      if (ends.size > MAX || (ends.size > KEPT && end <= at)) ends.delete(id)
    }
    await replaceFile(path, `${JSON.stringify(Object.fromEntries(ends))}\n`, 0o600)
  }

  /** Counts at once; on disk when it resolves. `until`: when the session would end by itself. */
  async function add(id: string, until: Date): Promise<void> {
    ends.set(id, until.getTime())
    // Who logs out is logged out, whatever becomes of the file.
    writing = writing.then(write).catch((thrown: unknown) => {
      log.warn(`a logged-out session is forgotten at the next start: ${renderError(thrown)}`)
    })
    await writing
  }

  takeUp()
  return {
    has(id: string): boolean {
      takeUp()
      return ends.has(id)
    },
    /** Seconds of the epoch: every session that was issued up to then has ended. -Infinity: none has. */
    endedUpTo(): number {
      takeUp()
      return last
    },
    /** How often all sessions were ended: one that began before the last time has ended. */
    countEndings(): number {
      takeUp()
      return [...ends.keys()].filter((id) => id.startsWith(ALL)).length
    },
    add,
    /** All that were issued up to that second, in seconds of the epoch. */
    addAll(issuedUpTo: number, until: Date): Promise<void> {
      last = Math.max(last, issuedUpTo)
      return add(`${ALL}${issuedUpTo}`, until)
    },
  }
}

/** Null: it is no such list, or cannot be read. */
function read(path: string): readonly (readonly [string, number])[] | null {
  try {
    const found = z.record(z.string(), z.number()).safeParse(parseJson(readFileSync(path, 'utf8')))
    return found.success ? Object.entries(found.data).slice(-MAX) : null
  } catch (thrown) {
    return isMissing(thrown) ? [] : null
  }
}
