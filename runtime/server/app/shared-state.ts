/** Joins the servers that share a database, where one is configured; without it nothing of that is loaded. */
import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { Fault } from '#kit/foundation/fault.ts'
import { readMembership } from '#fleet/state/membership.ts'
import type { Database } from '#fleet/state/database.ts'
import type { JoinedLeader, JoinOptions } from '#fleet/cluster/joining.ts'
import type { NetbootShare } from '#fleet/cluster/netboot-share.ts'
import type { createPresence, OwnFacts, Presence } from '#fleet/cluster/presence.ts'
import type { ClusterNotes } from '#fleet/cluster/cluster-notes.ts'
import { TIMES, type ClusterTimes } from '#fleet/cluster/rules/lease.ts'
import type { SharedFilePaths } from '#fleet/cluster/shared-files.ts'

export interface SharedDatabase {
  readonly url: string
  /** Its first line is the password; empty: `url` has it. */
  readonly passwordFile: string
  /** Wraps the shared secrets; the key or its file, both empty: none. */
  readonly key: string
  readonly keyFile: string
  readonly files: SharedFilePaths
  /** `<state_dir>/cluster.json`. */
  readonly notes: string
  facts(): OwnFacts
  /**
   * For the server: called with the open state, before it waits. The result has this server's
   * address and learns each reading of the lease. Absent: a command, which nobody passes requests
   * to.
   */
  standBy?(database: Database, memberKey: string): Promise<StandingMember>
  readonly patience: JoinOptions['patience']
  readonly start?: JoinOptions['start']
  readonly signal?: AbortSignal
  readonly times?: ClusterTimes
  onEnd(why: Fault): void
}

type StandingMember = Pick<JoinOptions, 'follow'> & {
  readonly url: string
  readonly netboot: NetbootShare
}

interface ShareOptions {
  readonly line: string
  readonly release: string
  /** Null: the state is opened apart from it; undefined: the program shares nothing. */
  readonly shared?: SharedDatabase | null | undefined
  readonly log: { info?(message: string): void; warn(message: string): void }
}

interface SharedState {
  readonly leader: JoinedLeader
  /** Null: a command. */
  readonly presence: Presence | null
  /** `[database] key`; empty: none, or a command. */
  readonly memberKey: string
}

/**
 * Null: the state stands alone. Rejects as `joinCluster` does, and with a Fault `input-invalid`
 * where it belongs to a database and none is configured.
 */
export async function shareState(
  database: Database,
  { line, release, shared, log }: ShareOptions,
): Promise<SharedState | null> {
  if (shared === null) return null
  if (shared === undefined || shared.url === '') {
    if (readMembership(database.sql) !== null && database.isOwner) throw notAlone(database.path)
    return null
  }
  if (!database.isOwner) {
    const { onlyRead } = await import('#fleet/cluster/joining.ts')
    await onlyRead(database)
    return null
  }
  return await joinOthers(database, shared, { line, release, log })
}

async function joinOthers(
  database: Database,
  shared: SharedDatabase,
  { line, release, log }: Pick<ShareOptions, 'line' | 'release' | 'log'>,
): Promise<SharedState> {
  const { joinCluster } = await import('#fleet/cluster/joining.ts')
  const { openNotes } = await import('#fleet/cluster/cluster-notes.ts')
  const { patience, start = 'usual', signal, onEnd, times } = shared
  const url = await completeUrl(shared)
  const notes = await openNotes(shared.notes)
  const memberKey = patience === 'now' ? '' : await readKey(shared)
  const say = {
    info: (message: string) => log.info?.(message),
    warn: (message: string) => log.warn(message),
  }
  const own = await openOwn(shared, { memberKey, notes, url, log: say })
  const standing = await shared.standBy?.(database, memberKey)
  const { url: reached, netboot, ...follows } = standing ?? { url: '', netboot: null }
  const member = { id: notes.id, name: hostname(), release, url: reached }
  const more = { member, notes, netboot, log: say }
  const presence = own && (await beginPresence(database, shared, { ...own, ...more }))
  try {
    const join = { ...follows, url, member, line, patience, start, signal, log: say, onEnd, times }
    await presence?.check()
    const leader = await joinCluster(database, join)
    await presence?.lead(leader.lease.epoch).catch(async (thrown: unknown) => {
      await leader.stop()
      throw thrown
    })
    return { leader, presence, memberKey }
  } catch (thrown) {
    await presence?.end()
    throw thrown
  }
}

interface OwnDependencies {
  readonly memberKey: string
  readonly notes: ClusterNotes
  readonly url: string
  readonly log: { info(message: string): void; warn(message: string): void }
}

/** Null: a command. Rejects with a Fault `input-invalid` where its key differs. */
async function openOwn(
  { files: paths, patience, times = TIMES }: SharedDatabase,
  { memberKey: key, notes, url, log }: OwnDependencies,
) {
  if (patience === 'now') return null
  const { checkKey } = await import('#fleet/cluster/presence.ts')
  const { createSharedFiles } = await import('#fleet/cluster/shared-files.ts')
  const { openSession } = await import('#fleet/cluster/postgres.ts')
  if (key === '') log.warn(NO_KEY)
  const own = {
    files: createSharedFiles({ paths, key, notes, log }),
    open: () => openSession(url, times),
    times,
  }
  await checkKey(own)
  return own
}

type PresenceDependencies = Omit<Parameters<typeof createPresence>[0], 'membership' | 'facts'>

async function beginPresence(
  database: Database,
  { facts }: SharedDatabase,
  parts: PresenceDependencies,
): Promise<Presence> {
  const { createPresence: create } = await import('#fleet/cluster/presence.ts')
  return create({ ...parts, membership: () => readMembership(database.sql), facts })
}

const NO_KEY =
  'database.key is not set, so sessions, the password and the BMCs of machines are not shared. Give all servers the same key (openssl rand -base64 32).'

/** In characters; openssl's 32 bytes have 44. */
const FEWEST = 32

/** Rejects with a Fault if the key is too short, or its file cannot be read. */
async function readKey({ key, keyFile }: SharedDatabase): Promise<string> {
  const text = keyFile === '' ? key : await readLine(keyFile, 'database.key_file')
  if (text === '' && keyFile === '') return ''
  if (text.length >= FEWEST) return text
  const where = keyFile === '' ? 'database.key' : `the key in ${keyFile} (database.key_file)`
  throw new Fault('input-invalid', `${where} is shorter than ${FEWEST} characters`, {
    hint: 'Create one with openssl rand -base64 32.',
  })
}

/** With its password. Rejects with a Fault `input-invalid` or, for the file, `input-missing`. */
export async function completeUrl({
  url,
  passwordFile,
}: Pick<SharedDatabase, 'url' | 'passwordFile'>): Promise<string> {
  const address = URL.parse(url)
  if (address === null || !/^postgres(ql)?:$/.test(address.protocol)) {
    throw new Fault('input-invalid', 'database.url is not the address of a PostgreSQL database', {
      hint: 'Use the form postgres://flasher@db.example.org/flasher?sslmode=verify-full.',
    })
  }
  if (passwordFile === '') return address.href
  address.password = encodeURIComponent(await readLine(passwordFile, 'database.password_file'))
  return address.href
}

async function readLine(path: string, setting: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new Fault('input-missing', `${path} (${setting}) cannot be read`, { cause })
  })
  return text.split('\n')[0]?.trim() ?? ''
}

const notAlone = (path: string) =>
  new Fault('input-invalid', `${path} belongs to a database, and database.url is not set`, {
    hint: 'Set it again, or detach the state with flasher-web database detach, which disarms every machine.',
  })
