/** Stores backups as pieces of bounded size with their digests, through any unstorage driver. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createStorage, type Storage } from 'unstorage'
import { isBackupId, numberOf, orderBackups, sortBackups } from './rules/backup.ts'
import {
  parseManifest,
  renderManifest,
  type BackupManifest,
  type BackupFile,
} from './rules/backup-manifest.ts'
import { Fault } from '../../kit/foundation/fault.ts'
import { openBackupFolder } from './backup-folder.ts'
import { loadDriver, readValue } from './drivers.ts'

/** Drivers take and give whole values, so no value is larger than this. */
const PIECE_BYTES = 8 * 2 ** 20
const MANIFEST = 'manifest.json'
/** A backup of the earlier release line consists of this file alone; an export has it, too. */
const INVENTORY = 'inventory.json'
/** The files of a backup that has no manifest yet. */
const OURS = /^(?:state\.db|inventory\.json)(?:\.\d{6,})?$/

/** A backup that can be restored. */
export interface StoredBackup {
  readonly backup_id: string
  /** Null for one without a database: an inventory as the earlier release line made it. */
  readonly manifest: BackupManifest | null
  /** Null when it is not known without reading all of it. */
  readonly bytes: number | null
}

interface PutOptions {
  readonly signal: AbortSignal
  /** Files of at most so many bytes become one value of their own name. */
  readonly wholeUpTo: number
  onBytes(bytes: number): void
}

export type BackupStore = Awaited<ReturnType<typeof openBackupStore>>

export interface BackupStorage {
  /** `fs`, or another of unstorage's drivers. */
  readonly driver: string
  /** `fs`: where `base` is not among the options. */
  readonly folder: string
  readonly options: Readonly<Record<string, string | number | boolean>>
}

/**
 * Opens the store of backups at a place that a driver of unstorage reaches: a folder, a bucket. Its
 * calls reject with a Fault where the storage fails, or holds other bytes than were written.
 */
export async function openBackupStore(configured: BackupStorage, now = () => new Date()) {
  const storage = await openStorage(configured)

  /** Null when there is none, or it was never finished. */
  async function find(id: string): Promise<StoredBackup | null> {
    if (!isBackupId(id)) return null
    const text = await readValue(storage, key(id, MANIFEST))
    if (text === null) return findBare(id)
    const parsed = parseManifest(text.toString('utf8'), id)
    if (!parsed.ok) return null
    const bytes = parsed.value.files.reduce((sum, file) => sum + file.bytes, 0)
    return { backup_id: id, manifest: parsed.value, bytes }
  }

  const listNames = async (id: string) =>
    (await storage.getKeys(id)).map((name) => name.slice(id.length + 1))

  /** An inventory alone is a backup of the earlier line; one beside pieces is a backup that was cut short. */
  async function findBare(id: string): Promise<StoredBackup | null> {
    const names = await listNames(id)
    const isBare = names.length === 1 && names[0] === INVENTORY
    return isBare ? { backup_id: id, manifest: null, bytes: null } : null
  }

  /** Ids of which something is there, finished or not. */
  async function listTraces() {
    const keys = await storage.getKeys()
    return sortBackups([...new Set(keys.map((name) => name.split(':')[0] ?? ''))])
  }

  /** All that can be restored, newest first. */
  async function list(): Promise<readonly StoredBackup[]> {
    const found = await Array.fromAsync(await listTraces(), find)
    const stored = found.filter((backup) => backup !== null)
    return orderBackups(stored, now().getTime())
  }

  return {
    find,
    list,
    listTraces,
    /** The number of the backup that was made last; 0: none has a number. */
    findLastNumber: async (): Promise<number> => Math.max(0, ...(await list()).map(numberOf)),
    /** Ids of backups that a crash cut short: pieces of ours, and no manifest. */
    async listUnfinished() {
      const found = await Array.fromAsync(await listTraces(), async (id) => {
        const names = await listNames(id)
        const isOurs = names.every((name) => OURS.test(name))
        return isOurs && names.some((name) => name.startsWith('state.db')) ? [id] : []
      })
      return found.flat()
    },
    put: (id: string, name: string, path: string, putOptions: PutOptions): Promise<BackupFile> =>
      putFile(storage, { id, name, path }, putOptions),
    /** Last of all: from here on the backup exists. */
    async finish(manifest: BackupManifest) {
      const text = Buffer.from(renderManifest(manifest))
      await putPiece(storage, manifest.backup_id, MANIFEST, text)
    },
    /** The bytes of a file, checked piece by piece and as a whole; throws when one is wrong or missing. */
    read: (id: string, file: BackupFile) => readPieces(storage, id, file),
    /** The inventory of a backup that has no manifest; null when there is none. */
    readBare: (id: string) => readValue(storage, key(id, INVENTORY)),
    /** Everything of it, finished or not. */
    async remove(id: string) {
      // The manifest first: what is half removed is no backup any more.
      await storage.removeItem(key(id, MANIFEST))
      for (const name of await storage.getKeys(id)) await storage.removeItem(name)
    },
    async [Symbol.asyncDispose]() {
      await storage.dispose()
    },
  }
}

