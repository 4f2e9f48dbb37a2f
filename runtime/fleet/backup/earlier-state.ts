/** Reads the state folder of a server of the earlier line, ours or the deployed one; nothing in it is changed. */
import { copyFile, mkdtemp, readdir, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Fault, ifMissing } from '#kit/foundation/fault.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { decodeDeployedRow } from '#fleet/machine/rules/flash-events.ts'
import { readMarker, SCHEMA } from '#fleet/state/schema.ts'
import { openSqlite, readText, type SqliteFile } from '#fleet/state/sqlite.ts'
import { removeName, removeTree } from '#kit/host/folders.ts'
import { isThere } from '#kit/config/state-dirs.ts'

interface EarlierState {
  readonly records: readonly unknown[]
  /** Names in the folder, and in its folder of boot files. */
  readonly entries: readonly string[]
  readonly bootFiles: readonly string[]
}

const DATABASE = 'state.db'

/** Reads a snapshot. Rejects with a Fault, `input-missing` without a database. */
export async function readEarlierState(folder: string): Promise<EarlierState> {
  const entries = await listNames(folder)
  if (!entries.includes(DATABASE)) {
    throw new Fault('input-missing', `${folder} holds no ${DATABASE}`, {
      hint: 'Name the state folder of the earlier server, for example /var/lib/flasher.',
    })
  }
  await using snapshot = await takeSnapshot(folder)
  const records = await readRecords(snapshot.path, join(folder, DATABASE))
  return { records, entries, bootFiles: await listNames(join(folder, 'boot')) }
}

/** `name`: the file's name for people. */
async function readRecords(path: string, name: string): Promise<readonly unknown[]> {
  const deployed = await readDeployedMachines(path)
  if (deployed !== null) return deployed.map(decodeDeployedRow)
  using file = openSqlite(path)
  const found = readMarker(file)
  if (found.kind !== 'marked') {
    throw new Fault('input-invalid', `${name} is not the state of an earlier server`)
  }
  const { line, schema, release } = found.marker
  if (line !== 'earlier') {
    throw new Fault('input-invalid', `${name} belongs to a server of the ${line} line`, {
      hint: 'Export its machines with `flasher-web export`, and import that bundle.',
    })
  }
  if (schema > SCHEMA) {
    throw new Fault('input-invalid', `${name} was written by the newer release ${release}`, {
      hint: 'Import it with that release or a later one.',
    })
  }
  return listRecords(file)
}

/** The newest sighting is in the row, not in the record. */
const listRecords = (file: SqliteFile): readonly unknown[] =>
  file
    .all('SELECT record, last_seen_at, last_seen_ip FROM machines ORDER BY mac')
    .map(({ last_seen_at, last_seen_ip, ...row }) => {
      const record = parseJson(readText(row, 'record'))
      return typeof record === 'object' ? { ...record, last_seen_at, last_seen_ip } : record
    })

const TRIES = 20

/** A consistent copy, as a server may be running. `await using` removes it. */
async function takeSnapshot(folder: string) {
  await using undo = new AsyncDisposableStack()
  const copy = await mkdtemp(join(tmpdir(), 'flasher-import-'))
  undo.defer(() => removeTree(copy))
  const path = join(copy, DATABASE)
  for (let tries = 0; ; tries += 1) {
    const before = await stamp(folder)
    await removeName(`${path}-wal`)
    await copyFile(join(folder, DATABASE), path)
    if (before.hasWal) {
      await copyFile(join(folder, `${DATABASE}-wal`), `${path}-wal`).catch(ifMissing(undefined))
    }
    const isWriting = before.isJournaled || (await stamp(folder)).text !== before.text
    if (!isWriting) break
    if (tries === TRIES) {
      throw new Fault('busy', `${join(folder, DATABASE)} is being written to`, {
        hint: 'Stop the earlier server, and try again.',
      })
    }
  }
  const held = undo.move()
  return { path, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

async function stamp(folder: string) {
  const parts = await Promise.all(
    ['', '-wal', '-journal'].map((end) => describe(join(folder, `${DATABASE}${end}`))),
  )
  return { text: parts.join(' '), hasWal: parts[1] !== '', isJournaled: parts[2] !== '' }
}

/** Empty: no such file, or an empty one. */
async function describe(path: string): Promise<string> {
  const file = await stat(path, { bigint: true }).catch(ifMissing(null))
  return file === null || file.size === 0n ? '' : `${file.ino}:${file.size}:${file.mtimeNs}`
}

const listNames = async (folder: string): Promise<readonly string[]> =>
  (await readdir(folder).catch(ifMissing([]))).toSorted()

/** Reads the machines of a database that the deployed server of the earlier line wrote. */
type DeployedRow = Readonly<Record<string, unknown>>

/** Null: no file, or no such database. Nothing is changed. */
export async function readDeployedMachines(path: string): Promise<readonly DeployedRow[] | null> {
  if (!(await isThere(path))) return null
  using file = openSqlite(path)
  const tables = file.listTables()
  if (tables.includes('flasher_state') || !tables.includes('machines')) return null
  const isEarlier = file.listColumns('main', 'machines').includes('boot_policy')
  return isEarlier ? file.all('SELECT * FROM machines') : null
}
