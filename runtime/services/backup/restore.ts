/** Restores a backup, the whole database or an inventory alone; checks it before anything changes. */
import { mkdir, open, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Fault } from '../../core/foundation/fault.ts'
import type { StoredFile } from '../../core/state/backup-manifest.ts'
import type { BackupStore, StoredBackup } from './backup-store.ts'
import { INVENTORY, type Bundles } from './bundle-files.ts'
import type { Database } from '../state/database.ts'
import { inspectState } from '../state/inspection.ts'
import { readText } from '../state/sqlite.ts'

export interface Restored {
  readonly backup_id: string
  /** `inventory`: hardware alone, as an import brings it. */
  readonly kind: 'full' | 'inventory'
  readonly machines: number
  /** The `.bak` that holds what was there before; null where nothing was replaced. */
  readonly archive: string | null
  /** The release that wrote it; null when it does not say. */
  readonly release: string | null
}

export type Restorer = ReturnType<typeof createRestorer>

type OnProgress = (done: number, total: number) => void

export function createRestorer({
  database,
  bundles,
  store,
}: {
  readonly database: Database
  readonly bundles: Bundles
  readonly store: Pick<BackupStore, 'read' | 'readBare'>
}) {
  const folder = join(dirname(database.path), '.restore')

  async function restoreFull(
    backup: StoredBackup,
    file: StoredFile,
    onProgress: OnProgress,
  ): Promise<Restored> {
    const candidate = join(folder, 'state.db')
    await rm(folder, { recursive: true, force: true })
    await mkdir(folder, { mode: 0o700 })
    try {
      await fetchTo(candidate, backup, file, onProgress)
      const { release } = inspectState(candidate, database.line)
      const revoked = listRevoked(database)
      const archive = await database.replaceWith(candidate)
      await revokeAgain(database, revoked)
      const machines = Number(database.sql.get('SELECT count(*) AS n FROM machines')?.['n'])
      return { backup_id: backup.backup_id, kind: 'full', machines, archive, release }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }

  async function fetchTo(
    path: string,
    { backup_id }: StoredBackup,
    stored: StoredFile,
    onProgress: OnProgress,
  ) {
    await using file = await open(path, 'wx', 0o600)
    let done = 0
    for await (const bytes of store.read(backup_id, stored)) {
      await file.writeFile(bytes)
      done += bytes.length
      onProgress(done, stored.bytes)
    }
    await file.sync()
  }

  async function restoreInventory({ backup_id, manifest }: StoredBackup): Promise<Restored> {
    const stored = manifest?.files.find(({ name }) => name === INVENTORY)
    const text =
      stored === undefined
        ? await store.readBare(backup_id)
        : Buffer.concat(await Array.fromAsync(store.read(backup_id, stored)))
    if (text === null) throw new Fault('not-found', `there is no backup ${backup_id}`)
    const machines = await bundles.importText(text.toString('utf8'), `backup ${backup_id}`)
    const release = manifest?.release ?? null
    return { backup_id, kind: 'inventory', machines, archive: null, release }
  }

  return {
    async restore(backup: StoredBackup, onProgress: OnProgress): Promise<Restored> {
      const { manifest } = backup
      if (manifest !== null && manifest.line !== database.line) {
        throw new Fault(
          'conflict',
          `backup ${backup.backup_id} belongs to the ${manifest.line} release line`,
          { hint: 'Nothing was changed. Restore it with that line.' },
        )
      }
      const file = manifest?.files.find(({ name }) => name === 'state.db')
      return file === undefined ? restoreInventory(backup) : restoreFull(backup, file, onProgress)
    },
  }
}

interface Revoked {
  readonly id: string
  readonly at: string
}

const listRevoked = ({ sql }: Database): readonly Revoked[] =>
  sql
    .all('SELECT id, revoked_at FROM tokens WHERE revoked_at IS NOT NULL')
    .map((row) => ({ id: readText(row, 'id'), at: readText(row, 'revoked_at') }))

/** An older state must not give a token back what was taken from it since. */
async function revokeAgain(database: Database, revoked: readonly Revoked[]) {
  await database.write((sql) => {
    for (const { id, at } of revoked) {
      sql.run('UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL', at, id)
    }
  })
}
