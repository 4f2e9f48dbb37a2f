/** The count of changes to machines, in the database and beside it: it tells that a database is an older copy. */
import { z } from 'zod'
import { parseJson } from '../../../kit/foundation/json-reader.ts'

const CountSchema = z.object({
  /** The id of the state directory: counts of two servers say nothing of each other. */
  id: z.string().min(1).max(64),
  count: z.int().min(0),
})
export type ChangeCount = Readonly<z.infer<typeof CountSchema>>

/** Why the orders in a database may have been carried out since. */
export type StateDoubt = 'missing' | 'foreign' | 'older'

/** The text of the file beside the database; null: it cannot be read. */
export const parseChangeCount = (text: string): ChangeCount | null =>
  CountSchema.safeParse(parseJson(text)).data ?? null

export const renderChangeCount = (count: ChangeCount): string => `${JSON.stringify(count)}\n`

/**
 * Null: the database is as new as what is known of it. It may be ahead of the file, which follows it
 * a moment later. `inside` null: a database that was begun now, or by a release that did not count; a
 * file that says 0 was left by a first start that was cut off.
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

/** The count from which a database goes on that was put in the place of another one. */
export const followCounts = (
  inside: ChangeCount | null,
  beside: ChangeCount | null,
  makeId: () => string,
): ChangeCount => ({
  id: beside?.id ?? makeId(),
  count: Math.max(inside?.count ?? 0, beside?.count ?? 0) + 1,
})
