/** A machine that its server drives, in this process: real server, real disks, real writes, no screen. */
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import type { FlashEvent } from '#engine/flash/rules/flash-plan.ts'
import type { FlashOutcome } from '#engine/flash/rules/run-report.ts'
import { parseMac, type Mac } from '#kit/net/rules/mac.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { drive } from '#flasher/order/remote.ts'
import type { RemoteDependencies } from '#flasher/order/remote-hooks.ts'
import { runChoices } from '#flasher/wizard/screens/flashing.ts'
import type {
  DrivenScreen,
  Flashed,
  Hooks,
  RemoteOutcome,
  FlashChoice,
} from '#flasher/order/rules/flash-choice.ts'
import { createDisks } from '#engine/disk/disks.ts'
import { createShell } from '#kit/host/shell.ts'
import { createFlasher } from '#engine/flash/flasher.ts'
import { asJson, createTestServer, listen, type TestServerOptions } from '../server/server.ts'

export const MAC = mac('52:54:00:00:00:01')

export function mac(text: string): Mac {
  const parsed = parseMac(text)
  if (!parsed.ok) throw new Error(`${text} is not a MAC address`)
  return parsed.value
}

/** An entry of the server's catalog for what a test's web server has. */
export const entryOf = (url: string, more: Partial<CatalogEntry> = {}): CatalogEntry => ({
  ref: 'a'.repeat(64),
  name: url.split('/').at(-1) ?? 'image',
  src: url,
  resolvedSrc: null,
  url,
  format: 'img',
  arch: null,
  sha256: null,
  sizeBytes: null,
  description: null,
  ...more,
})

/** A server on a socket, and what its operator does there. */
export async function openServer(
  catalog: readonly CatalogEntry[],
  options: Pick<TestServerOptions, 'env' | 'cacheUrl' | 'assembly'> = {},
) {
  const server = await createTestServer({ ...options, catalog })
  const open = await listen(server)
  async function put(path: string, body: Readonly<Record<string, unknown>>) {
    const ask = await server.operator()
    const answer = await ask(path, asJson(body, 'PUT'))
    if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`)
  }
  return {
    url: open.url,
    dir: server.dir,
    machines: server.machines,
    request: server.request,
    log: server.log,
    set: server.set,
    close: () => open[Symbol.asyncDispose](),
    put,
    /** Sets what the machine shall do. */
    arm: (fields: Readonly<Record<string, unknown>>) => put(`/machines/${MAC}`, fields),
    ask: async (path: string, body?: Readonly<Record<string, unknown>>) => {
      const ask = await server.operator()
      return await (body === undefined ? ask(path) : ask(path, asJson(body)))
    },
    async [Symbol.asyncDispose]() {
      await open[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

export type DeskServer = Awaited<ReturnType<typeof openServer>>

const RunsSchema = z.object({
  runs: z.array(
    z.object({
      id: z.string(),
      mode: z.string(),
      result: z.string().nullable(),
      reason: z.string().nullable(),
      bytes_written: z.number(),
      verified: z.boolean().nullable(),
      has_log: z.boolean(),
      disk: z.object({ path: z.string().nullable(), serial: z.string().nullable() }).nullable(),
      steps: z.array(z.object({ phase: z.string() })),
    }),
  ),
})

/** The one run that the server has of the machine, and its log. */
export async function runOf(server: DeskServer) {
  const answer = await server.ask(`/machines/${MAC}/runs`)
  const { runs } = RunsSchema.parse(await answer.json())
  const [only] = runs
  assert.is(runs.length, 1)
  if (only === undefined) throw new Error('no run')
  const log = only.has_log ? await server.ask(`/machines/${MAC}/runs/${only.id}/log`) : null
  const phases = only.steps.map(({ phase }) => phase).join(' ')
  return { ...only, phases, log: (await log?.text()) ?? '' }
}

const shell = createShell({ env: process.env })

export interface MachineOptions {
  readonly server: string
  /** Further servers. */
  readonly others?: readonly string[]
  readonly mac?: string
  /** Disks by the place where they are plugged in; no others are seen. */
  readonly places?: Readonly<Record<string, string>>
  readonly env?: Readonly<Record<string, string>>
  readonly parts?: Partial<RemoteDependencies>
  /** What happens while the disk is written. */
  readonly onWrite?: () => void
  readonly cancel?: AbortSignal
}

export interface Driven {
  readonly outcome: RemoteOutcome
  readonly said: readonly string[]
  readonly marks: readonly string[]
  readonly reboots: number
}

/** Has the server drive this machine, to the end. */
export async function driveMachine(options: MachineOptions): Promise<Driven> {
  const { server, others = [], places = {}, env = {} } = options
  const folder = await mkdtemp(join(tmpdir(), 'flasher-places-'))
  await mkdir(join(folder, 'by-path'))
  for (const [name, node] of Object.entries(places)) {
    await symlink(node, join(folder, 'by-path', name))
  }
  const said: string[] = []
  const marks: string[] = []
  let reboots = 0
  const all = createDisks({ shell })
  const nodes = new Set(Object.values(places))
  const parts: RemoteDependencies = {
    disks: {
      survey: async (how) => (await all.survey(how)).filter(({ path }) => nodes.has(path)),
    },
    loops: true,
    placeNames: join(folder, 'by-path'),
    hardware: {
      readTree: async () => null,
      readBmcAddress: async () => null,
      readBootTimes: async () => '',
      readKernelLog: async () => ['[1.0] kernel: hello'],
    },
    nvram: { bootOnce: async () => ({ ok: false, refusal: 'not in this test' }) },
    power: {
      reboot: async () => {
        reboots += 1
        return { ok: true, value: null }
      },
    },
    marks: {
      mark: async (text) => void marks.push(text),
      status: async (text) => void marks.push(text),
    },
    env,
    signal: new AbortController().signal,
    now: () => performance.now(),
    times: { contact: 2000, report: 20_000, failure: 20_000, silence: 50, retry: 20 },
    ...options.parts,
  }
  const screen: DrivenScreen = {
    identity: { mac: null, server: null, address: null },
    say: (line) => void said.push(line),
    runFlash: (choice, hooks) => runFlash(choice, hooks, options, (line) => void said.push(line)),
  }
  try {
    const outcome = await drive(screen, { server, others, mac: options.mac ?? MAC }, parts)
    return { outcome, said, marks, reboots }
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** A person flashes in the wizard that was opened. */
export async function flashByHand(
  hooks: Hooks,
  location: string,
  disk: string,
): Promise<FlashOutcome> {
  const name = location.split('/').at(-1) ?? ''
  const image = { name, location, format: null, sizeBytes: null, sha256: null, ref: null }
  const choice = { image, disk, identity: null, unattended: false }
  return (await runFlash(choice, hooks, { server: '' }, () => {})).end
}

/** As the flashing screen does it, without the screen. */
async function runFlash(
  choice: FlashChoice,
  hooks: Hooks,
  { onWrite, cancel: signal = new AbortController().signal }: MachineOptions,
  say: (line: string) => void,
): Promise<Flashed> {
  const onEvent = ({ event }: FlashEvent) => (event === 'writing' ? onWrite?.() : undefined)
  const options = { env: {}, retryMs: 1 }
  const ended = await runChoices([choice], hooks, {
    loadFlasher: () => Promise.resolve(createFlasher(options)),
    signal,
    onEvent,
    onEnd: () => undefined,
  })
  return { ...ended, ...(await hooks.onEnd(ended.end, choice, say)) }
}
