/** Keeps the secrets of all servers alike: files of the state folder here, wrapped rows in the database. */
import {
  createHash,
  randomBytes,
  randomUUID,
  createCipheriv,
  createDecipheriv,
  hkdfSync,
} from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Fault, ifMissing } from '#kit/foundation/fault.ts'
import { replaceFile } from '#kit/host/folders.ts'
import { inTurnOf } from '#kit/host/queue.ts'
import type { ClusterNotes } from './cluster-notes.ts'
import type { PgSession } from './postgres.ts'
import {
  decideSharedFile,
  type SharedFileName,
  SharedFileNameSchema,
  type SharedFileNote,
} from './rules/lease.ts'
import { readSecret, readVersions, writeSecret } from './secret-rows.ts'
import { readLease } from './tables.ts'

export type SharedFilePaths = Partial<Readonly<Record<SharedFileName, string>>>

export interface ServerStanding {
  readonly role: 'stands-by' | 'begins-to-lead' | 'leads'
  /** The lease's epoch under which it leads; null: it stands by. */
  readonly epoch: number | null
}

interface SharedFilesOptions {
  readonly paths: SharedFilePaths
  /** Wraps the secrets; empty: every server keeps its own. */
  readonly key: string
  readonly notes: ClusterNotes
  readonly log: { info(message: string): void; warn(message: string): void }
}

export type SharedFiles = ReturnType<typeof createSharedFiles>

export function createSharedFiles({ paths, key, notes, log }: SharedFilesOptions) {
  const list = Object.entries(paths).map(([name, path]) => ({
    name: SharedFileNameSchema.parse(name),
    path,
  }))
  return {
    isOn: key !== '',
    /**
     * Brings changes from here and takes those from elsewhere. Rejects with a Fault:
     * `input-invalid` if the rows have another key, `no-leader` if a row cannot be written, as
     * another server leads or changes it again and again.
     */
    async exchange(session: PgSession, cluster: string, standing: ServerStanding): Promise<void> {
      if (key === '') return
      const versions = await readVersions(session)
      const wrapping = createWrapping(key, cluster)
      for (const { name, path } of list) {
        // Only the leader uses it; elsewhere the file may be years old.
        if (HELD.has(name) && standing.role === 'stands-by') continue
        const file = { name, path, cluster, session, wrapping, notes, log, ...standing }
        await insist(file, versions.get(name) ?? null)
      }
    },
    /** Rejects with a Fault `input-invalid` if the rows have another key; changes nothing. */
    async check(session: PgSession, cluster: string): Promise<void> {
      if (key === '') return
      const stored = await readVersions(session)
      const name = SharedFileNameSchema.options.find((each) => stored.has(each))
      const row = name === undefined ? null : await readSecret(session, name)
      if (name !== undefined && row !== null) createWrapping(key, cluster).unwrap(name, row.wrapped)
    },
    /** The database has rows, and this server has no key. */
    lacksKey: async (session: PgSession): Promise<boolean> =>
      key === '' && (await readVersions(session)).size > 0,
  }
}

const HELD: ReadonlySet<SharedFileName> = new Set(['power', 'notify'])

const MAX_TRIES = 4

interface SharedFile extends ServerStanding, Pick<SharedFilesOptions, 'notes' | 'log'> {
  readonly name: SharedFileName
  readonly path: string
  readonly cluster: string
  readonly session: PgSession
  readonly wrapping: Wrapping
}

async function insist(file: SharedFile, first: string | null): Promise<void> {
  let stored = first
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    if (await exchangeOne(file, stored)) return
    stored = (await readSecret(file.session, file.name))?.version ?? null
  }
  throw await readRefusal(file)
}

async function readRefusal({ name, epoch, session }: SharedFile): Promise<Fault> {
  const isReplaced = epoch !== null && (await readLease(session)).epoch !== epoch
  const why = isReplaced
    ? `another server leads now, so ${name} was not stored`
    : `${name} was changed on another server at the same time`
  return new Fault('no-leader', why, { hint: 'Look at the current state, and try again.' })
}

