/** Looks from outside for signs of new systems: whether their machines answer, and what is at their port. */
import type { Run } from '../../engine/inventory/rules/run.ts'
import { createQueue } from '../../kit/host/queue.ts'
import { createBaselines } from './baselines.ts'
import type { PortSeen } from './rules/port.ts'
import { mayProbe } from './rules/proof.ts'
import type { createWatches, Watch } from './watches.ts'

export interface SignSources {
  /** `port` 0 or absent: none is looked at. */
  settings(): { readonly enabled: boolean; readonly limit: number; readonly port?: number }
  /** Milliseconds of a clock that nobody sets. */
  elapsed(): number
  /** Looks whether machines' network cards answer at their addresses; what cannot be seen from here is left out. */
  findAnswers?(macs: readonly Run['mac'][]): Promise<ReadonlyMap<string, boolean>>
  /** What is seen at a machine's port; null: nobody can tell. Absent: ports are not looked at. */
  readPort?(mac: Run['mac']): Promise<PortSeen | null>
}

type SignsDependencies = SignSources & Pick<ReturnType<typeof createWatches>, 'current' | 'take'>

/** Ports that are looked at at the same time. */
const AT_ONCE = 32

export function createSigns(given: SignsDependencies) {
  const { settings, elapsed, current, take } = given
  const isPortEnabled = () => settings().enabled && (settings().port ?? 0) > 0
  const inTurn = createQueue(AT_ONCE)

  /** Only where its own network card answers there: an address may be another machine's by now. */
  async function readOwnPort(mac: Run['mac']): Promise<PortSeen | null> {
    const answers = await given.findAnswers?.([mac])
    return answers?.get(mac) === true ? ((await given.readPort?.(mac)) ?? null) : null
  }

  async function probe(watch: Watch): Promise<void> {
    const seen = mayProbe(watch.run.proof) ? await given.readPort?.(watch.run.mac) : null
    if (seen) await take(watch, { kind: 'port', seen })
  }

  async function lookNow(): Promise<void> {
    const watched = [...current().values()]
    const macs = watched.map(({ run }) => run.mac)
    const found = macs.length === 0 ? null : await given.findAnswers?.(macs)
    for (const watch of watched) {
      const answers = found?.get(watch.run.mac)
      if (answers !== undefined) await take(watch, { kind: 'network', answers })
    }
    if (!isPortEnabled()) return
    const there = watched.filter(({ run }) => found?.get(run.mac) === true)
    await Promise.all(there.map((watch) => inTurn(() => probe(watch))))
  }

  let looking: Promise<void> | null = null
  return {
    /** What was at the ports of machines before. */
    baselines: createBaselines({ isEnabled: isPortEnabled, readPort: readOwnPort, elapsed }),
    /** One look at a time: many machines with slow ports take longer than the pause between two. */
    look: (): Promise<void> => (looking ??= lookNow().finally(() => (looking = null))),
  }
}
