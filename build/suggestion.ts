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

/** Letters added, dropped, changed, or swapped with their neighbour. */
function countEdits(one: string, other: string): number {
  const costs: number[][] = [Array.from({ length: other.length + 1 }, (_, column) => column)]
  const costAt = (row: number, column: number) => costs[row]?.[column] ?? Infinity
  for (let row = 1; row <= one.length; row += 1) {
    const line = [row]
    costs.push(line)
    for (let column = 1; column <= other.length; column += 1) {
      const change = Number(one[row - 1] !== other[column - 1])
      const isSwap = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
      line.push(
        Math.min(
          costAt(row - 1, column - 1) + change,
          costAt(row - 1, column) + 1,
          costAt(row, column - 1) + 1,
          isSwap ? costAt(row - 2, column - 2) + 1 : Infinity,
        ),
      )
    }
  }
  return costAt(one.length, other.length)
}
