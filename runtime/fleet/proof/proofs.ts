/** Waits for the first boot of systems that were flashed, and keeps what is known of it with their runs. */
import type { Run } from '../../engine/inventory/rules/run.ts'
import { epochOf } from '../../kit/foundation/instants.ts'
import type { Changes } from '../../kit/host/changes.ts'
import { listNewest } from '../run/run-rows.ts'
import type { Database } from '../state/database.ts'
import { createProof, decideCall } from './rules/proof.ts'
import { createSigns, type SignSources } from './signs.ts'
import { createWatches } from './watches.ts'

interface ProofsDependencies extends SignSources {
  readonly database: Database
  readonly changes: Changes
  /** When the seed token was made with which the machine fetched its newest configuration; null: none. */
  findCall(mac: Run['mac']): string | null
  now(): Date
}

/** Machines tell their end to a server that is away for ten minutes. */
const AGAIN_MS = 15 * 60_000
const wroteSystem = ({ result, mode }: Run): boolean => result === 'done' && mode !== 'capture'
/** Whether it ended lately, and nobody has waited for its system yet. */
const isFresh = ({ proof, ended_at, updated_at }: Run, at: Date): boolean =>
  proof === null && at.getTime() - epochOf(ended_at ?? updated_at) <= AGAIN_MS

const SWEEP_MS = 1000
const LOOK_MS = 5000

export type Proofs = ReturnType<typeof createProofs>

export function createProofs(given: ProofsDependencies) {
  const { database, settings, findCall, now, elapsed } = given
  const { current, count, keep, save, take, onEnd } = createWatches(given)

  const signs = createSigns({ ...given, current, take })

  async function sweep(): Promise<void> {
    const at = elapsed()
    const over = [...current().values()].filter(({ endsAt }) => endsAt <= at)
    await Promise.all(over.map((watch) => take(watch, { kind: 'limit' })))
  }
  database.repeat(SWEEP_MS, sweep)
  database.repeat(LOOK_MS, signs.look)

  return {
    /** Whether runs that end now are followed. */
    isEnabled: (): boolean => settings().enabled,
    /**
     * A run has ended: the first boot of what it wrote is awaited from now on. It may be said again: the
     * server may have been killed between storing the run and this.
     */
    async begin(run: Run): Promise<void> {
      const { enabled, limit } = settings()
      if (!enabled || !wroteSystem(run)) return
      const [newest, former = null] = listNewest(database.sql, run.mac, 2)
      // The word of an earlier run may come late: its system has been written over since.
      if (newest?.id !== run.id || !isFresh(newest, now())) return
      const known = current().get(run.mac)
      if (known?.run.id === run.id) return
      if (known !== undefined) await take(known, { kind: 'flash' })
      const callMadeAt = decideCall(findCall(run.mac), former)
      const keysBefore = await signs.baselines.take(run.mac)
      const proof = createProof(now().toISOString(), limit, callMadeAt, keysBefore)
      keep({ ...run, proof })
      await save(run, proof)
    },
    /** Its next flash began. */
    async leave(mac: Run['mac']): Promise<void> {
      signs.baselines.live(mac)
      const watch = current().get(mac)
      if (watch !== undefined) await take(watch, { kind: 'flash' })
    },
    /** A machine asked for its boot script. From memory, and nothing for machines that nobody waits for. */
    contact(mac: Run['mac'], isToDisk = true): Promise<void> | undefined {
      signs.baselines.boot(mac, isToDisk)
      const watch = count() === 0 ? undefined : current().get(mac)
      return watch === undefined
        ? undefined
        : take(watch, { kind: 'contact', isElsewhere: !isToDisk })
    },
    /** It was given the order a moment ago. */
    order: signs.baselines.order,
    /** Resolves once the machine may be restarted for its order. */
    settle: signs.baselines.settle,
    /** A system called the address that was made at `issued` (ISO 8601). */
    async call(mac: string, issued: string): Promise<void> {
      const watch = current().get(mac)
      if (watch !== undefined) await take(watch, { kind: 'call', issued })
    },
    /** When the wait for this machine's newest system began (ISO 8601); null: nobody waits for it. */
    since: (mac: string): string | null => current().get(mac)?.run.proof.since ?? null,
    /** Ends waits that have lasted long enough; also runs every second. */
    sweep,
    /** Looks whether the machines answer; also runs every five seconds. */
    look: signs.look,
    onEnd,
    awaitEnd: createAwaiting(given),
  }
}

/** A machine begins no more runs than this of one order while somebody waits. */
const FEW = 8

/**
 * Makes what resolves with the run of an order once it is known what became of its system, or with null
 * where nobody waits for that or `signal` is aborted before.
 */
function createAwaiting({ database, changes }: ProofsDependencies) {
  return (mac: Run['mac'], order: string, signal: AbortSignal): Promise<Run | null> => {
    const { promise, resolve } = Promise.withResolvers<Run | null>()
    const check = () => {
      const run = listNewest(database.sql, mac, FEW).find((each) => each.order === order)
      if ((run?.proof ?? null) === null) resolve(null)
      else if (run?.proof?.state !== 'watching') resolve(run ?? null)
    }
    const leave = () => resolve(null)
    const stop = changes.listen((change) => {
      // A restore is announced as a change of the settings.
      if (change.topic === 'settings' || (change.topic === 'run' && change.mac === mac)) check()
    })
    signal.addEventListener('abort', leave, { once: true })
    check()
    if (signal.aborted) leave()
    return promise.finally(() => {
      stop()
      signal.removeEventListener('abort', leave)
    })
  }
}
