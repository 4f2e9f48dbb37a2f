/** The count of changes to machines, in the database and beside it: it tells that a database is an older copy. */
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
