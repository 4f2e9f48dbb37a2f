/** Sessions that were logged out of a cache before they expired: a list on disk, pruned when it grows long. */
import { readFileSync, statSync } from 'node:fs'
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { replaceFile } from '#kit/host/atomic-file.ts'
import { inTurnOf } from '#kit/host/queue.ts'
import { identify } from './secret.ts'
import type { SessionClaims } from './session.ts'

interface SignedOutOptions {
  /** `<state_dir>/signed-out.json`. */
  readonly path: string
  now(): Date
}

/** So many stay whatever the clock says: it may be wrong, and a session must not come back. */
const KEPT = 1000
/** Begins the entry of all sessions that were issued up to a second: the list of that moment was damaged. */
const LOST = '!:'

/**
 * Follows the list. A server and a cache with one state directory share it: the server, which keeps the
 * ends of its sessions itself, takes up what the cache wrote, at the next question. A look at the file's
 * times is microseconds; the signature costs more.
 */
export function createSignedOut({ path, now }: SignedOutOptions) {
  /** When each would end by itself, in seconds of the epoch. */
  const ends = new Map<string, number>()
  /** Whatever was issued up to this second has ended. */
  let last = -Infinity
  let seen: string | null = null

  function takeUp() {
    const present = identify(path)
    if (present === seen) return
    seen = present
    for (const [id, end] of present === null ? [] : read(path)) {
      ends.set(id, end)
      if (id.startsWith(LOST)) last = Math.max(last, end)
    }
  }

  async function write() {
    takeUp()
    const at = now().getTime() / 1000
    for (const [id, end] of ends) if (ends.size > KEPT && end <= at) ends.delete(id)
    await replaceFile(path, `${JSON.stringify(Object.fromEntries(ends))}\n`, 0o600)
  }

  return {
    has({ sid, iat }: Pick<SessionClaims, 'sid' | 'iat'>): boolean {
      takeUp()
      return ends.has(sid) || iat <= last
    },
    /** Counts at once; on disk when it resolves. `until`: when the session would end by itself. */
    async add(id: string, until: number): Promise<void> {
      ends.set(id, until)
      await inTurnOf(path, write)
    },
  }
}

/** Of a damaged list nobody knows which sessions were in it: all have ended that are as old. */
function read(path: string): readonly (readonly [string, number])[] {
  const second = Math.floor((statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) / 1000)
  const lost = [[`${LOST}${second}`, second]] as const
  try {
    const found = z.record(z.string(), z.number()).safeParse(parseJson(readFileSync(path, 'utf8')))
    return found.success ? Object.entries(found.data) : lost
  } catch {
    return lost
  }
}
