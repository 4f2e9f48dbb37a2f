/** Stores backups as pieces of bounded size with their digests, through any unstorage driver. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createStorage, type Storage } from 'unstorage'
import {
  isBackupId,
  numberOf,
  orderBackups,
  sortBackups,
  parseManifest,
  renderManifest,
  type BackupManifest,
  type BackupFile,
} from './rules/backup.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { openBackupFolder } from './backup-folder.ts'
import { loadDriver, readValue } from './drivers.ts'

/** No value is larger: drivers take and give whole values. */
const PIECE_BYTES = 8 * 2 ** 20
const MANIFEST = 'manifest.json'
/** The only file of a backup of the earlier line; an export has it, too. */
const INVENTORY = 'inventory.json'
/** Files of a backup without a manifest. */
const OURS = /^(?:state\.db|inventory\.json)(?:\.\d{6,})?$/

export interface StoredBackup {
  readonly backup_id: string
  /** Null: an inventory alone, as the earlier line made it. */
  readonly manifest: BackupManifest | null
  /** Null: unknown without reading all of it. */
  readonly bytes: number | null
}

interface PutOptions {
  readonly signal: AbortSignal
  /** A file of at most so many bytes is one value of its own name. */
  readonly wholeUpTo: number
  onBytes(bytes: number): void
}

export type BackupStore = Awaited<ReturnType<typeof openBackupStore>>

export interface BackupStorage {
  readonly driver: string
  readonly folder: string
  readonly options: Readonly<Record<string, string | number | boolean>>
}

/**
 * Opens the storage of any unstorage driver (folder, bucket). Calls reject with a Fault if the
 * storage fails, or returns other bytes than were written.
 */
export async function openBackupStore(configured: BackupStorage, now = () => new Date()) {
  const storage = await openStorage(configured)

  /** Null: none, or never finished. */
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

  /** An inventory alone is a backup of the earlier line; one beside pieces was cut short. */
  async function findBare(id: string): Promise<StoredBackup | null> {
    const names = await listNames(id)
    const isBare = names.length === 1 && names[0] === INVENTORY
    return isBare ? { backup_id: id, manifest: null, bytes: null } : null
  }

  async function listTraces() {
    const keys = await storage.getKeys()
    return sortBackups([...new Set(keys.map((name) => name.split(':')[0] ?? ''))])
  }

  async function list(): Promise<readonly StoredBackup[]> {
    const found = await Array.fromAsync(await listTraces(), find)
    const stored = found.filter((backup) => backup !== null)
    return orderBackups(stored, now().getTime())
  }

  return {
    find,
    list,
    listTraces,
    /** 0: no backup has a number. */
    findLastNumber: async (): Promise<number> => Math.max(0, ...(await list()).map(numberOf)),
    /** Cut short by a crash: pieces of ours, and no manifest. */
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
    /** Call it last: from here on the backup exists. */
    async finish(manifest: BackupManifest) {
      const text = Buffer.from(renderManifest(manifest))
      await putPiece(storage, manifest.backup_id, MANIFEST, text)
    },
    read: (id: string, file: BackupFile) => readPieces(storage, id, file),
    /** Null: no such backup. */
    readBare: (id: string) => readValue(storage, key(id, INVENTORY)),
    async remove(id: string) {
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
  const hash = createHash('sha256')
  const pieces: BackupFile['pieces'] = []
  // All pieces but the last have exactly this size.
  const highWaterMark = isWhole ? Math.max(1, size) : PIECE_BYTES
  for await (const bytes of createReadStream(path, { highWaterMark })) {
    signal.throwIfAborted()
    hash.update(bytes)
    const piece = isWhole ? name : `${name}.${String(pieces.length).padStart(6, '0')}`
    pieces.push(await putPiece(storage, id, piece, bytes))
    onBytes(bytes.length)
  }
  return { name, bytes: size, sha256: hash.digest('hex'), pieces }
}

/** Reads back what the driver stored, and compares. */
async function putPiece(storage: Storage, id: string, name: string, bytes: Buffer) {
  const sha256 = digestOf(bytes)
  await storage.setItemRaw(key(id, name), bytes)
  const back = await readValue(storage, key(id, name))
  if (back === null || digestOf(back) !== sha256) throw notAsWritten(id, name)
  return { name, bytes: bytes.length, sha256 }
}

async function* readPieces(storage: Storage, id: string, file: BackupFile): AsyncGenerator<Buffer> {
  const hash = createHash('sha256')
  for (const piece of file.pieces) {
    const bytes = await readValue(storage, key(id, piece.name))
    if (bytes === null) throw damaged(id, `${piece.name} is missing, or is no file`)
    if (bytes.length !== piece.bytes || digestOf(bytes) !== piece.sha256) {
      throw damaged(id, `${piece.name} was changed after it was written`)
    }
    hash.update(bytes)
    yield bytes
  }
  if (hash.digest('hex') !== file.sha256) throw damaged(id, `${file.name} is not whole`)
}

const key = (id: string, name: string) => `${id}:${name}`

const digestOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

const notAsWritten = (id: string, name: string) =>
  new Fault('verify-failed', `backup ${id}: ${name} could not be verified`, {
    hint: 'Check the storage for backups (backup.driver, paths.backup_dir).',
  })

const damaged = (id: string, what: string) =>
  new Fault('input-invalid', `backup ${id} is damaged: ${what}`, {
    hint: 'Nothing was changed. Choose another backup.',
  })
