/** Notes that count for a while, in memory: what another cache said, what did not work. */

const MAX_NOTES = 1000

/**
 * Creates a list of notes, each of which counts for `lastsMs` milliseconds of `elapsed`; the oldest
 * go where there are too many.
 */
export function createNotes<Value>(elapsed: () => number, lastsMs: number) {
  const notes = new Map<string, { readonly at: number; readonly value: Value }>()
  return {
    find(key: string): Value | undefined {
      const note = notes.get(key)
      return note === undefined || elapsed() - note.at > lastsMs ? undefined : note.value
    },
    note(key: string, value: Value) {
      notes.delete(key)
      notes.set(key, { at: elapsed(), value })
      const [oldest] = notes.keys()
      if (notes.size > MAX_NOTES && oldest !== undefined) notes.delete(oldest)
    },
    forget: (key: string) => notes.delete(key),
  }
}
