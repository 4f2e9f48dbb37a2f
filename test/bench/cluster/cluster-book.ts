/** The book of a storm: what was acknowledged, how often what happened, and every fault that was found. */

/** What a storm looks for; all of them are to be none (docs/several-servers.md). */
export const FINDINGS = {
  lost: 'acknowledged changes lost',
  stale: 'answers older than an acknowledged change',
  order: 'orders that were not kept to',
  half: 'disks that would boot a half',
  restarted: 'flashes begun again from byte 0',
  gaveUp: 'machines that gave up',
  refused: 'servers that refused to start',
} as const satisfies Record<string, string>

export type Finding = keyof typeof FINDINGS

export const KINDS_FOUND = Object.keys(FINDINGS).filter((name): name is Finding =>
  Object.hasOwn(FINDINGS, name),
)

export type Book = ReturnType<typeof createBook>

/** `say` gets each finding as it is made. */
export function createBook(say: (line: string) => void) {
  const counts = new Map<string, number>()
  const findings: { readonly kind: Finding; readonly text: string }[] = []
  return {
    count(what: string, by = 1) {
      counts.set(what, (counts.get(what) ?? 0) + by)
    },
    counts: (): ReadonlyMap<string, number> => counts,
    find(kind: Finding, text: string) {
      findings.push({ kind, text })
      say(`${FINDINGS[kind]}: ${text}`)
    },
    countOf: (kind: Finding) => findings.filter((each) => each.kind === kind).length,
  }
}

/**
 * What one thing may be, after attempts to change it one after the other: what was acknowledged last,
 * or anything that was tried after that.
 */
export function createExpectation<Value>(first: Value) {
  let possible: readonly Value[] = [first]
  return {
    try(value: Value) {
      possible = [...possible, value]
    },
    acknowledge(value: Value) {
      possible = [value]
    },
    allows: (found: Value) => possible.includes(found),
    possible: () => possible,
  }
}
