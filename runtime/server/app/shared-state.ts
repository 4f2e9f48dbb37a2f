/** Joins the servers that share a database, where one is configured; without it nothing of that is loaded. */
import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { Fault } from '../../kit/foundation/fault.ts'
import { readMembership } from '../../fleet/state/membership.ts'
import type { Database } from '../../fleet/state/database.ts'
import type { JoinedLeader, JoinOptions } from '../../fleet/cluster/joining.ts'

/** The settings of `[database]`, and what a program makes of them. */
export interface SharedDatabase {
  /** `postgres://…`; empty: none. */
  readonly url: string
  /** The file whose first line is the password; empty: `url` has it. */
  readonly passwordFile: string
  /** How people reach this server; empty where that is not known. */
  readonly publicUrl: string
  readonly patience: JoinOptions['patience']
  readonly start?: JoinOptions['start']
  readonly signal?: AbortSignal
  onEnd(why: Fault): void
}

interface ShareOptions {
  readonly line: string
  readonly release: string
  /** Null: the state is opened apart from it; undefined: the program shares nothing. */
  readonly shared?: SharedDatabase | null | undefined
  readonly log: { info?(message: string): void; warn(message: string): void }
}

/**
 * Null where this server stands alone. Rejects with a Fault `input-invalid` where the state belongs to a
 * database and none is configured, and as `joinCluster` does.
 */
export async function shareState(
  database: Database,
  { line, release, shared, log }: ShareOptions,
): Promise<JoinedLeader | null> {
  if (shared === null) return null
  if (shared === undefined || shared.url === '') {
    if (readMembership(database.sql) !== null && database.isOwner) throw notAlone(database.path)
    return null
  }
  const { joinCluster, onlyRead } = await import('../../fleet/cluster/joining.ts')
  if (!database.isOwner) {
    await onlyRead(database)
    return null
  }
  const { publicUrl, patience, start = 'usual', signal, onEnd } = shared
  return await joinCluster(database, {
    url: await completeUrl(shared),
    member: { name: hostname(), release, url: publicUrl },
    line,
    patience,
    start,
    signal,
    log: { info: (message) => log.info?.(message), warn: (message) => log.warn(message) },
    onEnd,
  })
}

/**
 * Returns the address with its password. Rejects with a Fault `input-invalid` for an address of another
 * kind, and `input-missing` where the file of the password cannot be read.
 */
export async function completeUrl({
  url,
  passwordFile,
}: Pick<SharedDatabase, 'url' | 'passwordFile'>): Promise<string> {
  const address = URL.parse(url)
  if (address === null || !/^postgres(ql)?:$/.test(address.protocol)) {
    throw new Fault('input-invalid', 'database.url is no address of a PostgreSQL database', {
      hint: 'It looks like postgres://flasher@db.example.org/flasher?sslmode=verify-full.',
    })
  }
  if (passwordFile === '') return address.href
  const text = await readFile(passwordFile, 'utf8').catch((cause: unknown) => {
    throw new Fault('input-missing', `${passwordFile} (database.password_file) cannot be read`, {
      cause,
    })
  })
  address.password = encodeURIComponent(text.split('\n')[0]?.trim() ?? '')
  return address.href
}

const notAlone = (path: string) =>
  new Fault('input-invalid', `${path} belongs to a database, and database.url is not set`, {
    hint: 'Set it again, or let the state stand alone: flasher-web database detach, which disarms every machine.',
  })
