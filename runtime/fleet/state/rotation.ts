/** Archives the database of another release and creates a new one ("Database upgrade"). */
import { constants, copyFileSync, existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { Fault } from '#kit/foundation/fault.ts'
import { NOWHERE, MEMBERSHIP_TABLE, readMembership, writeMembership } from './membership.ts'
import { planArchivePruning, renderArchiveName } from './rules/change-count.ts'
import { linkNameNow, moveNameNow, removeNameNow, syncNow } from '#kit/host/folders.ts'
import { insertEvent, SYSTEM_EVENT } from './event-rows.ts'
import { listFileUsers } from './lock.ts'
import { CARRIED, writeSchema, type Marker } from './schema.ts'
import { openSqlite, readNumber, type SqliteFile } from './sqlite.ts'

export interface SchemaReset {
  readonly from_version: string
  readonly to_version: string
  readonly archived_at: string
}

interface Rotation {
  readonly path: string
  readonly from: string
  readonly to: Marker
  /** Its tables are known: machines and settings can be carried over. */
  readonly carry: boolean
  readonly isBare: boolean
  /** ISO time. */
  readonly now: string
}

/**
 * The new file is whole and on disk before it takes the name: a crash leaves the old database or
 * the new one. `path` must be closed and without `-wal`.
 */
export function rotateState({ path, from, to, carry, isBare, now }: Rotation): SchemaReset {
  const fresh = `${path}.new`
  removeDatabase(fresh)
  const archive = reserveArchive(path, from, now)
  const reset = { from_version: from, to_version: to.release, archived_at: basename(archive) }
  try {
    using file = openSqlite(fresh)
    file.execute('PRAGMA synchronous = FULL')
    if (carry) file.run('ATTACH DATABASE ? AS former', path)
    file.transact(() => {
      writeSchema(file, to)
      const machines = carry ? carryOver(file) : null
      const summary = isBare ? describeBare(path, reset) : describeReset(reset, machines)
      const kind = 'system.schema.reset'
      insertEvent(file, { ...SYSTEM_EVENT, ts: now, kind, summary, details: { ...reset } })
    })
    if (carry) file.execute('DETACH DATABASE former')
  } catch (thrown) {
    removeDatabase(fresh)
    throw thrown
  }
  archiveFile(path, archive)
  moveNameNow(fresh, path)
  return reset
}

const describeReset = (reset: SchemaReset, machines: number | null): string =>
  machines === null
    ? `The database of ${reset.from_version} was moved to ${reset.archived_at}; none of its data could be imported.`
    : `Upgraded from ${reset.from_version} to ${reset.to_version}: ${machines} machines, their hardware, runs and events, the settings, the tokens and the people were kept. The old database is ${reset.archived_at}.`

const describeBare = (path: string, { archived_at }: SchemaReset): string =>
  `${basename(path)} had no tables, like a copy that was made without its ${basename(path)}-wal, and was moved to ${archived_at}. A new database was created. You can restore a backup.`

function carryOver(file: SqliteFile): number {
  const [ours, theirs] = [file.listTables(), file.listTables('former')]
  for (const table of CARRIED.filter((name) => ours.includes(name) && theirs.includes(name))) {
    const former = file.listColumns('former', table)
    const columns = file.listColumns('main', table).filter((name) => former.includes(name))
    const list = columns.join(', ')
    file.execute(`INSERT INTO main.${table} (${list}) SELECT ${list} FROM former.${table}`)
  }
  // It follows the same database, and reads everything anew.
  const membership = theirs.includes(MEMBERSHIP_TABLE) ? readMembership(file, 'former') : null
  if (membership !== null) writeMembership(file, { ...membership, seq: NOWHERE })
  return readNumber(file.get('SELECT count(*) AS n FROM machines'), 'n')
}

/**
 * The file is whole before it has its name, so a file of that name without our tables is foreign. A
 * lost file's log is put aside.
 */
export function beginState(path: string, marker: Marker, now: string): void {
  const fresh = `${path}.new`
  removeDatabase(fresh)
  {
    using file = openSqlite(fresh)
    file.execute('PRAGMA synchronous = FULL')
    file.transact(() => writeSchema(file, marker))
  }
  for (const tail of COMPANIONS) {
    const left = `${path}${tail}`
    if (existsSync(left)) moveNameNow(left, reserveArchive(left, 'lost', now))
  }
  moveNameNow(fresh, path)
}

/**
 * Folds the `-wal`, so that the one file is whole. Throws a Fault `busy` if another program has it
 * open; the file may be closed then.
 */
export function closeWhole(file: SqliteFile): void {
  if (!file.fold()) throw usedBy(file.path)
  file.close()
  if (existsSync(`${file.path}-wal`)) throw usedBy(file.path)
}

function usedBy(path: string): Fault {
  const [user = 'another process'] = listFileUsers(path).map((each) => `process ${each}`)
  return new Fault('busy', `${user} has ${path} open`, {
    hint: 'End that program and try again; nothing was changed.',
  })
}

/** A free name. The release comes from the file, so it is made safe. */
export function reserveArchive(path: string, from: string, now: string): string {
  for (let attempt = 0; ; attempt += 1) {
    const archive = join(dirname(path), renderArchiveName(basename(path), from, now, attempt))
    if (!existsSync(archive)) return archive
  }
}

/** A second name for a closed database; a copy if the file system has no links. */
export function archiveFile(path: string, archive: string): void {
  try {
    linkNameNow(path, archive)
  } catch {
    copyFileSync(path, archive, constants.COPYFILE_EXCL)
    syncNow(archive)
    syncNow(dirname(path))
  }
}

/** Keeps the newest archives, and `made`. */
export function pruneArchives(path: string, kept: Parameters<typeof planArchivePruning>[2]): void {
  const folder = dirname(path)
  const old = planArchivePruning(readdirSync(folder), basename(path), kept)
  for (const name of old) removeDatabase(join(folder, name))
}

export const COMPANIONS = ['-wal', '-shm', '-journal'] as const

export function removeDatabase(path: string): void {
  for (const tail of ['', ...COMPANIONS]) removeNameNow(`${path}${tail}`)
}
