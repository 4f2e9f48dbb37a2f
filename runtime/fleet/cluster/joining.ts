/** Joins the servers that share a database: waits until it may lead, catches up, and leads. */
import { randomUUID } from 'node:crypto'
import { addAbortListener } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '../../kit/foundation/fault.ts'
import { NOWHERE, writeMembership } from '../state/membership.ts'
import type { Database } from '../state/database.ts'
import type { Commits, CommitsDependencies } from '../state/commits.ts'
import type { SqliteFile } from '../state/sqlite.ts'
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
  /**
   * `wait`: for the server, which stands by while another one leads, and waits for a database that is
   * away. `now`: for commands, which are refused then.
   */
  readonly patience: 'wait' | 'now'
  readonly start?: Start
  /** This ends the wait of a server that stands by; one that leads by then hands over within seconds. */
  readonly signal?: AbortSignal | undefined
  /** Only tests give others than the usual ones. */
  readonly times?: ClusterTimes | undefined
  readonly log: { info(message: string): void; warn(message: string): void }
  /** This takes each reading of the lease while this server stands by; null: the database is away. */
  follow?(lease: Lease | null): void
  /** Called once: this server does not lead any more, and its memory is not to be used. */
  onEnd(why: Fault): void
}

export interface JoinedLeader extends Leader {
  /** The lease, as this server took it. */
  readonly lease: Lease
}

/**
 * Has a database's changes made durable in PostgreSQL first, from here on. Before it resolves this
 * server leads, and what the database has is in `state.db`.
 *
 * Rejects with a Fault where the database cannot be used, is another one than this state has followed,
 * or is older than that; and, for a command, where another server leads or nobody answers.
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

/**
 * For a command beside a running server, whose changes that server would not know: it reads, and
 * changes nothing.
 */
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
  /** The lease as it was before. */
  readonly seen: Lease
  readonly session: PgSession
  readonly term: string
}

/** Tries again and again, in new sessions where one was lost. */
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
 * Reads the lease until it may be taken; each lost session begins the five seconds anew. Meanwhile a
 * server follows what changes, so that it knows of a database that went back before it leads.
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

/** Returns up to which change the file has followed. */
async function copyChanges(session: PgSession, file: SqliteFile, lease: Lease, followed: number) {
  if (isOlderShape(lease) || lease.seq === followed) return followed
  return (await catchUp(session, file, 'usual')).seq
}

async function look(session: PgSession, options: JoinOptions): Promise<Lease> {
  const lease = await readLease(session)
  // A newer release may have upgraded them since this session began.
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

/** A server that is asked to end goes on leading for so long, for what is under way. */
const LEAVE_MS = 4000

/** Lets another server lead then, whatever hangs here: what is not acknowledged by that time is not stored. */
function leaveInTime(leader: Leader): void {
  setTimeout(() => void leader.stop(), LEAVE_MS).unref()
}

/** Nobody else appends from here on; it answers when everything that was acknowledged is here. */
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
