/** The machines' records: list, get, replace, delete, and what they posted of themselves. */
import type { H3Event } from 'h3'
import { createHash } from 'node:crypto'
import { renderHyphens, type Mac } from '../../core/machine/mac.ts'
import type { MachineBase } from '../../core/machine/machine.ts'
import { json, nothing } from '../http/answers.ts'
import { refuse, refuseFields } from '../http/faults.ts'
import type { Site } from './site.ts'
import { readMac } from '../http/mac-param.ts'
import type { Route } from '../http/route.ts'

export function machineRoutes<M extends MachineBase>(site: Site<M>): readonly Route[] {
  const { line, machines, fleet } = site

  /** Changes with whatever an operator can change, not with each contact. */
  const tagOf = (machine: M): string => {
    const fields = { ...line.toWire(machine), last_seen_at: null, last_seen_ip: null }
    const text = JSON.stringify(fields)
    return `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`
  }
  const show = (machine: M, status = 200) =>
    json(line.toWire(machine), status, { etag: tagOf(machine) })

  /** `If-Match`, for those who do not want to overwrite what another changed meanwhile. */
  const expects = (event: H3Event) => (machine: M | null) => {
    const wanted = event.req.headers.get('if-match')
    if (wanted === null) return true
    if (machine === null) return false
    return wanted.trim() === '*' || wanted.split(',').some((tag) => tag.trim() === tagOf(machine))
  }

  async function find(mac: Mac): Promise<M> {
    const machine = await machines.find(mac)
    if (machine === null) throw refuse(404, `no machine record for ${mac}`)
    return machine
  }

  async function replace(event: H3Event, body: unknown): Promise<unknown> {
    const mac = readMac(event)
    const made = await fleet.upsert(mac, body, site.by(event), expects(event))
    if (made.ok) return show(made.value)
    if (made.refusal.why === 'fields') throw refuseFields(made.refusal.fields)
    throw refuse(412, `the record of ${mac} has changed meanwhile`)
  }

  async function remove(event: H3Event): Promise<unknown> {
    const mac = readMac(event)
    const before = await find(mac)
    if (!expects(event)(before)) throw refuse(412, `the record of ${mac} has changed meanwhile`)
    if (!(await fleet.remove(mac, site.by(event)))) {
      throw refuse(404, `no machine record for ${mac}`)
    }
    return nothing()
  }

  async function showHardware(event: H3Event): Promise<unknown> {
    const mac = readMac(event)
    await find(mac)
    const hardware = await machines.findHardware(mac)
    if (hardware === null) throw refuse(404, `no lshw hardware inventory for ${mac}`)
    return attach(hardware.json, `${renderHyphens(mac)}-lshw.json`)
  }

  async function showDisks(event: H3Event): Promise<unknown> {
    const mac = readMac(event)
    const disks = line.listDisks(await find(mac))
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
        return (searchParams.has('q') ? line.match(all, searchParams) : all).map(line.toWire)
      },
    },
    {
      method: 'GET',
      path: '/machines/:mac',
      access: 'read',
      doc: { summary: 'One machine', answers: { 200: 'Machine' } },
      handle: async (event) => show(await find(readMac(event))),
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

/** Saved, not shown: every text in it is the machine's own. */
const attach = (body: string, name: string) =>
  new Response(body, {
    headers: {
      'content-type': 'application/json',
      'content-disposition': `attachment; filename="${name}"`,
    },
  })
