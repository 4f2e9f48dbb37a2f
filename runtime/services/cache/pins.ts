/** Which images machines are bound to, as their servers say: those are not removed to make room. */
import type { Storage } from 'unstorage'
import { z } from 'zod'
import { parseEach } from '../../core/foundation/shape.ts'

export interface Pins {
  /** What a server says replaces what it said before; it holds for a week without another word. */
  pin(holder: string, refs: readonly string[]): Promise<void>
  has(ref: string): boolean
}

const KEPT_MS = 7 * 24 * 3600 * 1000
const MAX_HOLDERS = 100
const KEY = 'pins'

const Holder = z.object({
  refs: z.array(z.unknown()).transform((refs) => refs.filter((ref) => typeof ref === 'string')),
  /** Milliseconds since the epoch. */
  until: z.number(),
})
const NamedHolder = z.tuple([z.string(), Holder])

export async function createPins(records: Storage, now: () => Date): Promise<Pins> {
  const holders = new Map<string, z.infer<typeof Holder>>(
    parseEach(NamedHolder, await records.getItem(KEY)),
  )
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
      if (refs.length > 0)
        holders.set(holder, { refs: [...refs], until: now().getTime() + KEPT_MS })
      // The one that spoke last stays.
      for (const name of [...holders.keys()].slice(0, -MAX_HOLDERS)) holders.delete(name)
      count()
      await records.setItem(KEY, JSON.stringify([...holders]))
    },
  }
}
