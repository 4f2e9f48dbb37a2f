/** What was seen at the ports of machines before their new system could run; in memory, for who is ordered to flash. */
import { createQueue } from '../../kit/host/queue.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import {
  joinBefore,
  isOldSystem,
  type LastBoot,
  type PortBefore,
  type PortSeen,
} from './rules/port.ts'

interface BaselinesDependencies {
  /** Whether ports are looked at at all. */
  isEnabled(): boolean
  /** What is seen at the machine's port now; null: nobody can tell, or it is not the machine. */
  readPort(mac: Mac): Promise<PortSeen | null>
  /** Milliseconds of a clock that nobody sets. */
  elapsed(): number
}

interface Baseline {
  readonly order: string
  readonly old: Promise<PortSeen | null>
  live: Promise<PortSeen | null>
}

/** How many machines are looked at at the same time. */
const AT_ONCE = 32
const UNKNOWN = Promise.resolve(null)

export function createBaselines({ isEnabled, readPort, elapsed }: BaselinesDependencies) {
  const inTurn = createQueue(AT_ONCE)
  const lastBoots = new Map<Mac, LastBoot>()
  const known = new Map<Mac, Baseline>()
  const look = (mac: Mac) => inTurn(() => readPort(mac)).catch(() => null)

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
    async take(mac: Mac): Promise<PortBefore | null> {
      const baseline = known.get(mac)
      known.delete(mac)
      return baseline === undefined ? null : joinBefore(await baseline.old, await baseline.live)
    },
  }
}
