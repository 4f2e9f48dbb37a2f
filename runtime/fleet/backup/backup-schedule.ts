/** Starts backups when they are due: checks at start, then every 60 seconds. */
import { isBackupDue, type BackupSettings } from './rules/backup.ts'
import type { Backups } from './backups.ts'
import { SYSTEM } from '#fleet/state/journal.ts'
import type { SettingsStore } from '#fleet/state/settings-store.ts'

interface ScheduleDependencies {
  readonly backups: Backups
  readonly store: SettingsStore
  settings(): BackupSettings
  now?(): Date
  /** Milliseconds of a steady clock. */
  elapsed?(): number
}

/** "Scheduler tick for backups". */
const TICK_MS = 60_000
const LAST_RUN = 'backup.last_run_at'

/** Ends when disposed of. Failures are tried again later; the backup's events report them. */
export function startBackupSchedule(parts: ScheduleDependencies) {
  const { backups, store } = parts
  const now = () => parts.now?.() ?? new Date()
  const { elapsed = () => performance.now() } = parts
  const since = (at: number | null) => (at === null ? null : elapsed() - at)
  let triedAt: number | null = null
  let madeAt: number | null = null
  let running: Promise<void> | null = null

  async function runIfDue() {
    const at = now()
    const last = Date.parse(store.find(LAST_RUN) ?? '')
    const succeededAt = Number.isNaN(last) ? null : last
    const history = { succeededAt, sinceSuccess: since(madeAt), sinceTry: since(triedAt) }
    if (!isBackupDue(parts.settings(), history, at.getTime())) return
    const begunAt = elapsed()
    triedAt = begunAt
    const { backup_id } = await backups.start('scheduled', SYSTEM)
    const job = await backups.awaitEnd(backup_id)
    if (job?.status !== 'completed') return
    madeAt = begunAt
    await store.save({ [LAST_RUN]: at.toISOString() })
  }

  const tick = () =>
    (running ??= runIfDue().finally(() => {
      running = null
    }))

  // Best effort: the backup's own events report failures, and the next tick comes.
  const check = () => {
    tick().catch(() => undefined)
  }
  const timer = setInterval(check, TICK_MS).unref()
  check()
  return {
    tick,
    [Symbol.dispose]() {
      clearInterval(timer)
    },
  }
}
