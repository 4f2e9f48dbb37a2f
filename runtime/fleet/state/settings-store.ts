/** Stores what the settings pages save: values by dotted name, in the database (docs/decisions/0014). */
import type { Database } from './database.ts'
import type { Changes } from '#kit/host/changes.ts'
import { readText } from './sqlite.ts'

export type SettingsStore = ReturnType<typeof createSettingsStore>

interface SettingsStoreOptions {
  readonly changes?: Changes
  now?(): Date
}

/** Reads never wait; a failed `save` rejects with a Fault and changes nothing. */
export function createSettingsStore(
  database: Database,
  { changes, now = () => new Date() }: SettingsStoreOptions = {},
) {
  let kept: Readonly<Record<string, string>> = {}
  let epoch: number | null = null

  /** By dotted name (`backup.cadence`), as saved text; from memory. */
  const list = () => {
    const present = database.epoch()
    if (present !== epoch) {
      const rows = database.sql.all('SELECT name, value FROM settings ORDER BY name')
      kept = Object.fromEntries(rows.map((row) => [readText(row, 'name'), readText(row, 'value')]))
      epoch = present
    }
    return kept
  }

  return {
    list,
    find: (name: string): string | null =>
      Object.hasOwn(list(), name) ? (list()[name] ?? null) : null,
    /** All or nothing, on disk before it resolves; null removes a value. */
    async save(values: Readonly<Record<string, string | null>>): Promise<void> {
      const at = now().toISOString()
      try {
        await database.write((sql) => {
          for (const [name, value] of Object.entries(values)) {
            if (value === null) sql.run('DELETE FROM settings WHERE name = ?', name)
            else sql.run(SAVE, name, value, at)
          }
        })
      } finally {
        epoch = null
      }
      changes?.announce({ topic: 'settings' })
    },
  }
}

const SAVE = `INSERT INTO settings (name, value, updated_at) VALUES (?, ?, ?)
  ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`
