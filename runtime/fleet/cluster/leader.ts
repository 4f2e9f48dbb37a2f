/** What the server does that holds the lease: it appends groups, and renews. */
import { randomUUID } from 'node:crypto'
import { settle } from '#kit/host/watch.ts'
import type { SeenMachine } from '#fleet/state/commits.ts'
import { type Position, decideDoubt, type ClusterTimes } from './rules/lease.ts'
import {
  ALL_KEYS,
  renderGroup,
  renderKeys,
  SCHEMA_NAME,
  type RowCells,
  type SharedTable,
  type TableChange,
} from './rules/shared-tables.ts'
import {
  FENCE,
  HAND_OVER,
  PRUNE,
  RENEW,
  RENEW_SEEN,
  readPosition,
  renameTerm,
  tryLeaderLock,
  type TakenLease,
} from './tables.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault, hintOf, renderError } from '#kit/foundation/fault.ts'
import { describePostgresError, type PostgresTrouble } from './rules/postgres-fault.ts'
import { toFault, type PgSession } from './postgres.ts'

export type Leader = ReturnType<typeof createLeader>

const RENEW_MS = 1000
const PRUNE_MS = 60_000

/**
 * Each answer comes from a transaction that began after the call and found the lease to be ours.
 * Calls wait for a database that is away; they reject with a Fault `no-leader` once another server
 * leads, `input-invalid` if these rows alone cannot be stored. `append` also rejects with
 * `no-leader` if the rows took too long; they are not stored then.
 */
export function createLeader(dependencies: HoldDependencies) {
  const hold = createHold(dependencies)
  const { trouble, ended, giveUp, survivesHost } = hold
  const renewals = createRenewals(hold)
  let isLeaving = false

  return {
    trouble,
    ended,
    giveUp,
    survivesHost,
    append(changes: readonly TableChange[]): Promise<Position> {
      const change = randomUUID()
      const keys = renderKeys(changes)
      return hold.insist(
        async ({ session, term, position }) => {
          const fence = { text: FENCE, values: [term, position.seq, change, keys] }
          const { text, values } = renderGroup(fence, changes)
          return (await session.repeat(text, values)).length === 1
        },
        change,
        ['rows', 'late'],
      )
    },
    /** In one transaction. */
    replaceAll(
      tables: readonly SharedTable[],
      read: (table: SharedTable) => Iterable<readonly RowCells[]>,
    ): Promise<Position> {
      const change = randomUUID()
      return hold.insist(({ session, term, position }) => {
        const values = [term, position.seq, change, ALL_KEYS]
        return session.transact('', async () => {
          const found = await session.query(`WITH ${FENCE} SELECT * FROM fence`, values)
          if (found.length !== 1) return false
          for (const table of tables) {
            await session.query(`DELETE FROM ${SCHEMA_NAME}.${table.name}`)
            for (const rows of read(table)) {
              const part = renderGroup(WITHOUT_FENCE, [{ table, rows, removed: [] }])
              await session.query(part.text, part.values)
            }
          }
          return true
        })
      }, change)
    },
    /** In a transaction that began after this call. */
    async confirm(): Promise<void> {
      await hold.insist(
        async ({ session, term }) => (await session.repeat(RENEW, [term])).length === 1,
        null,
      )
    },
    isSure: () => !isLeaving && hold.isSure(),
    /** Stored with the next renewal, within a second. */
    see: renewals.see,
    /** Another server leads at once. A database that is away is not waited for. */
    async stop(): Promise<void> {
      isLeaving = true
      renewals.end()
      if (ended() === null && trouble() === null) await settle(handOver(), STOP_MS)
      await settle(hold.close(), STOP_MS)
    },
  }

  async function handOver(): Promise<void> {
    await renewals.renew()
    await hold.insist(async ({ session, term }) => {
      await session.query(HAND_OVER, [term])
      return true
    }, null)
  }
}

const STOP_MS = 2000

/** For a transaction that has already found the lease to be ours. */
const WITHOUT_FENCE = { text: 'fence AS (SELECT 1 AS one)', values: [] }

