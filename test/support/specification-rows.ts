/** Rows of the specifications beside the tests that fail when they are broken. */

/** A row is found in its section by a few of its own words: neither specification is part of this repository. */
export type SpecificationRow = { readonly section: string; readonly row: string } & (
  | {
      /** Its file, below `test/`. */
      readonly test: string
      /** Its title as the source has it; of one that is made in a loop, what stands before the first `${`. */
      readonly title: string
    }
  /** The product leaves the row on purpose: the page that says why. */
  | { readonly decision: string }
)

/** Each entry: rows with ` | ` between them, the test file, the title of the test. */
export const rowsOf = (
  section: string,
  entries: readonly (readonly [rows: string, test: string, title: string])[],
): readonly SpecificationRow[] =>
  entries.flatMap(([rows, test, title]) =>
    rows.split(' | ').map((row) => ({ section, row, test, title })),
  )

/** Rows that the product leaves by a decision, such as `docs/decisions/0001-ends-last.md`. */
export const decided = (
  section: string,
  entries: readonly (readonly [rows: string, decision: string])[],
): readonly SpecificationRow[] =>
  entries.flatMap(([rows, decision]) =>
    rows.split(' | ').map((row) => ({ section, row, decision })),
  )
