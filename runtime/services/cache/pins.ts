/** Which images machines are bound to, as their servers say: those are not removed to make room. */
import type { Storage } from 'unstorage'

export interface Pins {
  /** What a server says replaces what it said before; it holds for a week without another word. */
  pin(holder: string, refs: readonly string[]): Promise<void>
  has(ref: string): boolean
}

const KEPT_MS = 7 * 24 * 3600 * 1000
const MAX_HOLDERS = 100
const KEY = 'pins'

interface Holder {
  readonly refs: readonly string[]
  /** Milliseconds since the epoch. */
  readonly until: number
}

export async function createPins(records: Storage, now: () => Date): Promise<Pins> {
  const holders = new Map(parseHolders(await records.getItem(KEY)))
  let pinned = new Set<string>()

  function count() {
    for (const [name, { until }] of holders) if (until < now().getTime()) holders.delete(name)
    pinned = new Set([...holders.values()].flatMap(({ refs }) => refs))
  }
  count()

  return {
    has: (ref) => pinned.has(ref),
    async pin(holder, refs) {
      holders.delete(holder)
      if (refs.length > 0) holders.set(holder, { refs, until: now().getTime() + KEPT_MS })
      // The one that spoke last stays.
      for (const name of [...holders.keys()].slice(0, -MAX_HOLDERS)) holders.delete(name)
      count()
      await records.setItem(KEY, JSON.stringify([...holders]))
    },
  }
}

function parseHolders(found: unknown): readonly (readonly [string, Holder])[] {
  if (!Array.isArray(found)) return []
  return found.flatMap((one: unknown) => {
    const [name, holder]: readonly unknown[] = Array.isArray(one) ? one : []
    if (typeof name !== 'string' || typeof holder !== 'object' || holder === null) return []
    const fields = new Map<string, unknown>(Object.entries(holder))
    const [refs, until] = [fields.get('refs'), fields.get('until')]
    if (!Array.isArray(refs) || typeof until !== 'number') return []
    return [[name, { refs: refs.filter((ref) => typeof ref === 'string'), until }]]
  })
}
