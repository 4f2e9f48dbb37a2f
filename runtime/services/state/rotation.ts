/** Archives the database of another release and creates a new one ("Database upgrade"). */
import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { Fault } from '../../core/foundation/fault.ts'
import { planArchivePruning, renderArchiveName } from '../../core/state/state-archive.ts'
import { insertEvent, SYSTEM_EVENT } from './event-rows.ts'
import { CARRIED, writeSchema, type Marker } from './schema.ts'
import { openSqlite, readNumber, type SqliteFile } from './sqlite.ts'

export interface SchemaReset {
  readonly from_version: string
  readonly to_version: string
  /** The file's name beside the new database. */
  readonly archived_at: string
}

interface Rotation {
  readonly path: string
  /** The release that wrote what is there. */
  readonly from: string
  readonly to: Marker
  /** Whether its tables are known, so that machines and settings can be carried over. */
  readonly carry: boolean
  /** ISO time. */
  readonly now: string
}

/**
 * The fresh file is whole, and on disk, before it takes the name: a crash at any moment leaves either
 * the old database or the new one. `path` must be closed and without `-wal`.
 */
export function rotateState({ path, from, to, carry, now }: Rotation): SchemaReset {
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
      insertEvent(file, describeReset(reset, machines, now))
    })
    if (carry) file.execute('DETACH DATABASE former')
  } catch (thrown) {
    removeDatabase(fresh)
    throw thrown
  }
  archiveFile(path, archive)
  moveFile(fresh, path)
  return reset
}

const describeReset = (reset: SchemaReset, machines: number | null, now: string) => ({
  ...SYSTEM_EVENT,
  ts: now,
  kind: 'system.schema.reset',
  summary:
    machines === null
      ? `The database of ${reset.from_version} was put aside as ${reset.archived_at}; nothing of it could be taken over.`
      : `Upgraded from ${reset.from_version} to ${reset.to_version}: ${machines} machines, their hardware and runs, the settings and the tokens were taken over; the events of before were not, they are in the old database, ${reset.archived_at}.`,
  details: { ...reset },
})

/** Copies what both files know; returns how many machines. */
function carryOver(file: SqliteFile): number {
  const [ours, theirs] = [file.listTables(), file.listTables('former')]
  for (const table of CARRIED.filter((name) => ours.includes(name) && theirs.includes(name))) {
    const former = file.listColumns('former', table)
    const columns = file.listColumns('main', table).filter((name) => former.includes(name))
    const list = columns.join(', ')
    file.execute(`INSERT INTO main.${table} (${list}) SELECT ${list} FROM former.${table}`)
  }
  return readNumber(file.get('SELECT count(*) AS n FROM machines'), 'n')
}

/** Folds the `-wal` in and closes, so that the one file is the whole database. */
export function closeWhole(file: SqliteFile): void {
  const isAlone = file.fold()
  file.close()
  if (!isAlone || existsSync(`${file.path}-wal`)) {
    throw new Fault('busy', `another process still uses ${file.path}`, {
      hint: 'End the other flasher command and start again; nothing was changed.',
    })
  }
}

/** A name that is free. The release comes from the file, so it is made safe for a name. */
export function reserveArchive(path: string, from: string, now: string): string {
  for (let attempt = 0; ; attempt += 1) {
    const archive = join(dirname(path), renderArchiveName(basename(path), from, now, attempt))
    if (!existsSync(archive)) return archive
  }
}

/** Gives a closed database a second name; a copy where the file system knows no links. */
export function archiveFile(path: string, archive: string): void {
  try {
    linkSync(path, archive)
  } catch {
    copyFileSync(path, archive, constants.COPYFILE_EXCL)
    sync(archive)
  }
  sync(dirname(path))
}

/** Removes the oldest archives, so that `keep` of them stay. */
export function pruneArchives(path: string, keep: number): void {
  const folder = dirname(path)
  const old = planArchivePruning(readdirSync(folder), basename(path), keep)
  for (const name of old) rmSync(join(folder, name), { force: true })
}

/** A database and its companions. */
function removeDatabase(path: string): void {
  for (const tail of ['', '-wal', '-shm', '-journal']) rmSync(`${path}${tail}`, { force: true })
}

/** Survives a power cut. */
export function moveFile(from: string, to: string): void {
  renameSync(from, to)
  sync(dirname(to))
}

/** Makes a file, or new names in a folder, survive a power cut. */
function sync(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
