/** Looks from outside for signs of new systems: whether their machines answer, and with which SSH host keys. */
import type { Run } from '../../engine/inventory/rules/run.ts'
import { createQueue } from '../../kit/host/queue.ts'
import { createBaselines } from './baselines.ts'
import { mayProbe, type HostKeys } from './rules/proof.ts'
import type { createWatches, Watch } from './watches.ts'

export interface SignSources {
  /** `port` of SSH; 0 or absent: it is not looked at. */
  settings(): { readonly enabled: boolean; readonly limit: number; readonly port?: number }
  /** Milliseconds of a clock that nobody sets. */
  elapsed(): number
  /** Looks whether machines' network cards answer at their addresses; what cannot be seen from here is left out. */
  findAnswers?(macs: readonly Run['mac'][]): Promise<ReadonlyMap<string, boolean>>
  /** Absent: keys are not read. */
  readKeys?(mac: Run['mac']): Promise<HostKeys>
}

type SignsDependencies = SignSources & Pick<ReturnType<typeof createWatches>, 'current' | 'take'>

/** Machines whose keys are read at the same time. */
const AT_ONCE = 32

export function createSigns(given: SignsDependencies) {
  const { settings, elapsed, current, take } = given
  const isEnabled = () => settings().enabled && (settings().port ?? 0) > 0
  const inTurn = createQueue(AT_ONCE)

  /** Only where its own network card answers there: an address may be another machine's by now. */
  async function readOwnKeys(mac: Run['mac']): Promise<HostKeys> {
    const answers = await given.findAnswers?.([mac])
    return answers?.get(mac) === true ? ((await given.readKeys?.(mac)) ?? null) : null
  }

  async function probe(watch: Watch): Promise<void> {
    const keys = mayProbe(watch.run.proof) ? await given.readKeys?.(watch.run.mac) : null
    if (keys) await take(watch, { kind: 'ssh', keys })
  }

  async function lookNow(): Promise<void> {
    const watched = [...current().values()]
    const macs = watched.map(({ run }) => run.mac)
    const found = macs.length === 0 ? null : await given.findAnswers?.(macs)
    for (const watch of watched) {
      const answers = found?.get(watch.run.mac)
      if (answers !== undefined) await take(watch, { kind: 'network', answers })
    }
    if (!isEnabled()) return
    const there = watched.filter(({ run }) => found?.get(run.mac) === true)
    await Promise.all(there.map((watch) => inTurn(() => probe(watch))))
  }

  let looking: Promise<void> | null = null
  return {
    baselines: createBaselines({ isEnabled, readKeys: readOwnKeys, elapsed }),
    /** One look at a time: many machines with a slow SSH take longer than the pause between two. */
    look: (): Promise<void> => (looking ??= lookNow().finally(() => (looking = null))),
  }
}
