/** Stores what the settings pages save: values by dotted name, in the database (docs/decisions/0014). */
import type { Database } from './database.ts'
import { keepRead } from './kept-rows.ts'
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
  /** By dotted name (`backup.cadence`), as saved text; from memory. */
  const { current: list, write } = keepRead(database, (sql): Readonly<Record<string, string>> =>
    Object.fromEntries(
      sql
        .all('SELECT name, value FROM settings ORDER BY name')
        .map((row) => [readText(row, 'name'), readText(row, 'value')]),
    ),
  )

  return {
    list,
    find: (name: string): string | null =>
      Object.hasOwn(list(), name) ? (list()[name] ?? null) : null,
    /** All or nothing, on disk before it resolves; null removes a value. */
    async save(values: Readonly<Record<string, string | null>>): Promise<void> {
      const at = now().toISOString()
      await write((sql) => {
        for (const [name, value] of Object.entries(values)) {
          if (value === null) sql.run('DELETE FROM settings WHERE name = ?', name)
          else sql.run(SAVE, name, value, at)
        }
      })
      changes?.announce({ topic: 'settings' })
    },
  }
}

const SAVE = `INSERT INTO settings (name, value, updated_at) VALUES (?, ?, ?)
  ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`