async function openStorage({ driver: name, folder, options }: BackupStorage): Promise<Storage> {
  if (name !== 'fs') return createStorage({ driver: await loadDriver(name, options) })
  const base = String(options['base'] ?? folder)
  const driver = await loadDriver(name, { ...options, base })
  return createStorage({ driver: await openBackupFolder(driver, base) })
}

async function putFile(
  storage: Storage,
  { id, name, path }: { readonly id: string; readonly name: string; readonly path: string },
  { signal, wholeUpTo, onBytes }: PutOptions,
): Promise<BackupFile> {
  const { size } = await stat(path)
  const isWhole = size <= wholeUpTo
  const whole = createHash('sha256')
  const pieces: BackupFile['pieces'] = []
  // Pieces of exactly so many bytes, the last one shorter.
  const highWaterMark = isWhole ? Math.max(1, size) : PIECE_BYTES
  for await (const bytes of createReadStream(path, { highWaterMark })) {
    signal.throwIfAborted()
    whole.update(bytes)
    const piece = isWhole ? name : `${name}.${String(pieces.length).padStart(6, '0')}`
    pieces.push(await putPiece(storage, id, piece, bytes))
    onBytes(bytes.length)
  }
  return { name, bytes: size, sha256: whole.digest('hex'), pieces }
}

/** What the driver gives back is compared with what it was given. */
async function putPiece(storage: Storage, id: string, name: string, bytes: Buffer) {
  const sha256 = digestOf(bytes)
  await storage.setItemRaw(key(id, name), bytes)
  const back = await readValue(storage, key(id, name))
  if (back === null || digestOf(back) !== sha256) throw notAsWritten(id, name)
  return { name, bytes: bytes.length, sha256 }
}

async function* readPieces(storage: Storage, id: string, file: BackupFile): AsyncGenerator<Buffer> {
  const whole = createHash('sha256')
  for (const piece of file.pieces) {
    const bytes = await readValue(storage, key(id, piece.name))
    if (bytes === null) throw damaged(id, `${piece.name} is missing, or is no file`)
    if (bytes.length !== piece.bytes || digestOf(bytes) !== piece.sha256) {
      throw damaged(id, `${piece.name} is not what was written`)
    }
    whole.update(bytes)
    yield bytes
  }
  if (whole.digest('hex') !== file.sha256) throw damaged(id, `${file.name} is not whole`)
}

const key = (id: string, name: string) => `${id}:${name}`

const digestOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

const notAsWritten = (id: string, name: string) =>
  new Fault('verify-failed', `backup ${id}: ${name} does not read back as it was written`, {
    hint: 'Look after the storage that backups go to (backup.driver, paths.backup_dir).',
  })

const damaged = (id: string, what: string) =>
  new Fault('input-invalid', `backup ${id} is damaged: ${what}`, {
    hint: 'Nothing was changed. Choose another backup.',
  })
