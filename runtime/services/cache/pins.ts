/** Images that machines are bound to, as their servers report; these are not removed to make room. */
import type { Storage } from 'unstorage'
import { z } from 'zod'

export type Pins = Awaited<ReturnType<typeof createPins>>

const KEPT_MS = 7 * 24 * 3600 * 1000
const MAX_HOLDERS = 100
const KEY = 'pins'

/** By name: what each said, and until when (milliseconds since the epoch) it holds. */
const Holders = z
  .array(z.tuple([z.string(), z.object({ refs: z.array(z.string()), until: z.number() })]))
  .catch([])

export async function createPins(records: Storage, now: () => Date) {
  const holders = new Map(Holders.parse(await records.getItem(KEY)))
  let pinned = new Set<string>()

  function count() {
    for (const [name, { until }] of holders) if (until < now().getTime()) holders.delete(name)
    pinned = new Set([...holders.values()].flatMap(({ refs }) => refs))
  }
  count()

  return {
    has: (ref: string) => pinned.has(ref),
    /** Replaces what this server has pinned before; a pin ends after a week unless it is renewed. */
    async pin(holder: string, refs: readonly string[]) {
      holders.delete(holder)
      if (refs.length > 0)
        holders.set(holder, { refs: [...refs], until: now().getTime() + KEPT_MS })
      // The latest ones stay.
      for (const name of [...holders.keys()].slice(0, -MAX_HOLDERS)) holders.delete(name)
      count()
      await records.setItem(KEY, JSON.stringify([...holders]))
    },
  }
}
