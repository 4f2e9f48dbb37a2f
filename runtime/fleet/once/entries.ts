/** Keeps boot entries in the database. */
import { parseJson } from '#kit/foundation/json-reader.ts'
import type { Database } from '#fleet/state/database.ts'
import { createNamedRows } from '#fleet/state/kept-rows.ts'
import { readText } from '#fleet/state/sqlite.ts'
import { EntryRecordSchema, MAX_ENTRIES, type NamedEntry } from './rules/boot-entry.ts'

export type Entries = ReturnType<typeof createEntries>

export const createEntries = (database: Database) =>
  createNamedRows<NamedEntry>(database, {
    table: 'boot_entries',
    most: MAX_ENTRIES,
    parse(row) {
      const { data } = EntryRecordSchema.safeParse(parseJson(readText(row, 'record')))
      return data === undefined ? null : { name: readText(row, 'name'), ...data }
    },
    render(entry) {
      const { name: _, ...record } = entry
      return { record: JSON.stringify(record) }
    },
  })
