/** `/first-boot`: the first-boot templates, and what they are for one machine. */
import { getRouterParam, type H3Event } from 'h3'
import {
  DocumentSchema,
  NamedTemplateSchema,
  renderDocument,
} from '#engine/first-boot/rules/document.ts'
import { subjectOf } from '#engine/first-boot/rules/obstacle.ts'
import { renderFirstBoot, type FirstBoot } from '#engine/first-boot/rules/seed.ts'
import {
  hideSecrets,
  keepSecrets,
  MAX_TEMPLATES,
  TemplateNameSchema,
  TemplateSchema,
  type NamedTemplate,
  type Template,
} from '#engine/first-boot/rules/template.ts'
import type { Result } from '#kit/foundation/result.ts'
import { parseHardware } from '#engine/inventory/rules/hardware.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { Templates } from '#fleet/first-boot/templates.ts'
import type { Site } from '#server/routes/site.ts'
import { nothing, json } from '#kit/web/answers/answers.ts'
import { checked, readMac, renderSchema } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { meetsConditions } from '#kit/web/answers/rules/etag.ts'
import type { Machine } from '../rules/machine.ts'

export const templateRoutes = (site: Site<Machine>, templates: Templates): readonly Route[] => [
  ...readingRoutes(site, templates),
  ...changingRoutes(site, templates),
]

function readingRoutes(site: Site<Machine>, templates: Templates): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/first-boot',
      access: 'read',
      doc: {
        summary: 'All first-boot templates, by name; secrets are dots',
        answers: { 200: { type: 'array', items: renderSchema(NamedTemplateSchema, 'output') } },
      },
      handle: () => json(templates.list().map((template) => toWire(site, template))),
    },
    {
      method: 'GET',
      path: '/first-boot/:name',
      access: 'read',
      doc: {
        summary: 'One first-boot template; secrets are dots',
        answers: { 200: renderSchema(NamedTemplateSchema, 'output') },
      },
      handle: (event) => json(toWire(site, findTemplate(templates, readName(event)))),
    },
    {
      method: 'GET',
      path: '/machines/:mac/first-boot',
      access: 'read',
      doc: {
        summary: 'What its first-boot template is for this machine; secrets are dots',
        answers: { 200: renderSchema(DocumentSchema, 'output') },
        refuses: [409],
      },
      async handle(event) {
        const machine = site.findMachine(readMac(event))
        const rendered = await previewFirstBoot(site, templates, machine)
        if (rendered === null) throw refuse(404, `${machine.mac} has no first-boot template`)
        if (!rendered.ok) throw refuse(409, rendered.refusal)
        return json(renderDocument(rendered.value))
      },
    },
  ]
}

function changingRoutes(site: Site<Machine>, templates: Templates): readonly Route[] {
  return [
    {
      method: 'PUT',
      path: '/first-boot/:name',
      access: 'admin',
      takes: 'json',
      doc: {
        summary: 'Creates or replaces a first-boot template; a secret of dots keeps its value',
        body: renderSchema(TemplateSchema, 'input'),
        answers: { 200: renderSchema(NamedTemplateSchema, 'output') },
        refuses: [409, 412],
        isNeverMissing: true,
      },
      async handle(event, body) {
        const name = checked(TemplateNameSchema, readName(event), 'query')
        const saved = await saveTemplate(site, templates, event, {
          name,
          template: checked(TemplateSchema, body),
        })
        if (saved === null) throw refuse(409, `there are ${MAX_TEMPLATES} templates already`)
        return json(toWire(site, saved))
      },
    },
    {
      method: 'DELETE',
      path: '/first-boot/:name',
      access: 'admin',
      doc: {
        summary: 'Removes a first-boot template that no machine has',
        answers: { 204: null },
        refuses: [409],
      },
      async handle(event) {
        const { name } = findTemplate(templates, readName(event))
        const count = countMachines(site, name)
        if (count > 0) throw refuse(409, `${count} machines have the template ${name}`)
        await removeTemplate(site, templates, event, name)
        return nothing()
      },
    },
  ]
}

const readName = (event: H3Event): string => getRouterParam(event, 'name', { decode: true }) ?? ''

function findTemplate(templates: Templates, name: string): NamedTemplate {
  const found = templates.find(name)
  if (found === null) throw refuse(404, 'no such first-boot template')
  return found
}

export const countMachines = ({ machines }: Site<Machine>, name: string): number =>
  machines.peekAll().filter(({ first_boot }) => first_boot === name).length

const toWire = (site: Site<Machine>, kept: NamedTemplate) => ({
  name: kept.name,
  ...hideSecrets(kept.template),
  updated_at: kept.updated_at,
  machines: countMachines(site, kept.name),
})

/** Records the event. A secret sent as dots keeps its value. Null: too many templates. */
export async function saveTemplate(
  site: Site<Machine>,
  templates: Templates,
  event: H3Event,
  { name, template }: { readonly name: string; readonly template: Template },
): Promise<NamedTemplate | null> {
  // Without a tag, only `*` matches.
  const isWanted = (before: Template | null) =>
    meetsConditions(event.req.headers, before === null ? null : '""')
  const saved = await templates.save(name, (before) =>
    isWanted(before) ? keepSecrets(template, before) : null,
  )
  if (!saved.ok && saved.refusal === 'stays')
    throw refuse(412, `the first-boot template ${name} is there, or is gone, and was not saved`)
  if (!saved.ok) return null
  await recordEvent(site, event, name, 'saved')
  return saved.value
}

/** Records the event; does nothing where there is none. */
export async function removeTemplate(
  site: Site<Machine>,
  templates: Templates,
  event: H3Event,
  name: string,
): Promise<void> {
  if (await templates.remove(name)) await recordEvent(site, event, name, 'removed')
}

/** Without what the template says. */
function recordEvent({ recordAll, by }: Site<Machine>, event: H3Event, name: string, done: string) {
  const kind = `settings.first_boot.${done}`
  const summary = `The first-boot template ${name} was ${done}`
  const on = { subject_id: name, ...by(event) }
  return recordAll([{ kind, subject_kind: 'settings', summary, details: null }], on)
}

/** With dots for secrets. The refusal: why it cannot be used; null: no template, or removed. */
export async function previewFirstBoot(
  site: Site<Machine>,
  templates: Templates,
  machine: Machine,
): Promise<Result<FirstBoot, string> | null> {
  const kept = machine.first_boot === null ? null : templates.find(machine.first_boot)
  if (kept === null) return null
  const subject = subjectOf(machine, await readSerial(site, machine.mac))
  return renderFirstBoot(kept.template, subject, { instance: 'flasher-…', secrets: 'hidden' })
}

export async function readSerial({ machines }: Site<Machine>, mac: Mac): Promise<string | null> {
  const hardware = await machines.findHardware(mac)
  return hardware === null ? null : (parseHardware(hardware.json)?.serial ?? null)
}
