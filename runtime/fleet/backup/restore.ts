/** Restores a backup, the whole database or an inventory alone; checks it before anything changes. */
import { mkdir, mkdtemp, open, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Fault, isMissing, renderError } from '#kit/foundation/fault.ts'
import {
  type BackupFile,
  type BackupManifest,
  compareFleets,
  listChangedNames,
  type MachineDifference,
} from './rules/backup.ts'
import type { BackupStore, StoredBackup } from './backup-store.ts'
import { INVENTORY, type Bundles } from './backup-maker.ts'
import {
  disarmAll,
  listArmed,
  readRecords,
  type DisarmedMachine,
  type OrderRules,
} from './disarming.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import { removeTree } from '#kit/host/folders.ts'
import { dropMembership } from '#fleet/state/membership.ts'
import type { Database } from '#fleet/state/database.ts'
import { inspectState, listOwnParts } from '#fleet/state/schema.ts'
import { closeWhole } from '#fleet/state/rotation.ts'
import {
  openSqlite,
  readText,
  readTextOrNull,
  type Sql,
  type SqliteFile,
} from '#fleet/state/sqlite.ts'
import { createReadStream } from 'node:fs'

export interface Restored {
  readonly backup_id: string
  /** `inventory`: hardware alone, as in an import. */
  readonly kind: 'full' | 'inventory'
  readonly machines: number
  /** The `.bak` with the former state; null: nothing was replaced. */
  readonly archive: string | null
  /** The release that wrote it; null: unknown. */
  readonly release: string | null
  /** Machines that lost their orders; an operator has to order again. */
  readonly disarmed: readonly DisarmedMachine[]
}

export interface Restorer {
  restore(backup: StoredBackup, onProgress: OnProgress): Promise<Restored>
  /** Changes nothing. */
  foresee(backup: StoredBackup): Promise<Foreseen>
}

export interface Foreseen {
  readonly disarmed: readonly DisarmedMachine[]
  /** Null: a backup of hardware alone, which assigns nothing. */
  readonly differences: Differences | null
}

export interface Differences {
  readonly machines: readonly MachineDifference[]
  readonly unchanged: number
  /** Names of stored settings that change or disappear. */
  readonly settings: readonly string[]
}

type OnProgress = (done: number, total: number) => void

interface RestorerDependencies<Machine extends MachineBase> {
  readonly database: Database
  readonly bundles: Bundles
  readonly store: Pick<BackupStore, 'read' | 'readBare'>
  readonly orders: OrderRules<Machine>
  now?(): Date
}

/** Rejects with a Fault if a backup is damaged, too new or of another line; nothing changes. */
export function createRestorer<Machine extends MachineBase>({
  database,
  bundles,
  store,
  orders,
  now = () => new Date(),
}: RestorerDependencies<Machine>): Restorer {
  const folder = join(dirname(database.path), '.restore')
  const iso = () => now().toISOString()
  const { fetchTo, disarmIn, foreseeWhole } = createCandidates({ database, store, orders, iso })

  async function restoreFull(
    backup: StoredBackup,
    file: BackupFile,
    onProgress: OnProgress,
  ): Promise<Restored> {
    const candidate = join(folder, 'state.db')
    await removeTree(folder)
    await mkdir(folder, { mode: 0o700 })
    try {
      await fetchTo(candidate, backup, file, onProgress)
      const { release } = inspectState(candidate, database.line)
      let disarmed: readonly DisarmedMachine[] = []
      const archive = await database.replaceWith(candidate, () => {
        disarmed = disarmIn(candidate)
      })
      const machines = Number(database.sql.get('SELECT count(*) AS n FROM machines')?.['n'])
      const { backup_id } = backup
      return { backup_id, kind: 'full', machines, archive, release, disarmed }
    } finally {
      await removeTree(folder)
    }
  }

  async function readInventory({ backup_id, manifest }: StoredBackup): Promise<string> {
    const stored = manifest?.files.find(({ name }) => name === INVENTORY)
    const text =
      stored === undefined
        ? await store.readBare(backup_id)
        : Buffer.concat(await Array.fromAsync(store.read(backup_id, stored)))
    if (text === null) throw new Fault('not-found', `there is no backup ${backup_id}`)
    return text.toString('utf8')
  }

  /** An import clears what its machines were to do. */
  async function restoreInventory(backup: StoredBackup): Promise<Restored> {
    const { backup_id, manifest } = backup
    if (database.isStandIn()) throw nothingToImportInto(database, backup_id)
    const text = await readInventory(backup)
    const armed = listArmed(database.sql, orders, iso())
    const machines = await bundles.importText(text, `backup ${backup_id}`)
    const left = new Set(listArmed(database.sql, orders, iso()).map(({ mac }) => mac))
    const disarmed = armed.filter(({ mac }) => !left.has(mac))
    const release = manifest?.release ?? null
    return { backup_id, kind: 'inventory', machines, archive: null, release, disarmed }
  }

  return {
    async restore(backup, onProgress) {
      const file = findDatabase(backup, database.line)
      return file === null ? restoreInventory(backup) : restoreFull(backup, file, onProgress)
    },
    async foresee(backup) {
      const file = findDatabase(backup, database.line)
      if (file !== null) return foreseeWhole(folder, backup, file)
      const macs = bundles.listMacs(await readInventory(backup), `backup ${backup.backup_id}`)
      const armed = listArmed(database.sql, orders, iso())
      return { disarmed: armed.filter(({ mac }) => macs.has(mac)), differences: null }
    },
  }
}

