/** Makes, lists, prunes and restores backups, one job at a time. */
import { Readable } from 'node:stream'
import { planBackupPruning, type BackupSettings, isBackupDue } from './rules/backup.ts'
import { createBackupJobs, type BackupJob, type BackupJobs } from './backup-job.ts'
import type { BackupMaker } from './backup-maker.ts'
import { createBackupEvents, type BackupEvents } from './backup-events.ts'
import { SYSTEM, type Requester, type Journal } from '#fleet/state/journal.ts'
import type { Restorer, Foreseen, Restored } from './restore.ts'
import type { BackupStore, StoredBackup } from './backup-store.ts'
import type { Changes } from '#kit/host/changes.ts'
import type { JobRecords, Jobs } from '#kit/host/jobs.ts'
import type { SettingsStore } from '#fleet/state/settings-store.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { renderDisarmed } from './disarming.ts'

export interface Backups
  extends BackupJobs, BackupRestores, Pick<BackupStore, 'list' | 'find'>, AsyncDisposable {
  remove(id: string, by: Requester): Promise<StoredBackup | null>
  /** Each piece is checked; null: no such file. */
  download(id: string, name: string): Promise<BackupDownload | null>
}

export interface BackupDownload {
  /** Null: not known. */
  readonly bytes: number | null
  readonly pieces: AsyncIterable<Uint8Array>
}

interface BackupDependencies {
  readonly store: BackupStore
  readonly maker: BackupMaker
  readonly restorer: Restorer
  readonly journal: Journal
  readonly changes: Changes
  settings(): BackupSettings
  now?(): Date
  readonly records?: JobRecords<BackupJob> | undefined
}

/** Disposing cancels a running backup, waits for a restore, and closes the store. */
export function createBackups(parts: BackupDependencies): Backups {
  const { store, maker, restorer, journal, changes } = parts
  const { now = () => new Date() } = parts
  const events = createBackupEvents(journal, changes)
  const { queue, ...jobs } = createBackupJobs({
    store,
    maker,
    events,
    now,
    records: parts.records,
    prune: (made) => prune(parts, events, made),
  })
  return {
    ...jobs,
    ...createBackupRestores({ store, restorer, events, queue, changes }),
    list: store.list,
    find: store.find,
    async remove(id, by) {
      const stored = await store.find(id)
      if (stored === null) return null
      await store.remove(id)
      await events.record('backup.deleted', id, `Backup ${id} was removed`, { by })
      events.announce(id)
      return stored
    },
    async download(id, name) {
      const stored = await store.find(id)
      const file = stored?.manifest?.files.find((one) => one.name === name)
      if (file !== undefined) return { bytes: file.bytes, pieces: store.read(id, file) }
      const bare = stored?.manifest === null && name === 'inventory.json'
      const text = bare ? await store.readBare(id) : null
      return text === null ? null : { bytes: text.length, pieces: Readable.from([text]) }
    },
    async [Symbol.asyncDispose]() {
      await queue[Symbol.asyncDispose]()
      await queue.enqueue(async () => undefined)
      await store[Symbol.asyncDispose]()
    },
  }
}

async function prune(
  { store, settings }: BackupDependencies,
  events: BackupEvents,
  made: string,
): Promise<void> {
  const { retention } = settings()
  const ids = (await store.list()).map(({ backup_id }) => backup_id)
  for (const id of planBackupPruning(ids, retention, made)) {
    await store.remove(id)
    const details = { backup_id: id, retention }
    const words = `Backup ${id} was removed: ${retention} are kept`
    await events.record('backup.pruned', id, words, { by: SYSTEM, details })
    events.announce(id)
  }
}

/** Starts backups when they are due: checks at start, then every 60 seconds. */
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

interface Restoring {
  readonly backup_id: string
  readonly bytes_done: number
  readonly bytes_total: number | null
}

interface BackupRestores {
  /** Waits for queued backups; the former state stays as `.bak`. */
  restore(id: string, by: Requester): Promise<Restored>
  restoring(): Restoring | null
  /** Null: no such backup. */
  foresee(id: string): Promise<Foreseen | null>
}

interface RestoresDependencies {
  readonly store: Pick<BackupStore, 'find'>
  readonly restorer: Restorer
  readonly events: BackupEvents
  readonly queue: Pick<Jobs<never>, 'enqueue'>
  readonly changes: Changes
}

function createBackupRestores(parts: RestoresDependencies): BackupRestores {
  const { store, restorer, events, queue, changes } = parts
  let restoring: Restoring | null = null

  async function restore(stored: StoredBackup, by: Requester): Promise<Restored> {
    const { backup_id: id } = stored
    const restored = await restorer.restore(stored, (bytes_done, bytes_total) => {
      restoring = { backup_id: id, bytes_done, bytes_total }
      events.announceProgress(id)
    })
    const { machines, disarmed } = restored
    const words =
      `Backup ${id} was restored: ${machines} machines. ${renderDisarmed(disarmed)}`.trim()
    await events.record('backup.restored', id, words, { by, details: { ...restored } })
    changes.announce({ topic: 'settings' })
    return restored
  }

  async function recordFailure(id: string, thrown: unknown, by: Requester) {
    const error = renderError(thrown)
    const words = `Backup ${id} could not be restored: ${error}`
    const details = { backup_id: id, error }
    await events.record('backup.restore.failed', id, words, { by, details }).catch(() => undefined)
  }

  return {
    restoring: () => restoring,
    async foresee(id) {
      const stored = await store.find(id)
      return stored === null ? null : await restorer.foresee(stored)
    },
    restore: (id, by) =>
      queue.enqueue(async () => {
        const stored = await store.find(id)
        if (stored === null) throw new Fault('not-found', `there is no backup ${id}`)
        restoring = { backup_id: id, bytes_done: 0, bytes_total: stored.bytes }
        events.announce(id)
        try {
          return await restore(stored, by)
        } catch (thrown) {
          await recordFailure(id, thrown, by)
          throw thrown
        } finally {
          restoring = null
          events.announce(id)
        }
      }),
  }
}
