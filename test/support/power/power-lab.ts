/** A server that controls the power of two machines, both by one BMC that can lie. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPower } from '../../../runtime/fleet/power/power-service.ts'
import { openPowerBook } from '../../../runtime/fleet/power/power-store.ts'
import { createReach } from '../../../runtime/fleet/power/address-check.ts'
import { createShell } from '../../../runtime/kit/host/shell.ts'
import { createPowerControl } from '../../../runtime/server/power/power-control.ts'
import { powerSettingRoutes } from '../../../runtime/server/current/routes/power-settings.ts'
import { proofRoutes } from '../../../runtime/server/current/routes/proof.ts'
import { firstBootRoutes } from '../../../runtime/server/current/routes/seed.ts'
import { powerRoutes } from '../../../runtime/server/current/routes/power.ts'
import { createEventRecorder } from '../../../runtime/server/routes/fleet.ts'
import { MAC, entryOf, REF } from '../server/machine-fixture.ts'
import { asJson, createTestServer, readJson, type TestServerOptions } from '../server/server.ts'
import { NETWORK, TIMES } from './acting.ts'
import { startRedfish } from './redfish-fake.ts'

/** The second machine; the first one is `MAC`. */
export const OTHER = '52:54:00:12:34:57'

interface LabOptions {
  readonly networks?: readonly string[]
  readonly max_flashes?: number
  readonly proof?: TestServerOptions['proof']
}

/** A server with one BMC that lies on request, and two machines. */
export async function openPowerLab({
  networks = NETWORK,
  max_flashes = 0,
  proof,
}: LabOptions = {}) {
  const stack = new AsyncDisposableStack()
  const fake = stack.use(await startRedfish())
  const folder = await mkdtemp(join(tmpdir(), 'flasher-power-'))
  stack.defer(() => rm(folder, { recursive: true }))
  const file = join(folder, 'power.json')
  const book = await openPowerBook(file)
  const power = stack.use(
    createPower({
      book,
      shell: createShell({ env: process.env }),
      findAddress: createReach(() => ({ networks, ownPorts: [] })),
      timeoutMs: 500,
      times: () => TIMES,
      now: () => new Date(),
    }),
  )
  const made: { control?: ReturnType<typeof createPowerControl> } = {}
  const server = stack.use(
    await createTestServer({
      catalog: [entryOf(REF)],
      pxe: { max_flashes },
      ...(proof === undefined ? {} : { proof }),
      power({ machines, runs, journal, log }) {
        made.control = createPowerControl({
          power,
          book,
          labelsOf: (mac) => machines.peek(mac)?.labels ?? [],
          findRun: (mac) => runs.findRunning(mac)?.id ?? null,
          recordAll: createEventRecorder({ journal, log }),
          stagger: () => 0,
          now: () => new Date(),
        })
        return made.control
      },
      routes(site, rules) {
        const { control } = made
        if (control === undefined) throw new Error('the control is made first')
        return [
          ...powerRoutes(site, { control, stagger: () => 0 }),
          ...powerSettingRoutes(site, control),
          ...firstBootRoutes(site, rules),
          ...proofRoutes(site, rules),
        ]
      },
    }),
  )
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
    file,
    bmc,
    set: (more: object = {}, mac: string = MAC) =>
      readJson(ask(`/machines/${mac}/power`, asJson({ ...bmc, ...more }, 'PUT'))),
    /** What controls their power. */
    control() {
      if (made.control === undefined) throw new Error('the control is made first')
      return made.control
    },
    /** Boots machines from the network once, as a flash of many does. */
    async bootEach(...asked: Parameters<ReturnType<typeof createPowerControl>['bootEach']>) {
      await made.control?.bootEach(...asked)
    },
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
    async end() {
      await power[Symbol.asyncDispose]()
      await made.control?.settle()
    },
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