function createCandidates<Machine extends MachineBase>({
  database,
  store,
  orders,
  iso,
}: Pick<RestorerDependencies<Machine>, 'database' | 'store' | 'orders'> & { iso(): string }) {
  async function fetchTo(
    path: string,
    { backup_id }: StoredBackup,
    stored: BackupFile,
    onProgress: OnProgress,
  ) {
    await using file = await open(path, 'wx', 0o600)
    let done = 0
    for await (const bytes of store.read(backup_id, stored)) {
      await file.writeFile(bytes)
      done += bytes.length
      onProgress(done, stored.bytes)
    }
    await file.sync()
  }

  /** Before it is in force, it must arm nothing and let nobody in again. */
  function disarmIn(candidate: string): readonly DisarmedMachine[] {
    const file = openSqlite(candidate)
    try {
      return file.transact(() => {
        // Its server may have followed a database; this one may not.
        dropMembership(file)
        keepEnds(file, database.sql, iso())
        return disarmAll(file, orders, iso(), readRecords(database.sql, orders))
      })
    } finally {
      closeWhole(file)
    }
  }

  /** The copy lies beside `folder` and is removed afterwards. */
  async function foreseeWhole(
    folder: string,
    backup: StoredBackup,
    file: BackupFile,
  ): Promise<Foreseen> {
    await using scratch = await makeScratch(folder)
    await fetchTo(scratch.path, backup, file, () => undefined)
    inspectState(scratch.path, database.line)
    const disarmed = disarmIn(scratch.path)
    return { disarmed, differences: compareWith(scratch.path, database, orders) }
  }

  return { fetchTo, disarmIn, foreseeWhole }
}

function compareWith<Machine extends MachineBase>(
  candidate: string,
  { sql }: Database,
  orders: OrderRules<Machine>,
): Differences {
  const file = openSqlite(candidate)
  try {
    const [present, restored] = [sql, file].map((each) => [...readRecords(each, orders)])
    const machines = compareFleets(present ?? [], restored ?? [], orders)
    const gone = machines.filter(({ kind }) => kind === 'goes').length
    const unchanged = (restored?.length ?? 0) + gone - machines.length
    const settings = listChangedNames(readSettings(sql), readSettings(file))
    return { machines, unchanged, settings }
  } finally {
    closeWhole(file)
  }
}

const readSettings = (sql: Sql): ReadonlyMap<string, string> =>
  new Map(
    sql
      .all('SELECT name, value FROM settings')
      .map((row) => [readText(row, 'name'), readText(row, 'value')]),
  )

/** For a copy that is only read. `await using` removes it. */
async function makeScratch(folder: string) {
  const scratch = await mkdtemp(`${folder}-`)
  return {
    path: join(scratch, 'state.db'),
    [Symbol.asyncDispose]: () => removeTree(scratch),
  }
}

function findDatabase({ backup_id, manifest }: StoredBackup, line: string): BackupFile | null {
  if (manifest !== null && manifest.line !== line) {
    throw new Fault(
      'conflict',
      `backup ${backup_id} belongs to the ${manifest.line} release line`,
      {
        hint: 'Nothing was changed. Restore it with that line.',
      },
    )
  }
  return manifest?.files.find(({ name }) => name === 'state.db') ?? null
}

