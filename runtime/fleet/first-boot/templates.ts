/** Keeps first-boot templates in the database, with their secrets. */
import { randomBytes } from 'node:crypto'
import { MAX_TEMPLATES, parseTemplate } from '#engine/first-boot/rules/template.ts'
import type { NamedTemplate } from '#engine/first-boot/rules/template.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import type { Database } from '#fleet/state/database.ts'
import { createNamedRows } from '#fleet/state/kept-rows.ts'
import { readText } from '#fleet/state/sqlite.ts'

export type Templates = ReturnType<typeof createTemplates>

export const createTemplates = (database: Database) =>
  createNamedRows<NamedTemplate>(database, {
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

/** New for each flash: cloud-init runs once per instance. */
export const makeInstance = (): string => `flasher-${randomBytes(6).toString('hex')}`
