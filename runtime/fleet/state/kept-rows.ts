/** What is read of the database once and answered from memory, until something else may stand there. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Database } from './database.ts'
import type { Row, Sql } from './sqlite.ts'

export function keepRead<Value>(database: Database, read: (sql: Sql) => Value) {
  let kept: { readonly epoch: number; readonly value: Value } | null = null
  return {
    current(): Value {
      const epoch = database.epoch()
      if (kept?.epoch !== epoch) kept = { epoch, value: read(database.sql) }
      return kept.value
    },
    /** A failed write may have been read before it was undone, so everything is read again. */
    write: <T>(work: (sql: Sql) => T): Promise<T> =>
      database.write(work).finally(() => {
        kept = null
      }),
  }
}

interface NamedTable<Item> {
  readonly table: string
  readonly most: number
  /** Null: the row cannot be read, and counts as empty. */
  parse(row: Row): Item | null
  /** The columns beside the name. */
  render(item: Item): Readonly<Record<string, string>>
}

interface NamedChange<Item> {
  readonly before: Item | null
  readonly after: Item
}

export type NamedRows<Item extends { readonly name: string }> = ReturnType<
  typeof createNamedRows<Item>
>

/** Records with a name of their own; a change is on disk before it resolves. */
export function createNamedRows<Item extends { readonly name: string }>(
  database: Database,
  { table, most, parse, render }: NamedTable<Item>,
) {
  const parseAll = (rows: readonly Row[]) => rows.flatMap((row) => parse(row) ?? [])
  const { current, write } = keepRead(database, (sql) => {
    const items = parseAll(sql.all(`SELECT * FROM ${table} ORDER BY name`))
    return new Map(items.map((item) => [item.name, item]))
  })
  const findRows = (sql: Sql, name: string) =>
    sql.all(`SELECT * FROM ${table} WHERE name = ?`, name)

  return {
    list: (): readonly Item[] => [...current().values()],
    find: (name: string): Item | null => current().get(name) ?? null,
    /** `change` gets what is stored, in the transaction; null: it stays. */
    save: (name: string, change: (before: Item | null) => Item | null) =>
      write((sql): Result<NamedChange<Item>, 'stays' | 'too-many'> => {
        const found = findRows(sql, name)
        const count = Number(sql.get(`SELECT count(*) AS n FROM ${table}`)?.['n'])
        if (found.length === 0 && count >= most) return refuse('too-many')
        const before = parseAll(found)[0] ?? null
        const after = change(before)
        if (after === null) return refuse('stays')
        const columns = Object.entries({ name, ...render(after) })
        const names = columns.map(([column]) => column)
        sql.run(
          `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})
            ON CONFLICT (name) DO UPDATE SET ${names.map((each) => `${each} = excluded.${each}`).join(', ')}`,
          ...columns.map(([, value]) => value),
        )
        return accept({ before, after })
      }),
    /** `isMeant` sees what is stored, in the transaction. Null: nothing was removed. */
    remove: (name: string, isMeant: (before: Item) => boolean = () => true): Promise<Item | null> =>
      write((sql) => {
        const [before] = parseAll(findRows(sql, name))
        if (before === undefined || !isMeant(before)) return null
        sql.run(`DELETE FROM ${table} WHERE name = ?`, name)
        return before
      }),
  }
}
