/** The logs that machines send of their runs: the tail of each, compressed. */
import { gunzip, gzip } from 'node:zlib'
import { promisify } from 'node:util'
import { MAX_LOG_BYTES } from '#engine/inventory/rules/run.ts'
import type { Database } from '#fleet/state/database.ts'

/** Packed bytes of all logs. */
const MAX_IN_ALL = 256 * 2 ** 20

const pack = promisify(gzip)
const unpack = promisify(gunzip)

export function createRunLogs(database: Database, maxInAll = MAX_IN_ALL) {
  return {
    /** Replaces an earlier log; on disk before it resolves. */
    async save(mac: string, id: string, text: Uint8Array, at: string): Promise<void> {
      const packed = await pack(text.subarray(Math.max(0, text.length - MAX_LOG_BYTES)))
      await database.write((sql) => sql.run(SAVE, mac, id, at, packed.length, packed))
    },
    async find(mac: string, id: string): Promise<string | null> {
      const row = database.sql.get('SELECT log FROM run_logs WHERE mac = ? AND id = ?', mac, id)
      const packed = row?.['log']
      if (!(packed instanceof Uint8Array)) return null
      const text = await unpack(packed, { maxOutputLength: MAX_LOG_BYTES })
      return text.toString('utf8')
    },
    async prune(): Promise<void> {
      await database.write((sql) => {
        sql.run(PRUNE_ORPHANS)
        sql.run(PRUNE_BYTES, maxInAll)
      })
    },
  }
}

const SAVE = `INSERT INTO run_logs (mac, id, posted_at, size, log) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (mac, id) DO UPDATE SET
  posted_at = excluded.posted_at, size = excluded.size, log = excluded.log`
const PRUNE_ORPHANS = `DELETE FROM run_logs WHERE NOT EXISTS
  (SELECT 1 FROM runs WHERE runs.mac = run_logs.mac AND runs.id = run_logs.id)`
const PRUNE_BYTES = `DELETE FROM run_logs WHERE (mac, id) IN (SELECT mac, id FROM
  (SELECT mac, id, sum(size) OVER (ORDER BY posted_at DESC, mac, id) AS total FROM run_logs) AS sums
  WHERE total > ?)`
