/** Filters and sorts a long list by a query, fast enough for 10,000 rows at each change. */
import {
  asksForAge,
  foldRow,
  matchesQuery,
  parseQuery,
  type Query,
  type Searchable,
  type Vocabulary,
} from './query.ts'

export interface Description extends Searchable {
  readonly order: Readonly<Record<string, SortKey>>
}

interface SelectionQuery {
  readonly text: string
  /** A column's name, `-` before it reverses; an unknown one sorts nothing. */
  readonly sort: string | null
}

interface SelectorOptions<Row, Context extends object> {
  readonly vocabulary: Vocabulary
  /** Called once for a row and a context: rows are replaced, never changed. */
  readonly describe: (row: Row, context: Context) => Description
}

/** `context`: what descriptions depend on beside the row; `now` in milliseconds. */
type Select<Row, Context> = (
  rows: readonly Row[],
  query: SelectionQuery,
  on: { readonly context: Context; readonly now: number },
) => readonly Row[]

/** Pages that show the same thing share an answer. */
const MAX_KEPT = 32
/** How long "less than an hour ago" may lag. */
const AGE_STEP_MS = 5000

/**
 * Remembers its work: a changed row costs its description alone. Of 10,000 rows on one core: 150 ms
 * to describe all once, then 2 ms a filter, 10 ms a sort.
 */
export function createSelector<Row extends object, Context extends object>({
  vocabulary,
  describe,
}: SelectorOptions<Row, Context>): Select<Row, Context> {
  let descriptions = new WeakMap<Row, Description>()
  let under: Context | null = null
  /** One for each list in use: the whole one, and those of people with a scope. */
  let lists = new WeakMap<readonly Row[], KeptWork<Row>>()

  const describeOnce = (row: Row, context: Context): Description =>
    descriptions.getOrInsertComputed(row, () => foldRow(describe(row, context)))

  function answer(
    rows: readonly Row[],
    work: KeptWork<Row>,
    query: Query,
    sort: string | null,
    on: { readonly context: Context; readonly now: number },
  ): readonly Row[] {
    if (query.length === 0 && sort === null) return rows
    const described = (work.described ??= rows.map((row) => ({
      row,
      is: describeOnce(row, on.context),
    })))
    const found =
      query.length === 0 ? described : described.filter(({ is }) => matchesQuery(query, is, on.now))
    const sorted =
      sort === null ? found : sortRows(found, sort, ({ is }, column) => is.order[column] ?? null)
    return sorted.map(({ row }) => row)
  }

  return (rows, { text, sort }, { context, now }) => {
    if (context !== under) {
      descriptions = new WeakMap()
      lists = new WeakMap()
    }
    under = context
    const work = lists.getOrInsertComputed(rows, () => ({ described: null, kept: new Map() }))
    const { kept } = work
    const query = parseQuery(text, vocabulary)
    const age = asksForAge(query) ? Math.floor(now / AGE_STEP_MS) : 0
    const key = JSON.stringify([text, sort, age])
    const before = kept.get(key)
    if (before !== undefined) return before
    const found = answer(rows, work, query, sort, { context, now })
    if (kept.size >= MAX_KEPT) kept.clear()
    kept.set(key, found)
    return found
  }
}

interface KeptWork<Row> {
  described: readonly Described<Row>[] | null
  readonly kept: Map<string, readonly Row[]>
}

interface Described<Row> {
  readonly row: Row
  readonly is: Description
}

/** Null comes last either way. */
export type SortKey = string | number | null

/** Stable. `sort` is as in `SelectionQuery`. */
export function sortRows<Row>(
  rows: readonly Row[],
  sort: string,
  keyOf: (row: Row, column: string) => SortKey,
): readonly Row[] {
  const isDown = sort.startsWith('-')
  const column = isDown ? sort.slice(1) : sort
  return rows.toSorted((a, b) => compare(keyOf(a, column), keyOf(b, column), isDown))
}

function compare(a: SortKey, b: SortKey, isDown: boolean): number {
  if (a === b) return 0
  if (a === null) return 1
  if (b === null) return -1
  return (a < b ? -1 : 1) * (isDown ? -1 : 1)
}
