/** Joins the servers that share a database: waits until it may lead, catches up, and leads. */
import { randomUUID } from 'node:crypto'
import { addAbortListener } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '#kit/foundation/fault.ts'
import { NOWHERE, writeMembership, readMembership } from '#fleet/state/membership.ts'
import type { Database } from '#fleet/state/database.ts'
import type { Commits, CommitsDependencies } from '#fleet/state/commits.ts'
import type { SqliteFile } from '#fleet/state/sqlite.ts'
import { createGroupCommits } from './group-commits.ts'
import { createLeader, type Leader } from './leader.ts'
import {
  applyChanges,
  checkShape,
  createTables,
  ensureTables,
  HAND_OVER,
  isOlderShape,
  type Lease,
  listTables,
  readKeysSince,
  readLease,
  readLogEnds,
  readParts,
  replaceAll,
  takeLease,
  type TakenLease,
  tryLeaderLock,
} from './tables.ts'
import { readWaitedFor, type Member } from './members.ts'
import { openSession, toFault, type PgSession, numberIn, textOf, type PgRow } from './postgres.ts'
import { describePostgresError } from './rules/postgres-fault.ts'
import {
  decideTakeover,
  renderTake,
  type LeaseWatch,
  TIMES,
  type ClusterTimes,
  decideCatchUp,
  type LogEnds,
  type Position,
} from './rules/lease.ts'
import { SYSTEM_EVENT } from '#fleet/state/event-rows.ts'
import { CARRIED, SCHEMA } from '#fleet/state/schema.ts'
import {
  renderFormerSchema,
  ALL_KEYS,
  SCHEMA_NAME,
  type SharedTable,
  createKeyList,
  renderRead,
  renderReadAll,
  type RowCells,
  type ChangedKeys,
  type TableChange,
} from './rules/shared-tables.ts'
import type { ClusterMembership } from '#fleet/state/rules/change-count.ts'

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
  let logged = ''
  for (;;) {
    signal?.throwIfAborted()
    try {
      return await attempt()
    } catch (thrown) {
      const away = toAway(thrown)
      if (patience === 'now' || signal?.aborted === true) throw away
      follow?.(null)
      if (away.message !== logged) log.warn(`${away.message}. ${away.hint ?? ''}`.trim())
      logged = away.message
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
  let [logged, followed] = ['', NOWHERE]
  try {
    await ensureTables(session, line, listTables(file))
    for (;;) {
      const lease = await look(session, options)
      const holdsLeaderLock = await tryLeaderLock(session, lease.epoch)
      const decided = decideTakeover(watch, lease, performance.now(), holdsLeaderLock, times)
      watch = decided.watch
      const why = renderTake(decided)
      const tried = why === null ? renderLed(lease) : await takeOver(session, lease, options, why)
      if (typeof tried !== 'string') return tried
      const isLate = performance.now() - begun > 2 * times.leaseMs
      if (patience === 'now' && isLate) throw refuseTaking(lease, tried)
      if (tried !== logged) log.info(`standing by: ${tried}`)
      logged = tried
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

/** Every server writes to these, whether it leads or not. */
const OF_ALL = ['lease', 'member', 'secret', 'netboot'] as const
const qualify = (table: string) => `${SCHEMA_NAME}.${table}`

interface Upgrade {
  readonly from: Lease
  readonly term: string
  readonly release: string
  readonly tables: readonly SharedTable[]
}

/**
 * In one transaction: renames the schema, makes a new one, carries over what both know, and records
 * it. Every server then reads everything anew. Resolves to the former schema's name. Rejects with a
 * Fault `no-leader` if another server leads; after any failure nothing is changed.
 */
async function upgradeTables(
  session: PgSession,
  { from, term, release, tables }: Upgrade,
): Promise<string> {
  return await session.transact('', async () => {
    // Others' writes wait and go to the new tables; without the lock they would be lost.
    await session.query(`LOCK TABLE ${OF_ALL.map(qualify).join(', ')} IN EXCLUSIVE MODE`)
    const [held] = await session.query(
      `SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS at
       FROM ${SCHEMA_NAME}.lease WHERE term = $1 FOR UPDATE`,
      [term],
    )
    if (held === undefined) throw new Fault('no-leader', 'another server leads this fleet now')
    const at = textOf(held, 'at')
    const former = renderFormerSchema(from.release, at)
    await session.query(`ALTER SCHEMA ${SCHEMA_NAME} RENAME TO ${former}`)
    await createTables(session, tables)
    for (const name of [...OF_ALL, ...listCarried(tables)]) {
      await carry(session, former, name)
    }
    await session.query(
      `UPDATE ${SCHEMA_NAME}.lease SET "schema" = $1, seq = seq + 1, beat = beat + 1`,
      [SCHEMA],
    )
    await session.query(
      `INSERT INTO ${SCHEMA_NAME}.change (seq, id, keys)
       SELECT seq, $1, '${ALL_KEYS}' FROM ${SCHEMA_NAME}.lease`,
      [randomUUID()],
    )
    await record(session, { at, former, from: from.release, to: release })
    return former
  })
}

const listCarried = (tables: readonly SharedTable[]): readonly string[] => {
  const carried: readonly string[] = CARRIED
  return tables.map(({ name }) => name).filter((name) => carried.includes(name))
}

async function carry(session: PgSession, former: string, table: string): Promise<void> {
  const rows = await session.query(
    `SELECT quote_ident(column_name::text) AS name FROM information_schema.columns
     WHERE table_name = $1 AND table_schema IN ($2, $3) GROUP BY 1 HAVING count(*) = 2 ORDER BY 1`,
    [table, former, SCHEMA_NAME],
  )
  const columns = rows.map((row) => textOf(row, 'name')).join(', ')
  if (columns === '') return
  await session.query(
    `INSERT INTO ${SCHEMA_NAME}.${table} (${columns}) SELECT ${columns} FROM ${former}.${table}`,
  )
}

interface Reset {
  readonly at: string
  readonly former: string
  readonly from: string
  readonly to: string
}

async function record(session: PgSession, { at, former, from, to }: Reset): Promise<void> {
  const [counted] = await session.query(`SELECT count(*) AS machines FROM ${SCHEMA_NAME}.machines`)
  const machines = numberIn(counted, 'machines')
  const summary = `Upgraded from ${from} to ${to}: ${machines} machines, their hardware, runs and events, the settings, the tokens and the people were kept. The old tables are the schema ${former} of the database.`
  const details = JSON.stringify({ from_version: from, to_version: to, archived_at: former })
  const { subject_kind, actor } = SYSTEM_EVENT
  await session.query(
    `INSERT INTO ${SCHEMA_NAME}.events
       (id, ts, kind, subject_kind, actor, summary, details, alarm, acknowledged)
     SELECT coalesce(max(id), 0) + 1, $1, 'system.schema.reset', $2, $3, $4, $5, 0, 0 FROM ${SCHEMA_NAME}.events`,
    [at, subject_kind, actor, summary, details],
  )
}

// Brings `state.db` to where the database is, from one moment of it.

/** `accept-older`: takes what the database has, though it is older than `state.db`. */
type Start = 'usual' | 'import' | 'accept-older'

/** The newest change and the rows must belong to one moment. */
const ONE_MOMENT = 'ISOLATION LEVEL REPEATABLE READ READ ONLY'

/**
 * Reads what `state.db` lacks, or everything if it follows no database yet. Rejects with a Fault
 * `input-invalid` if it belongs to another database, that one is older than it, or it has machines
 * that no database has.
 */
export async function catchUp(
  session: PgSession,
  file: SqliteFile,
  start: Start,
): Promise<Position> {
  const membership = readMembership(file)
  if (membership === null && start !== 'import') refuseOwnMachines(file)
  const tables = listTables(file)
  return await session.transact(ONE_MOMENT, async () => {
    const ends = await readLogEnds(session, membership?.seq ?? NOWHERE)
    const since = START[start](membership, ends)
    if (since === 'nothing') return ends.newest
    const keys = since === null ? null : await readKeys(session, since)
    const changes = await readChanges(session, tables, keys)
    // Until its orders are gone, a state that takes an older database is refused as before.
    const isKept = start === 'accept-older' && membership !== null
    const reached = isKept ? membership : { cluster: ends.cluster, ...ends.newest }
    file.transact(() => (keys === null ? replaceAll : applyChanges)(file, changes, reached))
    return ends.newest
  })
}

/** Sightings are no changes of the log: a copy has those of its records' last changes. */
async function copySightings(session: PgSession, file: SqliteFile): Promise<void> {
  const rows = await session.query(
    `SELECT mac, last_seen_at AS at, last_seen_ip AS ip FROM ${SCHEMA_NAME}.machines WHERE last_seen_at IS NOT NULL AND last_seen_ip IS NOT NULL`,
  )
  file.transact(() => {
    for (const row of rows) {
      const [at, ip] = [textOf(row, 'at'), textOf(row, 'ip')]
      file.run(SEE_LATER, at, ip, textOf(row, 'mac'), at)
    }
  })
}

const SEE_LATER =
  'UPDATE machines SET last_seen_at = ?, last_seen_ip = ? WHERE mac = ? AND last_seen_at IS NOT ?'

type Since = (membership: ClusterMembership | null, ends: LogEnds) => number | null | 'nothing'

const START: Readonly<Record<Start, Since>> = {
  usual(membership, ends) {
    switch (decideCatchUp(membership, ends)) {
      case 'other-database':
        throw OTHER
      case 'older-database':
        throw OLDER
      case 'nothing':
        return 'nothing'
      case 'changes':
        return membership?.seq ?? null
      case 'everything':
        return null
    }
  },
  'accept-older': (membership, ends) =>
    decideCatchUp(membership, ends) === 'older-database' ? null : START.usual(membership, ends),
  import(membership, ends) {
    if (membership === null && ends.newest.seq === 0) return 'nothing'
    throw NOT_EMPTY
  },
}

/** The log keeps an hour: millions of changes in a large fleet. */
const PAGE_CHANGES = 1000

/** Null: everything; this server was away for longer than the log. */
async function readKeys(session: PgSession, since: number): Promise<ChangedKeys> {
  const list = createKeyList()
  let last = since
  for (;;) {
    const page = await readKeysSince(session, last, PAGE_CHANGES)
    if (!page.every(({ keys }) => list.add(keys))) return null
    last = page.at(-1)?.seq ?? last
    if (page.length < PAGE_CHANGES) return list.all()
  }
}

async function readChanges(
  session: PgSession,
  tables: readonly SharedTable[],
  keys: ChangedKeys,
): Promise<readonly TableChange[]> {
  const changes: TableChange[] = []
  for (const table of tables) {
    const wanted = keys === null ? null : (keys.get(table.name) ?? [])
    if (wanted?.length === 0) continue
    const { text, values } =
      wanted === null ? { text: renderReadAll(table), values: [] } : renderRead(table, wanted)
    const rows = (await session.query(text, values)).map((row) => readCells(table, row))
    // Keys without a row now; the present rows come right after.
    changes.push({ table, rows, removed: wanted ?? [] })
  }
  return changes
}

const readCells = (table: SharedTable, row: PgRow): RowCells =>
  table.columns.map(({ name }) => {
    const value = row[name] ?? null
    const isCell =
      value === null ||
      typeof value === 'string' ||
      typeof value === 'number' ||
      value instanceof Uint8Array
    if (isCell) return value
    throw new TypeError(`the database has an unexpected value in ${table.name}.${name}`)
  })

function refuseOwnMachines(file: SqliteFile) {
  if (file.get('SELECT 1 AS n FROM machines LIMIT 1') === null) return
  throw new Fault('input-invalid', `${file.path} holds machines and belongs to no database yet`, {
    hint: 'Import them into an empty database with flasher-web database import. To use the contents of the database instead, move the file.',
  })
}

const NOT_EMPTY = new Fault(
  'input-invalid',
  'only a detached state can be imported, and only into an empty database',
  {
    hint: 'Use an empty database (createdb), or start the server with an empty state folder to use what this one has.',
  },
)

const OTHER = new Fault('input-invalid', 'this state belongs to another database', {
  hint: 'Correct database.url, or detach this state first with flasher-web database detach.',
})

const OLDER = new Fault(
  'input-invalid',
  'the database is older than this state and lacks acknowledged changes',
  {
    hint: 'Restore the newer database, or accept the older one with flasher-web database accept-older, which disarms every machine.',
  },
)
