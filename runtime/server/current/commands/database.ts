/** `flasher-web database`: shows, joins, leaves and accepts the database that servers share. */
import { disarmAll, nameDisarmed, type DisarmedMachine } from '#fleet/backup/disarming.ts'
import { renderDisarmed } from '#fleet/backup/disarming.ts'
import { dropMembership, readMembership } from '#fleet/state/membership.ts'
import { insertEvent, SYSTEM_EVENT } from '#fleet/state/event-rows.ts'
import type { Sql } from '#fleet/state/sqlite.ts'
import { Fault } from '#kit/foundation/fault.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import { SUCCESS } from '#kit/terminal/command/rules/command.ts'
import { completeUrl, shareState } from '#server/app/shared-state.ts'
import { describeShared, ORDERS } from '../assembly/state.ts'
import { visitState, type Visit } from './visit.ts'

type DatabaseCommand = (environment: ProcessEnvironment, given: Arguments) => Promise<number>

/** Rejects with a Fault if it cannot be used, or `misuse` if none is set. */
export const showDatabase: DatabaseCommand = async (environment, given) => {
  await using visit = await visitState(environment, given, { start: 'apart' })
  const shared = requireShared(visit)
  const { readStatus } = await import('#fleet/cluster/status.ts')
  const membership = readMembership(visit.state.database.sql)
  const rows = await readStatus(await completeUrl(shared), membership)
  for (const [name, value] of rows) environment.stdout.write(`${name.padEnd(14)}${value}\n`)
  return SUCCESS
}

/** Rejects with a Fault if a server runs, or the database cannot be used or is not empty. */
export const importDatabase: DatabaseCommand = async (environment, given) => {
  await using visit = await visitState(environment, given, { alone: true, start: 'apart' })
  const shared = requireShared(visit)
  const { database } = visit.state
  const { release, warn } = visit
  const options = {
    line: 'current',
    release,
    shared: { ...shared, start: 'import' },
    log: { warn },
  } as const
  await shareState(database, options)
  const disarmed = await database.write((sql) =>
    disarm(sql, 'The state was imported into a database.'),
  )
  visit.success('The database has the state of this server.')
  warnOf(visit, disarmed)
  return SUCCESS
}

/** Rejects with a Fault if a server runs, or the state stands alone already. */
export const detachDatabase: DatabaseCommand = async (environment, given) => {
  await using visit = await visitState(environment, given, { alone: true, start: 'apart' })
  const { database } = visit.state
  if (readMembership(database.sql) === null) {
    throw new Fault('conflict', 'this state does not belong to a database', {
      hint: 'Nothing was changed.',
    })
  }
  const disarmed = await database.write((sql) => {
    dropMembership(sql)
    return disarm(sql, 'The state was detached from its database.')
  })
  visit.success(
    'The state of this server is detached. Remove database.url before you start it again.',
  )
  warnOf(visit, disarmed)
  return SUCCESS
}

/** Rejects with a Fault if a server runs or leads, or the database cannot be used. */
export const acceptOlder: DatabaseCommand = async (environment, given) => {
  await using visit = await visitState(environment, given, { alone: true, start: 'accept-older' })
  requireShared(visit)
  const { database } = visit.state
  const disarmed = await database.write((sql) => disarm(sql, 'An older database was accepted.'))
  visit.success('This server has what the database has.')
  warnOf(visit, disarmed)
  return SUCCESS
}

/** By name. Rejects with a Fault `not-found`. */
export const forgetServer: DatabaseCommand = async (environment, given) => {
  await using visit = await visitState(environment, given, { start: 'apart' })
  const shared = requireShared(visit)
  const [name = ''] = given.positionals
  const { forgetByName } = await import('#fleet/cluster/status.ts')
  const forgotten = await forgetByName(await completeUrl(shared), name)
  if (forgotten === 0) {
    throw new Fault('not-found', `no server named ${name} was connected in the last week`, {
      hint: 'flasher-web database status lists them.',
    })
  }
  visit.success(`Upgrades no longer wait for ${name}.`)
  return SUCCESS
}

function requireShared({ config }: Visit) {
  const shared = describeShared(config)
  if (shared.url !== '') return shared
  throw new Fault('misuse', 'database.url is not set', {
    hint: 'Use the form postgres://flasher@db.example.org/flasher?sslmode=verify-full.',
  })
}

/** Another server may have flashed machines that were armed then. */
function disarm(sql: Sql, why: string): readonly DisarmedMachine[] {
  const ts = new Date().toISOString()
  const disarmed = disarmAll(sql, ORDERS, ts)
  const summary = `${why} ${renderDisarmed(disarmed)}`.trim()
  const event = { ...SYSTEM_EVENT, ts, kind: 'system.state.disarmed', summary }
  insertEvent(sql, { ...event, details: { disarmed } })
  return disarmed
}

function warnOf({ warn }: Visit, disarmed: readonly DisarmedMachine[]): void {
  if (disarmed.length === 0) return
  const lines = disarmed.map((machine) => `  ${nameDisarmed(machine)}`)
  warn([ORDER_AGAIN, ...lines].join('\n'))
}

const ORDER_AGAIN = 'These machines are disarmed. Arm them again when you are ready:'
