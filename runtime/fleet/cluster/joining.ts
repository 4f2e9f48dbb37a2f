/** Joins the servers that share a database: waits until it may lead, catches up, and leads. */
import { randomUUID } from 'node:crypto'
import { addAbortListener } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '#kit/foundation/fault.ts'
import { NOWHERE, writeMembership } from '#fleet/state/membership.ts'
import type { Database } from '#fleet/state/database.ts'
import type { Commits, CommitsDependencies } from '#fleet/state/commits.ts'
import type { SqliteFile } from '#fleet/state/sqlite.ts'
import { catchUp, copySightings, type Start } from './catching-up.ts'
import { createGroupCommits } from './group-commits.ts'
import { createLeader, type Leader } from './leader.ts'
import { listTables, readParts } from './local-rows.ts'
import { readWaitedFor, type Member } from './members.ts'
import { openSession, toFault, type PgSession } from './postgres.ts'
import { describePostgresError } from './rules/postgres-fault.ts'
import { upgradeTables } from './upgrading.ts'
import { decideTakeover, renderTake, type LeaseWatch } from './rules/lease.ts'
import { TIMES, type ClusterTimes } from './rules/times.ts'
import {
  checkShape,
  ensureTables,
  isOlderShape,
  HAND_OVER,
  readLease,
  takeHint,
  takeLease,
  type Lease,
  type TakenLease,
} from './tables.ts'

export interface JoinOptions {
  /** `postgres://…`, with the password. */
  readonly url: string
  readonly member: Member
  readonly line: string
  /** `wait`: a server stands by, also for an absent database. `now`: a command is refused. */
  readonly patience: 'wait' | 'now'
  readonly start?: Start
  /** Ends the wait; a server that leads by then hands over within seconds. */
  readonly signal?: AbortSignal | undefined
  readonly times?: ClusterTimes | undefined
  readonly log: { info(message: string): void; warn(message: string): void }
  /** Gets each reading of the lease while standing by; null: the database is away. */
  follow?(lease: Lease | null): void
  /** Called once: this server no longer leads, and its memory must not be used. */
  onEnd(why: Fault): void
}

export interface JoinedLeader extends Leader {
  readonly lease: Lease
}

/**
 * Changes are durable in PostgreSQL first from here on. Before it resolves, this server leads and
 * `state.db` has what the database has. Rejects with a Fault if the database is unusable, older
 * than this state, or another than it followed; for a command also if another server leads or
 * nobody answers.
 */
export async function joinCluster(database: Database, options: JoinOptions): Promise<JoinedLeader> {
  const { promise, resolve } = Promise.withResolvers<JoinedLeader>()
  await database.commitThrough(async (dependencies) => {
    const { joined, commits } = await insist(options, async () => {
      const taken = await standBy(dependencies.current(), options)
      try {
        return await lead(taken, dependencies, options)
      } catch (thrown) {
        await leaveLease(taken)
        throw thrown
      }
    })
    resolve(joined)
    return commits
  })
  return await promise
}

/** For a command beside a running server, which would not know of its changes. */
export const onlyRead = (database: Database): Promise<void> =>
  database.commitThrough(async () => ({
    count: () => 0,
    write: () => Promise.reject(beside()),
    confirm: () => true,
    confirmRead: () => true,
    see: () => Promise.resolve(),
    settle: () => Promise.resolve(),
    exchange: () => Promise.reject(beside()),
    detach: () => Promise.resolve(),
  }))

const beside = () =>
  new Fault(
    'conflict',
    'a server runs with this state and shares a database: only the one that leads changes it',
    { hint: 'Do it on the pages or by the API of any of them, or stop this one first.' },
  )

interface Taken extends TakenLease {
  readonly seen: Lease
  readonly session: PgSession
  readonly term: string
}

async function insist<T>(
  { patience, log, signal, follow }: JoinOptions,
  attempt: () => Promise<T>,
): Promise<T> {
  let told = ''
  for (;;) {
    signal?.throwIfAborted()
    try {
      return await attempt()
    } catch (thrown) {
      const away = toAway(thrown)
      if (patience === 'now' || signal?.aborted === true) throw away
      follow?.(null)
      if (away.message !== told) log.warn(`${away.message}. ${away.hint ?? ''}`.trim())
      told = away.message
      await pause(AWAY_MS, signal).catch(() => undefined)
    }
  }
}

/** Throws what waiting does not mend. */
function toAway(thrown: unknown): Fault {
  const fault = thrown instanceof Fault ? thrown : toFault(describePostgresError(thrown), thrown)
  if (fault.code !== 'no-leader') throw fault
  return fault
}

const pause = (milliseconds: number, signal: AbortSignal | undefined): Promise<void> =>
  sleep(milliseconds, undefined, signal === undefined ? {} : { signal })

const LOOK_MS = 500
const AWAY_MS = 1000

/**
 * Reads the lease until it may be taken; a lost session restarts the five seconds. It follows
 * changes meanwhile, so that it notices a database that went back before it leads.
 */
