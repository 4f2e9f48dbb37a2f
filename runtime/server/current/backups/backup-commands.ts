/** `flasher-web backup` and `restore`: make a full copy of the state, and restore one. */
import { isBackupId, readBackupTime } from '#fleet/backup/rules/backup.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { createRestorer, type Restored, openFileBackup } from '#fleet/backup/restore.ts'
import { nameDisarmed, renderDisarmed } from '#fleet/backup/disarming.ts'
import { openBackups, openBundles, describeShared, ORDERS, type State } from '../assembly/state.ts'
import { SUCCESS } from '#kit/terminal/command/rules/command.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import { visitState, type Visit } from '#server/current/commands/visit.ts'
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderSize } from '#kit/foundation/size.ts'
import type { StoredBackup } from '#fleet/backup/backup-store.ts'
import { encodeFor, decideTerminalStyle } from '#kit/terminal/text/terminal-style.ts'
import { renderAge } from '#kit/web/ui/times.ts'

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
  'The running server lists it. It is not in the events, because only the server that leads records them.'

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
    'These machines are disarmed. Arm them again when you are ready:',
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

/** Throws a Fault `misuse`. */
function requireTerminal({ env, stdin, stderr }: ProcessEnvironment): void {
  if (stdin.isTTY === true && decideTerminalStyle(env, stderr.isTTY === true).tty) return
  throw new Fault('misuse', 'missing: ID|FILE', {
    hint: 'On a terminal, "flasher-web restore" lets you choose a backup. The Backups page lists them, too.',
  })
}

const COLUMNS = [
  { title: 'Backup' },
  { title: 'Made', side: 'right' },
  { title: 'Machines', side: 'right' },
  { title: 'Size', side: 'right' },
  { title: 'Holds' },
] as const

/** `stored`: newest first. Rejects with a Fault `not-found` where none can be restored. */
async function chooseBackup(
  stored: readonly StoredBackup[],
  line: string,
  { env, stdin, stderr, signal }: ProcessEnvironment,
): Promise<string> {
  if (stored.length === 0) throw none()
  const now = new Date()
  const choices = stored.map((backup) => ({
    value: backup.backup_id,
    cells: renderCells(backup, now),
    refusal: decideRefusal(backup, line),
  }))
  if (choices.every(({ refusal }) => refusal !== null)) throw noneOfThis(line)
  const style = decideTerminalStyle(env, stderr.isTTY === true)
  const { choose } = await import('#kit/terminal/prompt/choose.ts')
  return await choose(
    { message: 'Restore which backup?', columns: COLUMNS, choices, canLeave: true },
    { input: stdin, output: stderr, style, encode: encodeFor(env) },
    { signal },
  )
}

const decideRefusal = ({ manifest }: StoredBackup, line: string): string | null =>
  manifest === null || manifest.line === line ? null : `of the ${printable(manifest.line)} line`

function renderCells({ backup_id: id, manifest, bytes }: StoredBackup, now: Date) {
  const at = readBackupTime(id)
  return [
    id,
    at === null ? '' : renderAge(new Date(at), now),
    manifest === null ? '' : `${manifest.machines}`,
    bytes === null ? '' : renderSize(bytes),
    manifest === null ? 'hardware only' : '',
  ]
}

const none = () =>
  new Fault('not-found', 'there are no backups yet', {
    hint: 'Make one with "flasher-web backup". To restore a copy of a database, give its path: flasher-web restore FILE.',
  })

const noneOfThis = (line: string) =>
  new Fault('not-found', `no backup here is of the ${line} release line`, {
    hint: 'Nothing was changed. Restore them with the release that made them.',
  })
