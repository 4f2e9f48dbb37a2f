/** Earlier line: provisioning files, kept by operators and fetched by the machine that is being flashed. */
import { getRouterParam, type H3Event } from 'h3'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { ProvisionFiles } from '#fleet/workflow/online-workflows.ts'
import { answer, nothing, type Answer } from '#kit/web/answers/answers.ts'
import { readMac } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Site } from '#server/routes/site.ts'
import type { Contact } from '#server/routes/transition.ts'
import type { Route } from '#kit/web/answers/route.ts'
import type { Machine } from '../rules/machine.ts'
import {
  isFetched,
  parseProvisionFile,
  type ProvisionFile,
} from '#fleet/workflow/rules/online-workflow.ts'

/** No seed or workflow is nearly as large. */
export const MAX_PROVISION_BYTES = 1024 * 1024

interface ProvisionDependencies {
  readonly files: ProvisionFiles
  /** Whether this server booted it for the flash under way. */
  proves(machine: Machine, contact: Contact): boolean
}

const TEXT = { type: 'string', contentMediaType: 'text/plain' }

export function provisionRoutes(
  site: Site<Machine>,
  dependencies: ProvisionDependencies,
): readonly Route[] {
  const { fetchFile, show, save, remove } = createHandlers(site, dependencies)
  const path = '/machines/:mac/provision/:name'
  return [
    {
      method: 'GET',
      path: '/pxe/:mac/provision/:name',
      access: 'open',
      doc: {
        summary: 'A provisioning file, for the machine whose boot token is shown as a bearer',
        answers: { 200: TEXT },
        refuses: [401],
      },
      handle: fetchFile,
    },
    {
      method: 'GET',
      path,
      // It may hold passwords and keys, so `read` is not enough.
      access: 'machines',
      doc: { summary: 'A provisioning file of a machine', answers: { 200: TEXT } },
      handle: show,
    },
    {
      method: 'PUT',
      path,
      access: 'machines',
      takes: 'bytes',
      most: MAX_PROVISION_BYTES,
      doc: {
        summary: 'Keeps user-data, meta-data, cijoe-workflow or cijoe-config for a machine',
        body: TEXT,
        answers: { 204: null },
      },
      handle: save,
    },
    {
      method: 'DELETE',
      path,
      access: 'machines',
      doc: { summary: 'Removes a provisioning file', answers: { 204: null } },
      handle: remove,
    },
  ]
}

function createHandlers(site: Site<Machine>, { files, proves }: ProvisionDependencies) {
  const { machines } = site

  function find(mac: Mac): Machine {
    const machine = machines.peek(mac)
    if (machine === null) throw refuse(404, `no machine record for ${mac}`)
    return machine
  }

  async function send(mac: Mac, name: ProvisionFile): Promise<Answer> {
    const bytes = await files.read(mac, name)
    if (bytes === null) throw refuse(404, `no ${name} is kept for ${mac}`)
    const headers = { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' }
    return answer(200, headers, new Uint8Array(bytes))
  }

  /** One refusal for everything: nobody learns which machines there are. */
  function fetchFile(event: H3Event): Promise<Answer> {
    const [mac, name] = [readMac(event), readName(event)]
    const machine = machines.peek(mac)
    if (machine === null || !proves(machine, site.contact(event))) {
      throw refuse(401, 'this needs the token of the boot that flashes the machine', {
        headers: { 'www-authenticate': 'Bearer' },
      })
    }
    if (!isFetched(machine.provisioning_mode, name)) {
      throw refuse(404, `${machine.provisioning_mode} needs no ${name}`)
    }
    return send(mac, name)
  }

  async function save(event: H3Event, bytes: AsyncIterable<Uint8Array>): Promise<Answer> {
    const { mac } = find(readMac(event))
    const name = readName(event)
    await files.save(mac, name, Buffer.concat(await Array.fromAsync(bytes)))
    await recordProvision(site, event, mac, name, 'saved')
    return nothing()
  }

  async function remove(event: H3Event): Promise<Answer> {
    const { mac } = find(readMac(event))
    const name = readName(event)
    await files.remove(mac, name)
    await recordProvision(site, event, mac, name, 'removed')
    return nothing()
  }

  return {
    fetchFile,
    show: (event: H3Event) => send(find(readMac(event)).mac, readName(event)),
    save,
    remove,
  }
}

/** The event never holds the file's content. */
export async function recordProvision(
  site: Site<Machine>,
  event: H3Event,
  mac: Mac,
  name: ProvisionFile,
  done: 'saved' | 'removed',
): Promise<void> {
  const kind = `machine.provision_file.${done}`
  const note = { kind, summary: `${name} of ${mac} was ${done}`, details: { name } }
  await site.recordAll([note], { subject_id: mac, ...site.by(event) })
  site.changes.announce({ topic: 'machine', mac })
}

function readName(event: H3Event): ProvisionFile {
  const name = parseProvisionFile(getRouterParam(event, 'name', { decode: true }) ?? '')
  if (name === null) throw refuse(404, 'no such provisioning file')
  return name
}
