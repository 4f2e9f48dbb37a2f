/** Group commit under a shared database: a unit is durable there, in a fenced transaction, before `state.db` has it. */
import { Fault, type FaultCode, renderError } from '#kit/foundation/fault.ts'
import { settle } from '#kit/host/watch.ts'
import {
  createUnit,
  type Commits,
  attemptUnit,
  type CommitsDependencies,
  type SeenMachine,
  type Unit,
} from '#fleet/state/commits.ts'
import { explainSqlite, type Sql, type SqliteFile } from '#fleet/state/sqlite.ts'
import type { Leader } from './leader.ts'
import type { ClusterTimes, Position } from './rules/lease.ts'
import { NOWHERE, writeMembership } from '#fleet/state/membership.ts'
import { applyChanges, listTables, readParts, readTouched, watchRows } from './tables.ts'
import type { SharedTable, TableChange } from './rules/shared-tables.ts'

const LOOK_MS = 250
/** More in one statement make everybody wait for the first. */
const MAX_UNITS = 200
/** Units that wait while the database is away; more are refused at once. */
const MAX_WAITING = 10_000

/**
 * Each group is done in a transaction of `state.db` that is then undone, so that nobody reads what
 * is not durable. Its changes go to the database, and once they are there into `state.db`. Then the
 * next group begins.
 */
export function createGroupCommits(
  dependencies: LocalDependencies,
  { holdMs }: Pick<ClusterTimes, 'holdMs'>,
): Commits {
  const { current, leader } = dependencies
  const local = createLocalState(dependencies)
  const queue = createQueue(dependencies, createGroup(dependencies, local, holdMs), holdMs)

  const write = <T>(work: (sql: Sql) => T): Promise<T> =>
    new Promise((resolve, reject) => queue.add(createUnit(current, work, resolve, reject)))

  return {
    count: queue.count,
    write,
    confirm: () => write(() => true),
    confirmRead: () => (leader.isSure() ? true : write(() => true)),
    settle: queue.settle,
    see(batch) {
      leader.see(batch)
      local.see(batch)
      return Promise.resolve()
    },
    exchange: (swap) =>
      queue.alone(async () => {
        // If the other file is unusable, this one returns to its place.
        const archive = swap()
        try {
          await local.share()
        } catch (thrown) {
          throw leader.giveUp(thrown)
        }
        return archive
      }),
    async detach() {
      await settle(queue.settle(), holdMs)
      queue.end()
      await leader.stop()
    },
  }
}

function createGroup(
  { current, leader }: LocalDependencies,
  local: ReturnType<typeof createLocalState>,
  holdMs: number,
) {
  /** Its work did not throw, and is young enough for somebody to wait. */
  const isWaited = ({ hasFailed, since }: Waiting): boolean =>
    !hasFailed && performance.now() - since <= holdMs

  async function store(units: readonly Waiting[]): Promise<void> {
    const { changes, done } = local.rehearse(units)
    if (done.length === 0) return
    if (changes.length === 0) await leader.confirm()
    else await local.store(changes, await leader.append(changes))
    for (const resolve of done) resolve()
  }

  return async function commit(units: readonly Waiting[]): Promise<void> {
    try {
      await store(units)
    } catch (thrown) {
      const why = explainSqlite(thrown, current().path)
      const isOfThese = why instanceof Fault && DIVISIBLE.includes(why.code)
      const left = isOfThese && leader.ended() === null ? units.filter(isWaited) : []
      if (units.length < 2 || left.length === 0) {
        for (const { unit } of units) unit.fail(why)
        return
      }
      for (const each of units) if (!left.includes(each)) each.unit.fail(why)
      // One unit has what the database refuses, and fails alone; or they are too much at once.
      const middle = Math.floor(left.length / 2)
      await commit(left.slice(0, middle))
      await commit(left.slice(middle))
    }
  }
}

const DIVISIBLE: readonly FaultCode[] = ['input-invalid', 'no-leader']

