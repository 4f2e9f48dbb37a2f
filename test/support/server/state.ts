/** The state services in a temporary folder, opened as often as a test wants. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Fault } from '#kit/foundation/fault.ts'
import { parseMac, type Mac } from '#kit/net/rules/mac.ts'
import { createMachine, type Machine, parseRecord } from '#server/current/machines/rules/machine.ts'
import { createDatabase, type DatabaseOptions } from '#fleet/state/database.ts'
import { createChanges } from '#kit/host/changes.ts'
import { createJournal, type JournalEntry } from '#fleet/state/journal.ts'
import { createMachines } from '#fleet/state/machines.ts'
import { createRuns } from '#fleet/run/runs.ts'
import { createSettingsStore } from '#fleet/state/settings-store.ts'
import { createPeople } from '#fleet/access/accounts.ts'
import { createTokens, type MadeToken, type Tokens } from '#fleet/access/tokens.ts'

export const RELEASE = '1.2.3'

/** A folder that is removed at the end, and what lies in it. */
export async function createStateFolder() {
  const dir = await mkdtemp(join(tmpdir(), 'flasher-state-'))
  const path = join(dir, 'state.db')
  return {
    dir,
    path,
    open: (options: Partial<DatabaseOptions> = {}) =>
      openServices({ path, release: RELEASE, line: 'current', ...options }),
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  }
}

export async function openServices(options: DatabaseOptions) {
  const database = await createDatabase(options)
  const changes = createChanges()
  const now = options.now ?? (() => new Date())
  const unreadable: string[] = []
  return {
    database,
    changes,
    unreadable,
    machines: createMachines<Machine>(database, {
      parseRecord,
      onUnreadable: (mac) => void unreadable.push(mac),
    }),
    journal: createJournal(database, { changes, now }),
    runs: createRuns(database, { changes, now, elapsed: () => now().getTime() }),
    store: createSettingsStore(database, { changes, now }),
    tokens: createTokens(database, { now }),
    people: createPeople(database, { now }),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

export type StateFolder = Awaited<ReturnType<typeof createStateFolder>>
export type StateServices = Awaited<ReturnType<typeof openServices>>

/** The n-th machine's address, in the order of n. */
export function macOf(n: number): Mac {
  const digits = n.toString(16).padStart(8, '0').match(/../g) ?? []
  const mac = parseMac(['02', '00', ...digits].join(':'))
  if (!mac.ok) throw new Error('no MAC')
  return mac.value
}

export const AT = '2026-11-21T06:55:53.000Z'

export const machineOf = (n: number, change: Partial<Machine> = {}): Machine => ({
  ...createMachine(macOf(n), 'flasher-inventory', AT),
  ...change,
})

export const noteOf = (change: Partial<JournalEntry> = {}): JournalEntry => ({
  kind: 'machine.upserted',
  subject_kind: 'machine',
  subject_id: macOf(1),
  actor: 'operator',
  source_ip: '192.0.2.7',
  summary: 'something happened',
  details: null,
  ...change,
})

/** What a promise is rejected with. */
export async function failureOf(promise: Promise<unknown>): Promise<Error> {
  const thrown = await promise.then(
    () => new Error('it did not fail'),
    (reason: unknown) => reason,
  )
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}

/** The same where it must be a Fault. */
export async function faultOf(promise: Promise<unknown>): Promise<Fault> {
  const failure = await failureOf(promise)
  if (failure instanceof Fault) return failure
  throw failure
}

/** One that nothing speaks against. */
export async function makeToken(
  tokens: Tokens,
  wish: Parameters<Tokens['create']>[0],
): Promise<MadeToken> {
  const made = await tokens.create(wish, Infinity)
  if (!made.ok) throw new Error(made.refusal)
  return made.value
}