/** `stored`: the row's version. False: it changed meanwhile, look again. */
async function exchangeOne(file: SharedFile, stored: string | null): Promise<boolean> {
  const { name, path, cluster, notes } = file
  const content = await readContent(path)
  const noted = notes.find(cluster, name)
  const local = content === null ? null : digestOf(content)
  switch (decideSharedFile({ name, noted, local, stored })) {
    case 'nothing':
      return true
    case 'bring':
      return content !== null && (await bring(file, stored, content))
    case 'renew':
      return await renew(file, stored)
    case 'take':
      return await (isInMemory(file)
        ? keepOwn(file, stored, content)
        : takeChanged(file, { stored, content }, noted))
  }
}

/** The leader works with it in memory and acknowledges its changes. */
const isInMemory = ({ name, role }: SharedFile) => HELD.has(name) && role === 'leads'

const keepOwn = async (file: SharedFile, stored: string | null, content: Uint8Array | null) =>
  content === null || (await bring(file, stored, content))

async function takeChanged(file: SharedFile, read: ReadPair, noted: SharedFileNote | null) {
  const { name, log } = file
  if (!(await take(file, read))) return false
  if (noted === null) return true
  const isOwnLost = read.content !== null && digestOf(read.content) !== noted.digest
  if (isOwnLost)
    log.warn(`${name} was changed here and on another server; the other change was kept`)
  else log.info(`${name} was changed on another server`)
  return true
}

const digestOf = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')
const readContent = (path: string) => readFile(path).catch(ifMissing(null))

interface ReadPair {
  readonly stored: string | null
  readonly content: Buffer | null
}

/** False: file or row has changed. A key deleted meanwhile stays deleted. */
async function take(
  { name, path, cluster, session, wrapping, notes }: SharedFile,
  { stored, content }: ReadPair,
): Promise<boolean> {
  const row = await readSecret(session, name)
  if (row === null || row.version !== stored) return false
  const taken = Buffer.from(wrapping.unwrap(name, row.wrapped))
  return await inTurnOf(path, async () => {
    if (!isSame(await readContent(path), content)) return false
    await replaceFile(path, taken, 0o600)
    await notes.keep(cluster, name, { version: row.version, digest: digestOf(taken) })
    return true
  })
}

const isSame = (one: Buffer | null, two: Buffer | null) =>
  one === null || two === null ? one === two : one.equals(two)

async function bring(
  { name, cluster, session, wrapping, notes, epoch }: SharedFile,
  before: string | null,
  content: Uint8Array,
): Promise<boolean> {
  const version = randomUUID()
  const wrapped = wrapping.wrap(name, content)
  if (!(await writeSecret(session, { name, before, version, wrapped, epoch }))) return false
  await notes.keep(cluster, name, { version, digest: digestOf(content) })
  return true
}

async function renew(file: SharedFile, stored: string | null): Promise<boolean> {
  const key = Buffer.from(`${randomBytes(32).toString('base64url')}\n`)
  if (!(await bring(file, stored, key))) return false
  await replaceFile(file.path, key, 0o600)
  return true
}

// Wraps secrets that lie in the shared database: AES-256-GCM with a key that is never in it.

interface Wrapping {
  wrap(name: string, content: Uint8Array): Uint8Array
  /** Throws a Fault `input-invalid` for another key, or another row's content. */
  unwrap(name: string, wrapped: Uint8Array): Uint8Array
}

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** `key`: the text of `[database] key`; `cluster`: rows are bound to this database's name. */
function createWrapping(key: string, cluster: string): Wrapping {
  const derived = Buffer.from(hkdfSync('sha256', key, cluster, 'flasher: rows that are secret', 32))
  const bound = (name: string) => Buffer.from(`${cluster} ${name}`)
  return {
    wrap(name, content) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(ALGORITHM, derived, nonce).setAAD(bound(name))
      const sealed = [cipher.update(content), cipher.final()]
      return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed])
    },
    unwrap(name, wrapped) {
      try {
        const tagEnd = NONCE_BYTES + TAG_BYTES
        const decipher = createDecipheriv(ALGORITHM, derived, wrapped.subarray(0, NONCE_BYTES))
        decipher.setAAD(bound(name)).setAuthTag(wrapped.subarray(NONCE_BYTES, tagEnd))
        return Buffer.concat([decipher.update(wrapped.subarray(tagEnd)), decipher.final()])
      } catch (cause) {
        throw new Fault(
          'input-invalid',
          `database.key does not open the row ${name} of the database`,
          { cause, hint: 'Give every server the key with which the first one started.' },
        )
      }
    },
  }
}
