/** Keeps first-boot templates in the database: read from memory, on disk before a change resolves. */
import { randomBytes } from 'node:crypto'
import { MAX_TEMPLATES, parseTemplate } from '#engine/first-boot/rules/template.ts'
import type { NamedTemplate, Template } from '#engine/first-boot/rules/template.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Database } from '#fleet/state/database.ts'
import { readText, type Row } from '#fleet/state/sqlite.ts'

export type Templates = ReturnType<typeof createTemplates>

export function createTemplates(
  database: Database,
  { now = () => new Date() }: { now?(): Date } = {},
) {
  let kept: ReadonlyMap<string, NamedTemplate> = new Map()
  let epoch: number | null = null

  const current = () => {
    const present = database.epoch()
    if (present !== epoch) {
      const rows = database.sql.all(`${SELECT} ORDER BY name`)
      kept = new Map(rows.flatMap(readRow).map((one) => [one.name, one]))
      epoch = present
    }
    return kept
  }

  return {
    /** From memory, with their secrets. */
    list: (): readonly NamedTemplate[] => [...current().values()],
    find: (name: string): NamedTemplate | null => current().get(name) ?? null,
    /** `change` gets the stored template in the transaction; null: it stays. Refused: too many. */
    async save(
      name: string,
      change: (before: Template | null) => Template | null,
    ): Promise<SavedTemplate> {
      const updated_at = now().toISOString()
      const saved = await database.write((sql): SavedTemplate => {
        const found = sql.all(`${SELECT} WHERE name = ?`, name)
        const count = Number(sql.get('SELECT count(*) AS n FROM templates')?.['n'])
        if (found.length === 0 && count >= MAX_TEMPLATES) return refuse('too-many')
        const template = change(found.flatMap(readRow)[0]?.template ?? null)
        if (template === null) return refuse('stays')
        sql.run(SAVE, name, JSON.stringify(template), updated_at)
        return accept({ name, template, updated_at })
      })
      epoch = null
      return saved
    },
    /** False when there was none. */
    async remove(name: string): Promise<boolean> {
      const removed = await database.write(
        (sql) => sql.run('DELETE FROM templates WHERE name = ?', name) > 0,
      )
      epoch = null
      return removed
    },
  }
}

type SavedTemplate = Result<NamedTemplate, 'too-many' | 'stays'>

/** New for each flash: cloud-init runs once per instance. */
export const makeInstance = (): string => `flasher-${randomBytes(6).toString('hex')}`

const SELECT = 'SELECT name, template, updated_at FROM templates'
const SAVE = `INSERT INTO templates (name, template, updated_at) VALUES (?, ?, ?)
  ON CONFLICT (name) DO UPDATE SET template = excluded.template, updated_at = excluded.updated_at`

function readRow(row: Row): readonly NamedTemplate[] {
  const parsed = parseTemplate(parseJson(readText(row, 'template')))
  if (!parsed.ok) return []
  const [name, updated_at] = [readText(row, 'name'), readText(row, 'updated_at')]
  return [{ name, template: parsed.value, updated_at }]
}
