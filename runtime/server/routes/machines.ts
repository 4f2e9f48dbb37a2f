/** The machines API: list, get, replace, delete, and what machines have posted. */
import type { H3Event } from 'h3'
import { createHash } from 'node:crypto'
import { renderHyphens, type Mac } from '#kit/net/rules/mac.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import { json, nothing, answer, type Answer } from '#kit/web/answers/answers.ts'
import { refuse, refuseFields } from '#kit/web/answers/faults.ts'
import type { Site, UpsertRefusal } from './site.ts'
import { readMac } from '#kit/web/answers/checked.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { meetsConditions } from '#kit/web/answers/rules/etag.ts'

export function machineRoutes(site: Site): readonly Route[] {
  const { line, machines, views, findMachine } = site
  const { show, replace, remove } = createRecordHandlers(site)

  async function showHardware(event: H3Event): Promise<Answer> {
    const mac = readMac(event)
    findMachine(mac)
    const hardware = await machines.findHardware(mac)
    if (hardware === null) throw refuse(404, `no lshw hardware inventory for ${mac}`)
    return attach(hardware.json, `${renderHyphens(mac)}-lshw.json`)
  }

  function showDisks(event: H3Event): Answer {
    const mac = readMac(event)
    const { disks } = line.describe(findMachine(mac))
    if (disks === null) throw refuse(404, `no disk inventory for ${mac}`)
    return attach(JSON.stringify(disks), `${renderHyphens(mac)}-disks.json`)
  }

  return [
    {
      method: 'GET',
      path: '/machines',
      access: 'read',
      doc: {
        summary: 'All machines, by MAC',
        query: { q: 'Only those that the search of the machines page finds' },
        answers: { 200: { type: 'array', items: { $ref: '#/components/schemas/Machine' } } },
      },
      async handle(event) {
        const all = await machines.list()
        const { searchParams } = event.url
        const found = searchParams.has('q') ? views.match(all, searchParams) : all
        return json(found.map(line.toWire))
      },
    },
    {
      method: 'GET',
      path: '/machines/:mac',
      access: 'read',
      doc: { summary: 'One machine', answers: { 200: 'Machine' } },
      handle: (event) => show(findMachine(readMac(event))),
    },
    {
      method: 'PUT',
      path: '/machines/:mac',
      access: 'machines',
      takes: 'json',
      doc: {
        summary: 'Creates or replaces a machine; what is left out has its default',
        body: 'MachineUpsert',
        answers: { 200: 'Machine' },
        refuses: [412],
        isNeverMissing: true,
      },
      handle: replace,
    },
    {
      method: 'DELETE',
      path: '/machines/:mac',
      access: 'machines',
      doc: { summary: 'Deletes a machine', answers: { 204: null }, refuses: [412] },
      handle: remove,
    },
    {
      method: 'GET',
      path: '/machines/:mac/lshw.json',
      access: 'read',
      doc: { summary: 'The hardware tree as posted', answers: { 200: {} } },
      handle: showHardware,
    },
    {
      method: 'GET',
      path: '/machines/:mac/disks.json',
      access: 'read',
      doc: { summary: 'The disks of the last inventory', answers: { 200: { type: 'array' } } },
      handle: showDisks,
    },
  ]
}

function createRecordHandlers({ line, findMachine, fleet, by }: Site) {
  /** Changes with what an operator can change, not with each contact. */
  const tagOf = (machine: MachineBase): string => {
    const fields = { ...line.toWire(machine), last_seen_at: null, last_seen_ip: null }
    const digest = createHash('sha256').update(JSON.stringify(fields)).digest('base64url')
    return `"${digest.slice(0, 22)}"`
  }
  const show = (machine: MachineBase) => json(line.toWire(machine), 200, { etag: tagOf(machine) })

  const expects = (event: H3Event) => (machine: MachineBase | null) =>
    meetsConditions(event.req.headers, machine === null ? null : tagOf(machine))

  return {
    show,
    async replace(event: H3Event, body: unknown): Promise<Answer> {
      const mac = readMac(event)
      const made = await fleet.upsert(mac, body, by(event), expects(event))
      if (made.ok) return show(made.value)
      throw asError(mac, made.refusal)
    },
    async remove(event: H3Event): Promise<Answer> {
      const mac = readMac(event)
      if (!expects(event)(findMachine(mac))) throw stale(mac)
      if (!(await fleet.remove(mac, by(event)))) throw refuse(404, `no machine record for ${mac}`)
      return nothing()
    },
  }
}

function asError(mac: Mac, refusal: UpsertRefusal) {
  switch (refusal.why) {
    case 'fields':
      return refuseFields(refusal.fields)
    case 'stale':
      return stale(mac)
    case 'missing':
      return refuse(404, `no machine record for ${mac}`)
    case 'forbidden':
      return refuse(403, refusal.reason)
  }
}

const stale = (mac: Mac) =>
  refuse(412, `the record of ${mac} has changed meanwhile, or is not to be replaced`)

/** Browsers save this and do not show it, because every text in it is the machine's own. */
const attach = (body: string, name: string) =>
  answer(
    200,
    {
      'content-type': 'application/json',
      'content-disposition': `attachment; filename="${name}"`,
    },
    body,
  )
