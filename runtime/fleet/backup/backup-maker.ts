/** Makes one backup: a full copy of the database and the inventory beside it, read back and verified. */
import { randomBytes } from 'node:crypto'
import { mkdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { BackupManifest } from './rules/backup-manifest.ts'
import type { BackupStore } from './backup-store.ts'
import { INVENTORY, type Bundles } from './bundle-files.ts'
import type { Database } from '#fleet/state/database.ts'
import { requireSpace } from '#fleet/state/disk-space.ts'
import { removeTree } from '#kit/host/folders.ts'

interface BackupOrder {
  readonly id: string
  readonly trigger: string
  readonly at: string
  readonly signal: AbortSignal
  /** Bytes stored so far; `total` is null until it is known. */
  onProgress(done: number, total: number | null): void
}

export type BackupMaker = ReturnType<typeof createBackupMaker>

/** A smaller inventory is one file, which other programs can read. */
const INVENTORY_WHOLE_BYTES = 64 * 2 ** 20
const DATABASE_WHOLE_BYTES = 8 * 2 ** 20
/** Stays free for the server's own work while a copy lies beside its database. */
const SPARE_BYTES = 64 * 2 ** 20

/**
 * `make` rejects with a Fault if there is too little room or the store fails, and removes what was
 * stored of that backup.
 */
export function createBackupMaker({
  database,
  bundles,
  store,
}: {
  readonly database: Database
  readonly bundles: Bundles
  readonly store: BackupStore
}) {
  // Beside the database: the free room was measured there.
  const name = database.isOwner ? '.backup' : `.backup-${randomBytes(4).toString('hex')}`
  const folder = join(dirname(database.path), name)

  async function fill(order: BackupOrder): Promise<BackupManifest> {
    const { id, signal, trigger, at } = order
    const copy = join(folder, 'state.db')
    const { size } = await stat(database.path)
    await requireSpace(dirname(database.path), size + SPARE_BYTES, 'a backup')
    await database.copyTo(copy, { signal })
    const machines = await bundles.exportTo(folder)
    signal.throwIfAborted()
    const stored = await Promise.all([stat(copy), stat(join(folder, INVENTORY))])
    const total = stored.reduce((sum, one) => sum + one.size, 0)
    let done = 0
    const onBytes = (bytes: number) => {
      done += bytes
      order.onProgress(done, total)
    }
    order.onProgress(0, total)
    // The database first: an inventory alone would count as a backup of the earlier line.
    const files = [
      await store.put(id, 'state.db', copy, { signal, onBytes, wholeUpTo: DATABASE_WHOLE_BYTES }),
      await store.put(id, INVENTORY, join(folder, INVENTORY), {
        signal,
        onBytes,
        wholeUpTo: INVENTORY_WHOLE_BYTES,
      }),
    ]
    const { release, line } = database
    const manifest = { version: 1, backup_id: id, created_at: at, release, line } as const
    const number = (await store.findLastNumber()) + 1
    const whole: BackupManifest = { ...manifest, trigger, machines, number, files }
    signal.throwIfAborted()
    await store.finish(whole)
    return whole
  }

  const clear = () => removeTree(folder)

  return {
    async make(order: BackupOrder): Promise<BackupManifest> {
      await clear()
      await mkdir(folder, { mode: 0o700 })
      try {
        return await fill(order)
      } catch (thrown) {
        // Best effort: without a manifest it is removed at the next start.
        await store.remove(order.id).catch(() => undefined)
        throw thrown
      } finally {
        await clear()
      }
    },
    async clean() {
      // A command beside a running server may see that server's work.
      if (!database.isOwner) return
      await clear()
      for (const id of await store.listUnfinished()) await store.remove(id)
    },
  }
}
