/** Remembers which numbers of whom were used, so that each counts once, in whichever order they come. */

/** More than a server has under way; what is older than so many counts as used. */
const NUMBERS = 4096
/** Each start of another server is one, with 32 KiB. */
const SENDERS = 256

/** `number`: a whole one above 0. False: it was used, or is too old to tell. */
export function createSpentNumbers(): (sender: string, number: number) => boolean {
  /** The one that was heard of last is the last one. */
  const senders = new Map<string, ReturnType<typeof createNumbers>>()
  return (sender, number) => {
    const numbers = senders.get(sender) ?? createNumbers()
    senders.delete(sender)
    senders.set(sender, numbers)
    const [oldest] = senders.keys()
    if (senders.size > SENDERS && oldest !== undefined) senders.delete(oldest)
    return numbers(number)
  }
}

function createNumbers() {
  const last = new Float64Array(NUMBERS)
  let newest = 0
  return (number: number): boolean => {
    const place = number % NUMBERS
    if (number <= newest - NUMBERS || last[place] === number) return false
    last[place] = number
    newest = Math.max(newest, number)
    return true
  }
}