function createQueue(
  { leader, outdate }: Pick<LocalDependencies, 'leader' | 'outdate'>,
  commit: (units: readonly Waiting[]) => Promise<void>,
  holdMs: number,
) {
  const queue: Waiting[] = []
  let inFlight: readonly Waiting[] = []
  let running: Promise<unknown> | null = null
  let count = 0

  async function run() {
    // All units of this moment join the first group.
    await new Promise(setImmediate)
    while (queue.length > 0) {
      inFlight = queue.splice(0, MAX_UNITS)
      const since = inFlight[0]?.since ?? 0
      await commit(inFlight)
      count += 1
      // Somebody got no answer and has read the former rows.
      if (performance.now() - since > holdMs) outdate()
      inFlight = []
    }
  }

  function start<T>(work: () => Promise<T>): Promise<T> {
    const mine = work().finally(() => {
      running = null
      if (queue.length > 0) void start(run)
    })
    // Its failure reaches whoever asked for it.
    running = mine.catch(() => undefined)
    return mine
  }

  const watch = setInterval(() => {
    const limit = performance.now() - holdMs
    for (const { unit, since } of inFlight) if (since < limit) unit.fail(held(leader))
    while ((queue[0]?.since ?? Infinity) < limit) queue.shift()?.unit.fail(held(leader))
  }, LOOK_MS).unref()

  const drain = async (): Promise<void> => {
    if (running === null) return
    await running
    await drain()
  }

  return {
    count: () => count,
    settle: drain,
    add(unit: Waiting['unit']): void {
      const ended = leader.ended()
      if (ended !== null || queue.length >= MAX_WAITING) {
        unit.fail(ended ?? held(leader))
        return
      }
      queue.push({ unit, since: performance.now(), hasFailed: false })
      if (running === null) void start(run)
    },
    async alone<T>(work: () => Promise<T>): Promise<T> {
      if (running !== null) {
        await running
        return await this.alone(work)
      }
      const made = await start(work)
      outdate()
      return made
    },
    end: () => clearInterval(watch),
  }
}

const held = (leader: Leader): Fault =>
  new Fault('no-leader', leader.trouble() ?? 'the database did not answer in time', {
    hint: 'Try again: nothing is acknowledged before the database has it.',
  })

// The side of `state.db` in a group: done and undone, then stored once the database has it.

interface LocalDependencies extends CommitsDependencies {
  readonly leader: Leader
  /** Noted with each group's position. */
  readonly cluster: string
  readonly log: { warn(message: string): void }
}

interface Waiting {
  readonly unit: Unit
  readonly since: number
  hasFailed: boolean
}

const RETRY_MS = 1000

function createLocalState({ current, finish, leader, cluster, log }: LocalDependencies) {
  const tables: readonly SharedTable[] = listTables(current())
  let prepared: SqliteFile | null = null

  /** After a restore it is another file. */
  function file(): SqliteFile {
    const present = current()
    if (present !== prepared) watchRows(present, tables)
    prepared = present
    return present
  }

  return {
    /** Does units, reads their changes, and undoes them: nobody may read what can still fail. */
    rehearse(units: readonly Waiting[]) {
      const present = file()
      const done: (() => void)[] = []
      const changes = present.rehearse(() => {
        present.execute(FORGET)
        for (const each of units) {
          const fail = (thrown: unknown) => {
            each.hasFailed = true
            each.unit.fail(thrown)
          }
          attemptUnit(present, { perform: each.unit.perform, fail }, done)
        }
        return readTouched(present, tables)
      })
      return { changes, done }
    },
    /** The database has it, so this is repeated until the disk takes it, too. */
    async store(changes: readonly TableChange[], position: Position): Promise<void> {
      const membership = { cluster, ...position }
      for (let isTold = false; ; isTold = true) {
        try {
          const present = file()
          present.transact(() => {
            applyChanges(present, changes, membership)
            finish(present)
            present.execute(FORGET)
          })
          return
        } catch (thrown) {
          if (leader.ended() !== null) throw thrown
          const why = renderError(explainSqlite(thrown, current().path))
          if (!isTold) log.warn(`${why}: the database has this change, and all others wait`)
          await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
        }
      }
    },
    see(batch: readonly SeenMachine[]): void {
      const present = file()
      present.transact(() => {
        for (const { mac, at, ip } of batch) present.run(SEE, at, ip, mac)
        present.execute(FORGET)
      })
    },
    /** After this file was replaced: the database gets its rows. */
    async share(): Promise<void> {
      // If this process ends now, the next one reads the database as before.
      writeMembership(current(), { cluster, seq: NOWHERE, change: '' })
      const position = await leader.replaceAll(tables, (table) => readParts(current(), table))
      writeMembership(current(), { cluster, ...position })
    },
  }
}

const FORGET = 'DELETE FROM temp.touched'
const SEE = 'UPDATE machines SET last_seen_at = ?, last_seen_ip = ? WHERE mac = ?'
