/** What differs between two descriptions of a machine, field by field, for the events of its changes. */

type Details = Readonly<Record<string, unknown>>

interface Change {
  readonly before: unknown
  readonly after: unknown
}

/** By the fields of `after`; lists are compared by what they hold. */
export const listChanges = (before: Details, after: Details): Readonly<Record<string, Change>> =>
  Object.fromEntries(
    Object.entries(after)
      .filter(([field, value]) => JSON.stringify(value) !== JSON.stringify(before[field]))
      .map(([field, value]) => [field, { before: before[field] ?? null, after: value }]),
  )
