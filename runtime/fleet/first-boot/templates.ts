/** Keeps first-boot templates in the database, with their secrets. */
import { randomBytes } from 'node:crypto'
import { MAX_TEMPLATES, parseTemplate } from '#engine/first-boot/rules/template.ts'
import type { NamedTemplate, Template } from '#engine/first-boot/rules/template.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import type { Database } from '#fleet/state/database.ts'
import { createNamedRows } from '#fleet/state/kept-rows.ts'
import { readText } from '#fleet/state/sqlite.ts'

export type Templates = ReturnType<typeof createTemplates>

export function createTemplates(
  database: Database,
  { now = () => new Date() }: { now?(): Date } = {},
) {
  const rows = createNamedRows<NamedTemplate>(database, {
    table: 'templates',
    most: MAX_TEMPLATES,
    parse(row) {
      const parsed = parseTemplate(parseJson(readText(row, 'template')))
      if (!parsed.ok) return null
      const [name, updated_at] = [readText(row, 'name'), readText(row, 'updated_at')]
      return { name, template: parsed.value, updated_at }
    },
    render: ({ template, updated_at }) => ({ template: JSON.stringify(template), updated_at }),
  })
  return {
    ...rows,
    save(name: string, change: (before: Template | null) => Template | null) {
      const updated_at = now().toISOString()
      return rows.save(name, (before) => {
        const template = change(before?.template ?? null)
        return template === null ? null : { name, template, updated_at }
      })
    },
  }
}

/** New for each flash: cloud-init runs once per instance. */
export const makeInstance = (): string => `flasher-${randomBytes(6).toString('hex')}`
