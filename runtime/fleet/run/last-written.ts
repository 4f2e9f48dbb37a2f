/** Knows what the last flash of each machine wrote: read from the runs once, then kept as runs end. */
import type { Run } from '#engine/inventory/rules/run.ts'
import { readText, readTextOrNull, type Row } from '#fleet/state/sqlite.ts'
import type { Database } from '#fleet/state/database.ts'
import type { LastWritten } from './rules/drift.ts'

export function createLastWrites(database: Database) {
  let kept = new Map<string, LastWritten>()
  let epoch: number | null = null
  let version = 0

  function current(): Map<string, LastWritten> {
    const present = database.epoch()
    if (present === epoch) return kept
    kept = new Map(database.sql.all(NEWEST_OF_ALL).map(readRow))
    epoch = present
    version += 1
    return kept
  }

  function readAgain(mac: string): void {
    const known = current()
    const [newest] = database.sql.all(NEWEST_OF_ONE, mac).map(readRow)
    if (newest === undefined) known.delete(mac)
    else known.set(...newest)
  }

  return {
    find: (mac: string): LastWritten | null => current().get(mac) ?? null,
    /** Grows when this changed without a change of a machine's record. */
    version: (): number => version,
    note(run: Run): void {
      if (hasWritten(run)) readAgain(run.mac)
    },
    review(mac: string): void {
      readAgain(mac)
      version += 1
    },
  }
}

/** An end before the first byte leaves the disk as it was. */
const hasWritten = ({ result, mode, bytes_written }: Run): boolean =>
  result !== null && mode !== 'capture' && (result === 'done' || bytes_written > 0)

const WROTE = `result IS NOT NULL AND record ->> '$.mode' <> 'capture'
  AND (result = 'done' OR record ->> '$.bytes_written' > 0)`
const COLUMNS = `mac, result, image, image_ref, model, serial,
  record ->> '$.image.sha256' AS sha256,
  coalesce(record ->> '$.ended_at', record ->> '$.updated_at') AS at`
const NEWEST_OF_ALL = `SELECT ${COLUMNS} FROM runs
  WHERE n IN (SELECT max(n) FROM runs WHERE ${WROTE} GROUP BY mac)`
const NEWEST_OF_ONE = `SELECT ${COLUMNS} FROM runs WHERE mac = ? AND ${WROTE} ORDER BY n DESC LIMIT 1`

const readRow = (row: Row): [string, LastWritten] => [
  readText(row, 'mac'),
  {
    isWhole: readTextOrNull(row, 'result') === 'done',
    image: readTextOrNull(row, 'image'),
    ref: readTextOrNull(row, 'image_ref'),
    sha256: readTextOrNull(row, 'sha256'),
    model: readTextOrNull(row, 'model'),
    serial: readTextOrNull(row, 'serial'),
    at: readTextOrNull(row, 'at'),
  },
]
