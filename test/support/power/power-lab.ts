/** A server that controls the power of two machines, both by one BMC that can lie. */
import { join } from 'node:path'
import { MAC, entryOf, REF } from '../server/machine-fixture.ts'
import { asJson, createTestServer, readJson } from '../server/server.ts'
import { NETWORK, TIMES } from './acting.ts'
import { startRedfish } from './redfish-fake.ts'

/** The second machine; the first one is `MAC`. */
export const OTHER = '52:54:00:12:34:57'

interface LabOptions {
  readonly networks?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** A server with one BMC that lies on request, and two machines. */
export async function openPowerLab({ networks = NETWORK, env = {} }: LabOptions = {}) {
  const stack = new AsyncDisposableStack()
  const fake = stack.use(await startRedfish())
  const server = stack.use(
    await createTestServer({
      catalog: [entryOf(REF)],
      env: { FLASHER_POWER_NETWORKS: networks.join(','), FLASHER_POWER_STAGGER: '0', ...env },
      power: { request: 500, ...TIMES },
    }),
  )
  const { control } = server.power
  const ask = await server.operator()
  for (const mac of [MAC, OTHER]) {
    const machine = { boot_mode: 'ipxe-exit', labels: ['rack-1'], bty_image_ref: REF }
    await readJson(ask(`/machines/${mac}`, asJson({ ...machine, target_disk_serial: 'S1' }, 'PUT')))
  }
  const bmc = { way: 'redfish', address: fake.address }
  return {
    fake,
    server,
    ask,
    file: join(server.dir, 'power.json'),
    bmc,
    set: (more: object = {}, mac: string = MAC) =>
      readJson(ask(`/machines/${mac}/power`, asJson({ ...bmc, ...more }, 'PUT'))),
    /** What controls their power. */
    control: () => control,
    /** Boots machines from the network once, as a flash of many does. */
    bootEach: control.bootEach,
    async events() {
      const { events } = await readJson(ask('/events?limit=50'))
      return (events as { kind: string; summary: string }[]).filter(({ kind }) =>
        kind.startsWith('machine.power'),
      )
    },
    async token(...scopes: readonly string[]) {
      const body = { name: scopes.join(' '), scopes }
      const { token } = await (await ask('/tokens', asJson(body))).json()
      return (path: string, init: RequestInit = {}) =>
        server.request(path, {
          ...init,
          headers: { ...(init.headers as object), authorization: `Bearer ${token}` },
        })
    },
    /** Ends the control of power, as the end of the server does. */
    end: () => server.power[Symbol.asyncDispose](),
    /** A run of the machine is under way. */
    begin: () =>
      server.request(
        `/pxe/${MAC}/progress`,
        asJson({
          run: 'run-00001',
          mode: 'flash',
          phase: 'write',
          eta_seconds: null,
          bytes_read: 0,
          bytes_written: 0,
          total_bytes: null,
          rate: null,
        }),
      ),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}