async function standBy(file: SqliteFile, options: JoinOptions): Promise<Taken> {
  const { url, line, patience, log, signal, times = TIMES } = options
  const session = await openSession(url, times)
  const begun = performance.now()
  let watch: LeaseWatch | null = null
  let [told, followed] = ['', NOWHERE]
  try {
    await ensureTables(session, line, listTables(file))
    for (;;) {
      const lease = await look(session, options)
      const holdsHint = await takeHint(session, lease.epoch)
      const decided = decideTakeover(watch, lease, performance.now(), holdsHint, times)
      watch = decided.watch
      const why = renderTake(decided)
      const tried = why === null ? renderLed(lease) : await takeOver(session, lease, options, why)
      if (typeof tried !== 'string') return tried
      const isLate = performance.now() - begun > 2 * times.leaseMs
      if (patience === 'now' && isLate) throw refuseTaking(lease, tried)
      if (tried !== told) log.info(`standing by: ${tried}`)
      told = tried
      if (patience === 'wait') followed = await copyChanges(session, file, lease, followed)
      await pause(LOOK_MS, signal)
    }
  } catch (thrown) {
    session.drop()
    throw thrown
  }
}

/** Returns the change that the file has reached. */
async function copyChanges(session: PgSession, file: SqliteFile, lease: Lease, followed: number) {
  if (isOlderShape(lease) || lease.seq === followed) return followed
  return (await catchUp(session, file, 'usual')).seq
}

async function look(session: PgSession, options: JoinOptions): Promise<Lease> {
  const lease = await readLease(session)
  // A newer release may have upgraded the tables during this session.
  checkShape(lease, options.line)
  options.follow?.(lease)
  return lease
}

/** Returns why it is not taken, in a clause, where it is not. `why`: for the log. */
async function takeOver(
  session: PgSession,
  lease: Lease,
  { member, log }: JoinOptions,
  why: string,
): Promise<Taken | string> {
  const waited = await readWaitedFor(session, member, lease.release)
  if (waited.length > 0) {
    return `${member.release} leads once every server has it; waiting for ${waited.join(', ')} (flasher-web database forget NAME for one that is gone)`
  }
  const term = randomUUID()
  const taken = await takeLease(session, lease, term, member)
  if (taken === null) return renderLed(lease)
  log.info(`takes the lease: ${why}`)
  return { session, term, seen: lease, ...taken }
}

const renderLed = ({ holder, since }: Lease): string => `${holder} leads since ${since}`

const refuseTaking = ({ holder, url }: Lease, why: string) =>
  holder === ''
    ? new Fault('conflict', `this release may not lead yet: ${why}`)
    : new Fault('conflict', `${holder} leads this fleet at the moment (${url})`, {
        hint: 'Stop that server first, or do it on its pages.',
      })

/** Best effort: without it the next one waits five seconds. */
async function leaveLease({ session, term }: Taken): Promise<void> {
  await session.query(HAND_OVER, [term]).catch(() => undefined)
  session.drop()
}

/** A server asked to end leads on for so long, for what is under way. */
const LEAVE_MS = 4000

/** Another server leads then, whatever hangs here: what is unacknowledged is not stored. */
function leaveInTime(leader: Leader): void {
  setTimeout(() => void leader.stop(), LEAVE_MS).unref()
}

/** From here on nobody else appends. Resolves when all that was acknowledged is here. */
async function lead(
  { session, seen, ...taken }: Taken,
  dependencies: CommitsDependencies,
  options: JoinOptions,
): Promise<{ readonly joined: JoinedLeader; readonly commits: Commits }> {
  const { url, log, onEnd, signal, start = 'usual', times = TIMES } = options
  const file = dependencies.current()
  if (isOlderShape(seen)) {
    const { release } = options.member
    const upgrade = { from: seen, term: taken.term, release, tables: listTables(file) }
    const former = await upgradeTables(session, upgrade)
    log.warn(`upgraded the database from ${seen.release}; its former tables are in ${former}`)
  }
  const takenAt = performance.now()
  const position = await catchUp(session, file, start)
  await copySightings(session, file)
  const lease = await readLease(session)
  const { cluster } = lease
  const leader = createLeader({
    session,
    ...taken,
    position,
    open: () => openSession(url, times),
    times,
    log,
    onEnd,
  })
  if (start === 'import') {
    const tables = listTables(file)
    const brought = await leader.replaceAll(tables, (table) => readParts(file, table))
    writeMembership(file, { cluster, ...brought })
  }
  const commits = createGroupCommits({ ...dependencies, leader, cluster, log }, times)
  if (signal !== undefined) addAbortListener(signal, () => leaveInTime(leader))
  const seconds = ((performance.now() - takenAt) / 1000).toFixed(1)
  log.info(`leads since ${lease.since}; ${position.seq} changes so far, caught up in ${seconds} s`)
  return { joined: { ...leader, lease }, commits }
}