const nothingToImportInto = ({ path }: Database, id: string) =>
  new Fault('conflict', `backup ${id} has only hardware data, and ${path} is damaged`, {
    hint: 'Move that file first, or restore a backup with a database.',
  })

const PEOPLE = ['id', 'record', 'password', 'updated_at', 'removed_at'] as const

const REMOVE_NAMESAKES = `UPDATE people SET removed_at = ?, updated_at = ?, password = NULL
  WHERE removed_at IS NULL AND id <> ? AND json_extract(record, '$.name') = json_extract(?, '$.name')`

/** Unknown sessions may have ended since, so every person gets a new mark. */
const END_SESSIONS = `UPDATE people SET record = json_set(record, '$.mark', lower(hex(randomblob(9))))
  WHERE json_valid(record)`

/**
 * An older state must bring back no password, role, session or person that was changed or removed
 * since: people in `present` stay as they are there. People that only the older state knows come
 * back without a session, unless their name is taken. Revoked tokens stay revoked.
 */
function keepEnds(file: SqliteFile, present: Sql, at: string): void {
  const tables = file.listTables()
  // An older copy lacks the table; its upgrade takes this one over.
  if (!tables.includes('people')) file.execute(listOwnParts().get('people') ?? '')
  file.run(END_SESSIONS)
  const people = present.all(`SELECT ${PEOPLE.join(', ')} FROM people`)
  const values = PEOPLE.map(() => '?').join(', ')
  for (const row of people) {
    const kept = PEOPLE.map((name) => readTextOrNull(row, name))
    file.run(`INSERT OR REPLACE INTO people (${PEOPLE.join(', ')}) VALUES (${values})`, ...kept)
  }
  for (const row of people.filter((each) => readTextOrNull(each, 'removed_at') === null)) {
    file.run(REMOVE_NAMESAKES, at, at, readText(row, 'id'), readText(row, 'record'))
  }
  if (!tables.includes('tokens')) return
  for (const row of present.all('SELECT id, revoked_at FROM tokens WHERE revoked_at IS NOT NULL')) {
    file.run(REVOKE, readText(row, 'revoked_at'), readText(row, 'id'))
  }
}

const REVOKE = 'UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL'

/** Opens a single file as if it were a stored backup: a database copy, or an inventory. */
interface FileBackup {
  readonly backup: StoredBackup
  readonly store: Pick<BackupStore, 'read' | 'readBare'>
}

const SQLITE = 'SQLite format 3\0'

/** A restore checks what is in it. Rejects with a Fault if it cannot be read. */
export async function openFileBackup(path: string, line: string): Promise<FileBackup> {
  const bytes = await measure(path)
  const isDatabase = (await readStart(path)) === SQLITE
  const manifest: BackupManifest = {
    version: 1,
    backup_id: path,
    created_at: '',
    release: '',
    line,
    trigger: 'file',
    machines: 0,
    number: 1,
    files: [{ name: 'state.db', bytes, sha256: '', pieces: [] }],
  }
  return {
    backup: { backup_id: path, manifest: isDatabase ? manifest : null, bytes },
    store: {
      async *read() {
        for await (const chunk of createReadStream(path)) {
          if (Buffer.isBuffer(chunk)) yield chunk
        }
      },
      readBare: () => readFile(path),
    },
  }
}

async function measure(path: string): Promise<number> {
  try {
    const found = await stat(path)
    if (found.isFile()) return found.size
  } catch (cause) {
    const isAbsent = isMissing(cause)
    const what = isAbsent
      ? 'is neither a backup nor a file'
      : `cannot be read: ${renderError(cause)}`
    throw new Fault('input-missing', `${path} ${what}`, {
      hint: isAbsent ? LIST : undefined,
      cause,
    })
  }
  throw new Fault('input-invalid', `${path} is no file`)
}

const LIST = 'On a terminal, "flasher-web restore" lists the backups to choose from.'

async function readStart(path: string): Promise<string> {
  await using file = await open(path, 'r')
  const { buffer, bytesRead } = await file.read(Buffer.alloc(SQLITE.length), 0, SQLITE.length, 0)
  return buffer.toString('latin1', 0, bytesRead)
}
