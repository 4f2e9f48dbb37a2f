/** "Did you mean": finds the known word closest to an unknown one. */

/** Words that are longer are not typing mistakes; the limit also bounds the work. */
const MAX_LENGTH = 40

/** Finds the closest of the known words; null when none is close enough to be meant. */
export function nearestOf(given: string, known: readonly string[]): string | null {
  if (given.length === 0 || given.length > MAX_LENGTH) return null
  const word = given.toLowerCase()
  const limit = Math.max(1, Math.floor(word.length / 3))
  const [best] = known
    .map((name) => ({ name, away: name.startsWith(word) ? 0.5 : distance(word, name) }))
    .filter(({ away }) => away <= limit)
    .toSorted((one, two) => one.away - two.away)
  return best?.name ?? null
}

/** Letters added, dropped, changed, or swapped with their neighbour. */
function distance(one: string, two: string): number {
  let twoAgo: readonly number[] = []
  let before: readonly number[] = Array.from({ length: two.length + 1 }, (_, column) => column)
  for (let row = 1; row <= one.length; row += 1) {
    const now = [row]
    for (let column = 1; column <= two.length; column += 1) {
      const change = at(before, column - 1) + (one[row - 1] === two[column - 1] ? 0 : 1)
      const isSwap = one[row - 1] === two[column - 2] && one[row - 2] === two[column - 1]
      const swap = isSwap ? at(twoAgo, column - 2) + 1 : Infinity
      now.push(Math.min(at(before, column) + 1, at(now, column - 1) + 1, change, swap))
    }
    twoAgo = before
    before = now
  }
  return at(before, two.length)
}

const at = (costs: readonly number[], index: number) => costs[index] ?? Infinity