function createRenewals(hold: ReturnType<typeof createHold>) {
  const seen = new Map<string, SeenMachine>()
  let isRenewing = false

  async function renew(): Promise<void> {
    const batch = [...seen.values()]
    const columns = [
      batch.map(({ mac }) => mac),
      batch.map(({ at }) => at),
      batch.map(({ ip }) => ip),
    ]
    await hold.insist(
      async ({ session, term }) =>
        (await session.repeat(RENEW_SEEN, [term, ...columns])).length === 1,
      null,
    )
    for (const each of batch) if (seen.get(each.mac) === each) seen.delete(each.mac)
    await hold.renewHint()
  }

  const timers = [
    setInterval(() => {
      if (isRenewing || hold.ended() !== null) return
      isRenewing = true
      // Whoever waits for a change hears of a failure.
      renew()
        .catch(() => undefined)
        .finally(() => {
          isRenewing = false
        })
    }, RENEW_MS).unref(),
    setInterval(() => {
      if (hold.ended() !== null || hold.trouble() !== null) return
      // Best effort: a longer log does no harm, and the next minute tries again.
      const prune = hold.insist(async ({ session, term }) => {
        await session.query(PRUNE, [term])
        return (await session.repeat(RENEW, [term])).length === 1
      }, null)
      prune.catch(() => undefined)
    }, PRUNE_MS).unref(),
  ]

  return {
    renew,
    see(batch: readonly SeenMachine[]): void {
      for (const each of batch) seen.set(each.mac, each)
    },
    end() {
      for (const timer of timers) clearInterval(timer)
    },
  }
}

// Keeps the lease through lost connections, and finds out what became of a group whose answer was lost.

interface HoldDependencies extends TakenLease {
  readonly session: PgSession
  readonly term: string
  /** Everything up to here is in `state.db`. */
  readonly position: Position
  open(): Promise<PgSession>
  readonly times: Pick<ClusterTimes, 'sureMs'>
  readonly log: { warn(message: string): void }
  onEnd(why: Fault): void
}

interface Sending {
  readonly session: PgSession
  readonly term: string
  readonly position: Position
}

/** True: it was done, and the lease was ours. */
type Send = (sending: Sending) => Promise<boolean>

/** Troubles after which the same is not sent again. */
type FinalTroubles = readonly PostgresTrouble['kind'][]

/** The newest of `terms` is the lease's, as far as is known. */
interface HeldLease {
  session: PgSession
  position: Position
  terms: readonly string[]
  holdsLeaderLock: boolean
  /** When the newest message that found the lease ours was sent; `performance.now()`. */
  askedAt: number
}

const RETRY_MS = [100, 250, 500, 1000, 2000] as const

/** Bounds the pause between tries, so that the lease is renewed in between. */
const ROOM_TRIES = 3

const pause = (tries: number): Promise<void> =>
  sleep(RETRY_MS[Math.min(tries, RETRY_MS.length - 1)])

/** `doubtful`: the answer was lost, or said that the lease is not ours. */
type Attempted = 'stored' | 'doubtful' | 'no-room'

/**
 * One sending at a time. After a lost connection the lease gets a new term in a new session, which
 * waits for the old one's end and keeps it out; then the newest change tells whether the group is
 * stored.
 */
function createHold(dependencies: HoldDependencies) {
  const ending = createEnding(dependencies.onEnd)
  const troubles = createTroubles(dependencies.log)
  const { session, position, term, epoch, holdsLeaderLock, times } = dependencies
  const at: HeldLease = { session, position, terms: [term], holdsLeaderLock, askedAt: -Infinity }
  const store = createSender(at, dependencies, ending, troubles)
  let line: Promise<unknown> = Promise.resolve()

  return {
    /**
     * Sends until it is stored under our term; `sent` is its id in the log (null: no change).
     * Rejects with a Fault `no-leader` if the lease is another's, or if the database reports one of
     * `final` for these rows, which are not stored then.
     */
    insist(send: Send, sent: string | null, final: FinalTroubles = ['rows']): Promise<Position> {
      const work = async (): Promise<Position> => {
        ending.check()
        await store(send, sent, final)
        if (sent !== null) at.position = { seq: at.position.seq + 1, change: sent }
        return at.position
      }
      const next = line.then(work)
      line = next.catch(() => undefined)
      return next
    },
    /** A lost session gave it back. */
    async renewHint(): Promise<void> {
      if (!at.holdsLeaderLock) at.holdsLeaderLock = await tryLeaderLock(at.session, epoch)
    },
    /** Nobody else can lead now; false: ask the database. */
    isSure: () =>
      ending.why() === null &&
      !at.session.isOver() &&
      performance.now() - at.askedAt < times.sureMs,
    /** Why nothing is stored now, in a clause; null: all is well. */
    trouble: troubles.current,
    ended: ending.why,
    /** After a surprise: `state.db` and the database differ, and the next start reads anew. */
    giveUp: (thrown: unknown): Fault =>
      ending.end(
        thrown instanceof Fault && thrown.code === 'no-leader'
          ? thrown
          : new Fault('no-leader', renderError(thrown), { cause: thrown }),
      ),
    survivesHost: () => at.session.survivesHost,
    async close(): Promise<void> {
      ending.endQuietly(new Fault('no-leader', 'this server has stopped leading'))
      await at.session[Symbol.asyncDispose]()
    },
  }
}

