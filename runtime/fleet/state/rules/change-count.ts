/** What tells that a database is an older copy: the count of changes, inside and beside it; and the names of archives. */
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'

const CountSchema = z.object({
  /** Of the state directory: counts of two servers are not comparable. */
  id: z.string().min(1).max(64),
  count: z.int().min(0),
})
export type ChangeCount = Readonly<z.infer<typeof CountSchema>>

export type StateDoubt = 'missing' | 'foreign' | 'older'

export const parseChangeCount = (text: string): ChangeCount | null =>
  CountSchema.safeParse(parseJson(text)).data ?? null

export const renderChangeCount = (count: ChangeCount): string => `${JSON.stringify(count)}\n`

/**
 * Null: as new as known. It may be ahead of the file, which follows a moment later. `inside` null:
 * new, or of a release that did not count; a file that says 0 is from a first start that was cut
 * off.
 */
export function decideStateDoubt(
  inside: ChangeCount | null,
  beside: ChangeCount | null,
): StateDoubt | null {
  if (inside === null) return beside === null || beside.count === 0 ? null : 'older'
  if (beside === null) return 'missing'
  if (inside.id !== beside.id) return 'foreign'
  return inside.count < beside.count ? 'older' : null
}

export const followCounts = (
  inside: ChangeCount | null,
  beside: ChangeCount | null,
  makeId: () => string,
): ChangeCount => ({
  id: beside?.id ?? makeId(),
  count: Math.max(inside?.count ?? 0, beside?.count ?? 0) + 1,
})

/** Decides from when on the times of a table can be trusted: a clock that was set makes nothing old. */
interface TimedRow {
  /** Grows with each row; `at`: milliseconds. */
  readonly number: number
  readonly at: number
}

const DAY_MS = 86_400_000
/** No server is silent this long; one that was keeps more than needed, up to its number of rows. */
const LEAST_JUMP_MS = 180 * DAY_MS

/**
 * The last row's number before the newest jump of the clock, which hides the age of that row and
 * earlier ones; 0: none. `rows` by number, `now` in milliseconds.
 */
export function findLastJump(rows: readonly TimedRow[], days: number, now: number): number {
  const jump = Math.max(LEAST_JUMP_MS, days * DAY_MS)
  const times = [...rows.slice(1).map(({ at }) => at), now]
  const index = rows.findLastIndex(({ at }, n) => (times[n] ?? now) - at > jump)
  return rows[index]?.number ?? 0
}

/** Where a `state.db` stands that follows a database which several servers share. */
export interface ClusterMembership {
  /** Random, from when the tables were made. */
  readonly cluster: string
  /** The file's newest change: number and id. */
  readonly seq: number
  readonly change: string
}

const renderStamp = (iso: string) => `${iso.slice(0, 19).replace(/[-:]/g, '')}Z`

/** `state.db.<from>.<UTC>.bak`; `attempt` above 0 if that is taken. */
export function renderArchiveName(file: string, from: string, iso: string, attempt = 0): string {
  const safe = from.replace(/[^A-Za-z0-9._+-]/g, '_').slice(0, 64) || 'unknown'
  return `${file}.${safe}.${renderStamp(iso)}.${attempt === 0 ? '' : `${attempt}.`}bak`
}

const TAIL = /\.(\d{8}T\d{6}Z)\.(?:(\d+)\.)?bak$/

interface Kept {
  readonly keep: number
  /** Just made: it stays, whatever the clock says. */
  readonly made: string | null
  /** ISO time. A later archive is of a wrong clock, and counts as the oldest. */
  readonly now: string
}

export function planArchivePruning(
  names: readonly string[],
  file: string,
  { keep, made, now }: Kept,
): readonly string[] {
  const present = renderStamp(now)
  const keyOf = (name: string, stamp: string, attempt: string) => {
    const rank = name === made ? '2' : stamp > present ? '0' : '1'
    return `${rank}.${stamp}.${attempt.padStart(6, '0')}`
  }
  const archives = names.flatMap((name) => {
    const tail = name.startsWith(`${file}.`) ? TAIL.exec(name) : null
    return tail === null ? [] : [{ name, at: keyOf(name, tail[1] ?? '', tail[2] ?? '0') }]
  })
  const newestFirst = archives.toSorted((a, b) => (a.at < b.at ? 1 : -1))
  return newestFirst.slice(Math.max(0, keep)).map(({ name }) => name)
}
