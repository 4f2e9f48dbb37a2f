/** `flasher-web backup` and `restore`: make a full copy of the state, and restore one. */
import { isBackupId } from '#fleet/backup/rules/backup.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { createRestorer, type Restored } from '#fleet/backup/restore.ts'
import { nameDisarmed, renderDisarmed } from '#fleet/backup/disarming.ts'
import { openFileBackup } from '#fleet/backup/file-backup.ts'
import { openBackups, openBundles } from '../assembly/archives.ts'
import { describeShared, ORDERS, type State } from '../assembly/state.ts'
import { chooseBackup, requireTerminal } from './choose-backup.ts'
import { SUCCESS } from '#kit/terminal/command/rules/server-exit.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import { visitState, type Visit } from './visit.ts'
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'

const BY = { actor: 'operator', ip: null } as const

/**
 * Beside a server that shares its state, only that server records events: the backup is made, and a
 * warning says that it is not recorded. Rejects with a Fault `write-failed`.
 */
export async function backUp(environment: ProcessEnvironment, given: Arguments): Promise<number> {
  await using visit = await visitState(environment, given)
  const { config, release } = visit
  const isBeside = !visit.state.database.isOwner && describeShared(config).url !== ''
  const state = isBeside ? withoutEvents(visit.state) : visit.state
  await using backups = await openBackups(config, state, release)
  const { backup_id: id } = await backups.start('manual', BY)
  const job = await backups.awaitEnd(id)
  if (job?.status !== 'completed') {
    throw new Fault('write-failed', `the backup failed: ${job?.error ?? 'it was interrupted'}`)
  }
  visit.success(`Backup ${id}`)
  if (isBeside) visit.warn(NOT_RECORDED)
  return SUCCESS
}

const NOT_RECORDED =
  'The server that runs lists it; it is not among the events, which only the server that leads records.'

const withoutEvents = (state: State): State => ({
  ...state,
  journal: { ...state.journal, record: () => Promise.resolve() },
})

/**
 * From an id, a path, or a choice on the terminal; lists the disarmed machines. A running server
 * would go on with what is replaced. Rejects with a Fault where a server runs, there is no terminal
 * to choose on, or the backup is missing, damaged or of the other line.
 */
export async function restore(environment: ProcessEnvironment, given: Arguments): Promise<number> {
  const what = given.positionals[0] ?? null
  if (what === null) requireTerminal(environment)
  await using visit = await visitState(environment, given, { alone: true, replacesDamaged: true })
  const restored =
    what === null || isBackupId(what)
      ? await restoreStored(visit, what, environment)
      : await restoreFile(visit, what)
  const archive =
    restored.archive === null ? '' : `; the previous state is kept as ${restored.archive}`
  const from = what ?? restored.backup_id
  visit.success(`Restored ${restored.machines} machines from ${from}${archive}`)
  if (restored.disarmed.length > 0) visit.warn(renderConsequence(restored.disarmed))
  return SUCCESS
}

const renderConsequence = (disarmed: Restored['disarmed']): string =>
  [
    'These machines are not flashed or captured until you order it again (Flash again on their pages):',
    ...disarmed.map((machine) => `  ${nameDisarmed(machine)}`),
  ].join('\n')

/** `named` null: the operator chooses one. */
async function restoreStored(
  visit: Visit,
  named: string | null,
  environment: ProcessEnvironment,
): Promise<Restored> {
  const { config, state, release } = visit
  await using backups = await openBackups(config, state, release)
  const id = named ?? (await chooseBackup(await backups.list(), state.database.line, environment))
  return backups.restore(id, BY)
}

async function restoreFile({ state, release }: Visit, path: string): Promise<Restored> {
  const { database, journal } = state
  const { backup, store } = await openFileBackup(path, database.line)
  const bundles = openBundles(state, release)
  const restorer = createRestorer({ database, bundles, store, orders: ORDERS })
  const restored = await restorer.restore(backup, () => undefined)
  await journal.record({
    kind: 'backup.restored',
    subject_kind: 'backup',
    subject_id: null,
    actor: 'operator',
    source_ip: null,
    summary:
      `The state was restored from the file ${path}: ${restored.machines} machines. ${renderDisarmed(restored.disarmed)}`.trim(),
    details: { ...restored },
  })
  return restored
}
