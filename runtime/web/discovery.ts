/** Lets new machines in, at a bounded pace and number: whoever can reach us can make rows. */
import { takeOne, type Bucket } from '../core/bucket.ts'
import type { MachineBase } from '../core/machine.ts'
import type { ServerParts } from './line.ts'

export interface Discovery {
  /** True: the caller may be stored as a new machine. */
  admit(): Promise<boolean>
}

/** How long a count of unassigned rows is trusted; our own additions are counted meanwhile. */
const RECOUNT_MS = 30_000
/** One event for this long, however many are turned away. */
const QUIET_MS = 60_000

export function createDiscovery<M extends MachineBase>(
  parts: Pick<ServerParts<M>, 'line' | 'machines' | 'settings' | 'now'>,
  /** Told once a minute while new machines are turned away, with the reason in words. */
  refused: (reason: string) => void,
): Discovery {
  const { line, machines, settings, now } = parts
  let bucket: Bucket | null = null
  let unassigned: { readonly count: number; readonly at: number } | null = null
  let toldAt = -Infinity

  async function countUnassigned(at: number): Promise<number> {
    if (unassigned === null || at - unassigned.at >= RECOUNT_MS) {
      // Fewer rows than the limit in all: no need to look at each.
      const all = await machines.count()
      const isFar = all < settings().mostUnassigned / 2
      const count = isFar ? all : (await machines.list()).filter(line.isUnassigned).length
      unassigned = { count, at: isFar ? -Infinity : at }
    }
    return unassigned.count
  }

  function turnAway(reason: string, at: number): false {
    if (at - toldAt >= QUIET_MS) {
      toldAt = at
      refused(reason)
    }
    return false
  }

  return {
    async admit() {
      const at = now().getTime()
      const { discoveriesPerMinute, mostUnassigned } = settings()
      const rate = { perMinute: discoveriesPerMinute, most: discoveriesPerMinute }
      const next = takeOne(bucket, at, rate)
      if (next === null) return turnAway(`more than ${discoveriesPerMinute} a minute`, at)
      const count = await countUnassigned(at)
      if (count >= mostUnassigned) return turnAway(`${count} machines are unassigned`, at)
      bucket = next
      if (unassigned !== null) unassigned = { ...unassigned, count: count + 1 }
      return true
    },
  }
}
