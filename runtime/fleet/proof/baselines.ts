/** Which SSH host keys machines had before their new system could run; in memory, for who is ordered to flash. */
import { createQueue } from '../../kit/host/queue.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import { isOldSystem, joinKeys, type HostKeys, type LastBoot } from './rules/proof.ts'

interface BaselinesDependencies {
  /** Whether keys are read at all. */
  isEnabled(): boolean
  /** Those that the machine has now; null as well where it is not the machine that answers. */
  readKeys(mac: Mac): Promise<HostKeys>
  /** Milliseconds of a clock that nobody sets. */
  elapsed(): number
}

interface Baseline {
  readonly order: string
  readonly old: Promise<HostKeys>
  live: Promise<HostKeys>
}

/** How many machines are looked at at the same time. */
const AT_ONCE = 32
const UNKNOWN = Promise.resolve(null)

export function createBaselines({ isEnabled, readKeys, elapsed }: BaselinesDependencies) {
  const inTurn = createQueue(AT_ONCE)
  const lastBoots = new Map<Mac, LastBoot>()
  const known = new Map<Mac, Baseline>()
  const look = (mac: Mac) => inTurn(() => readKeys(mac)).catch(() => null)

  return {
    /** It asked for its boot script, and was led there. */
    boot(mac: Mac, isToDisk: boolean): void {
      if (isEnabled()) lastBoots.set(mac, { isToDisk, at: elapsed() })
    },
    /** It was given an order a moment ago: the system that runs now is looked at, where that is the old one. */
    order(mac: Mac, order: string): void {
      if (!isEnabled() || known.get(mac)?.order === order) return
      const old = isOldSystem(lastBoots.get(mac), elapsed()) ? look(mac) : UNKNOWN
      known.set(mac, { order, old, live: UNKNOWN })
    },
    /** Resolves once what was there before the order has been seen: until then nobody may restart the machine. */
    async settle(mac: Mac): Promise<void> {
      await known.get(mac)?.old
    },
    /** Its live system began a run. */
    live(mac: Mac): void {
      const baseline = known.get(mac)
      if (baseline !== undefined) baseline.live = look(mac)
    },
    /** Takes what is known of the machine. */
    async take(mac: Mac): Promise<HostKeys> {
      const baseline = known.get(mac)
      known.delete(mac)
      return baseline === undefined ? null : joinKeys(await baseline.old, await baseline.live)
    },
  }
}