/** Replaces a lost session. Rejects if the lease is another's, or with a final trouble. */
function createSender(
  at: HeldLease,
  dependencies: HoldDependencies,
  ending: ReturnType<typeof createEnding>,
  troubles: ReturnType<typeof createTroubles>,
) {
  async function reconnect(sent: string | null): Promise<boolean> {
    for (let tries = 0; ; tries += 1) {
      at.session.drop()
      ending.check()
      try {
        const found = await openAgain(at, dependencies, ending)
        ending.check()
        const verdict = decideDoubt({ known: at.position, sent, found })
        if (verdict === 'older' || verdict === 'foreign') throw ending.end(REPLACED[verdict])
        troubles.end()
        return verdict === 'stored'
      } catch (thrown) {
        // If this server has stopped meanwhile, nobody else would end the session.
        at.session.drop()
        ending.check()
        troubles.note(thrown)
        await pause(tries)
      }
    }
  }

  async function attempt(send: Send, final: FinalTroubles): Promise<Attempted> {
    const askedAt = performance.now()
    try {
      if (!(await send({ ...at, term: newestOf(at) }))) return 'doubtful'
      at.askedAt = askedAt
      troubles.end()
      return 'stored'
    } catch (thrown) {
      ending.check()
      // A mistake of ours, or of the rows.
      if (thrown instanceof TypeError || thrown instanceof Fault) throw thrown
      const meaning = describePostgresError(thrown)
      if (final.includes(meaning.kind) && !at.session.isOver()) throw toFault(meaning, thrown)
      troubles.note(thrown)
      return meaning.kind === 'room' && !at.session.isOver() ? 'no-room' : 'doubtful'
    }
  }

  /** Another leader would have no more room, so the lease is kept if possible. */
  async function waitForRoom(tries: number): Promise<void> {
    await pause(Math.min(tries, ROOM_TRIES))
    const askedAt = performance.now()
    const renewed = await at.session.repeat(RENEW, [newestOf(at)]).catch(() => [])
    if (renewed.length === 1) at.askedAt = askedAt
  }

  return async function store(
    send: Send,
    sent: string | null,
    final: FinalTroubles,
  ): Promise<void> {
    for (let tries = 0; ; tries += 1) {
      const attempted = await attempt(send, final)
      if (attempted === 'stored') return
      if (attempted === 'no-room') await waitForRoom(tries)
      else if (await reconnect(sent)) return
      // Sent again at once the first time; repeated failures in sound sessions wait.
      else if (tries > 0) await pause(tries)
    }
  }
}

const newestOf = ({ terms }: HeldLease): string => terms.at(-1) ?? ''

/** Returns the newest change; nothing that was sent before can follow it any more. */
async function openAgain(
  at: HeldLease,
  { open, epoch }: HoldDependencies,
  ending: ReturnType<typeof createEnding>,
): Promise<Position> {
  at.session = await open()
  const [former, next] = [at.terms, randomUUID()]
  // This answer may be lost, too: then any of the terms may be the lease's.
  at.terms = [...former, next]
  const askedAt = performance.now()
  if (!(await renameTerm(at.session, former, next))) throw ending.end(deposed())
  at.terms = [next]
  at.askedAt = askedAt
  at.holdsLeaderLock = await tryLeaderLock(at.session, epoch)
  return await readPosition(at.session)
}

function createEnding(onEnd: (why: Fault) => void) {
  let ended: Fault | null = null
  return {
    why: () => ended,
    check() {
      if (ended !== null) throw ended
    },
    end(why: Fault): Fault {
      if (ended !== null) return ended
      ended = why
      onEnd(why)
      return why
    },
    endQuietly(why: Fault) {
      ended ??= why
    },
  }
}

function createTroubles(log: HoldDependencies['log']) {
  let trouble: string | null = null
  return {
    current: () => trouble,
    note(thrown: unknown) {
      const { message, hint } =
        thrown instanceof Fault
          ? { message: thrown.message, hint: hintOf(thrown) ?? '' }
          : describePostgresError(thrown)
      if (message !== trouble) log.warn(`${message}: changes wait. ${hint}`.trim())
      trouble = message
    },
    end() {
      if (trouble !== null) log.warn('the database answers again')
      trouble = null
    },
  }
}

const deposed = () =>
  new Fault('no-leader', 'another server leads this fleet now', {
    hint: 'This one ends, and stands by once it is started again. It had not reached the database for 5 seconds.',
  })

const REPLACED = {
  older: new Fault(
    'no-leader',
    'the database was replaced by an older one that lacks acknowledged changes',
    {
      hint: 'Restore the newer database, or accept the older one with flasher-web database accept-older.',
    },
  ),
  foreign: new Fault('no-leader', 'another program changed the database', {
    hint: 'This server stops. It reads the changes when you start it again.',
  }),
} as const
