/** "Did you mean": the known word closest to one that is unknown. */

/** Longer words are no slip of the finger; the limit also bounds the work. */
const MAX_LENGTH = 40

/** Null when no word is close enough. */
export function suggest(given: string, known: readonly string[]): string | null {
  if (given === '' || given.length > MAX_LENGTH) return null
  const word = given.toLowerCase()
  const limit = Math.max(1, Math.floor(word.length / 3))
  const [best] = known
    .map((name) => ({ name, cost: name.startsWith(word) ? 0.5 : countEdits(word, name) }))
    .filter(({ cost }) => cost <= limit)
    .toSorted((one, other) => one.cost - other.cost)
  return best?.name ?? null
}

/** Letters that have to be added, dropped or changed (Levenshtein). */
function countEdits(one: string, other: string): number {
  let before = Array.from({ length: other.length + 1 }, (_, column) => column)
  for (const [row, letter] of [...one].entries()) {
    const now = [row + 1]
    for (const [column, counterpart] of [...other].entries()) {
      const change = (before[column] ?? 0) + Number(letter !== counterpart)
      const shift = Math.min(before[column + 1] ?? 0, now[column] ?? 0) + 1
      now.push(Math.min(change, shift))
    }
    before = now
  }
  return before[other.length] ?? 0
}
