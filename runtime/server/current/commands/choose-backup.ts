/** Asks the operator which backup `flasher-web restore` restores if none is named. */
import { readBackupTime } from '#fleet/backup/rules/backup.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderSize } from '#kit/foundation/size.ts'
import type { StoredBackup } from '#fleet/backup/backup-store.ts'
import { encodeFor } from '#kit/terminal/text/encoding.ts'
import { decideTerminalStyle } from '#kit/terminal/text/terminal-style.ts'
import { renderAge } from '#kit/web/ui/times.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'

/** Throws a Fault `misuse`. */
export function requireTerminal({ env, stdin, stderr }: ProcessEnvironment): void {
  if (stdin.isTTY === true && decideTerminalStyle(env, stderr.isTTY === true).tty) return
  throw new Fault('misuse', 'missing: ID|FILE', {
    hint: 'On a terminal, "flasher-web restore" lists the backups to choose from; so does the page Backups.',
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
export async function chooseBackup(
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
    hint: '"flasher-web backup" makes one. A copy of a database is restored by its path: flasher-web restore FILE.',
  })

const noneOfThis = (line: string) =>
  new Fault('not-found', `no backup here is of the ${line} release line`, {
    hint: 'Nothing was changed. Restore them with the release that made them.',
  })
