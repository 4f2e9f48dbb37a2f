/** The demo from beginning to end: prepares, starts server and machine, and reports what becomes of them. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { startBmc, type Bmc } from './bmc.ts'
import { renderProbe, SECTOR } from './boot-sector.ts'
import { chooseAccelerator, findFreePort, runTool } from './host.ts'
import { layDisk, layGivenImage, layOwnImage } from './image.ts'
import type { LiveSource, ReleaseSite } from './live-source.ts'
import { MACHINE, planMachine, planProbe, SERIAL_SCREEN, type Accelerator } from './machine.ts'
import { awaitImage, fetchRelease } from './operator.ts'
import { powerMachine } from './powered-machine.ts'
import { startMachine } from './qemu.ts'
import { openSerialCall } from './serial-call.ts'
import { startServer, type Server } from './server.ts'
import { watchMachine, type Outcome, type WatchReport } from './watch.ts'

export interface DemoOptions {
  readonly checkout: string
  readonly folder: DemoFolder
  readonly source: LiveSource
  readonly site: ReleaseSite | null
  /** Arms the machine and ends once it has booted what was flashed. */
  readonly auto: boolean
  readonly isWindow: boolean
  readonly accelerator: Accelerator | 'auto'
  /** The path of an image of the person's own; null: the demo makes one. */
  readonly image: string | null
}

/** What a person sees while it goes on. */
export interface DemoReport extends WatchReport {
  /** A part of the preparation is done. */
  prepared(text: string): void
  /** The text is shown until the next call. */
  busy(text: string): void
  open(opened: { readonly url: string; readonly password: string; readonly hasBmc: boolean }): void
}

/** Where everything of the demo lies. */
export type DemoFolder = ReturnType<typeof planFolder>

/** Plans where everything of the demo lies below a folder. */
export const planFolder = (root: string) => ({
  root,
  state: join(root, 'state'),
  boot: join(root, 'state/boot'),
  images: join(root, 'state/cache'),
  password: join(root, 'password'),
  serverLog: join(root, 'server.log'),
  serialLog: join(root, 'serial.log'),
  disk: join(root, 'disk.img'),
  probe: join(root, 'probe.img'),
  serialScreen: join(root, 'serial-screen'),
  bmc: join(root, 'bmc'),
})

/** The first that is tried; the cache takes one behind the server's. */
const FIRST_PORT = 8080

/**
 * Runs the demo. Everything that it starts has ended when it resolves or rejects; it rejects when
 * `signal` is aborted.
 */
export async function runDemo(
  options: DemoOptions,
  report: DemoReport,
  signal: AbortSignal,
): Promise<Outcome> {
  const { folder } = options
  const accelerator = await prepareAccelerator(options, report)
  signal.throwIfAborted()
  const laid =
    options.image === null
      ? await layOwnImage(folder.images)
      : { name: await layGivenImage(options.image, folder.images), calls: false }
  await layDisk(folder.disk, MACHINE.diskBytes)
  await using server = await openServer(options, laid.calls, { report, signal })
  const image = await awaitImage(server, laid.name, signal)
  report.prepared(`Image ${laid.name} in the catalog`)
  const canTie = (await runTool(['setpriv', '--pdeathsig', 'KILL', 'true'])) !== null
  const tie = canTie ? ['setpriv', '--pdeathsig', 'KILL'] : []
  await using bmc = await openBmc(folder, tie)
  if (bmc !== null) report.prepared('The machine has a BMC (ipmi_sim), so its page can turn it on')
  await using call = await openSerialCall(server.url)
  await rm(folder.serialLog, { force: true })
  report.open({
    url: `${server.url}/ui/machines`,
    password: await readPassword(folder),
    hasBmc: bmc !== null,
  })
  signal.throwIfAborted()
  const argv = planMachine({
    ...folder,
    accelerator,
    isWindow: options.isWindow,
    port: Number(new URL(server.url).port),
    callPort: call.port,
  })
  const start = () => startMachine({ argv, serialLog: folder.serialLog, tie })
  await using machine = bmc === null ? start() : powerMachine(start, bmc)
  return await watchMachine({
    machine,
    server,
    image,
    bmc,
    arms: options.auto,
    hasGreeting: options.image === null,
    calls: laid.calls,
    logs: folder,
    report,
    signal,
  })
}

/** Null where ipmi_sim, or ipmitool for the server, is not installed. */
async function openBmc({ bmc }: DemoFolder, tie: readonly string[]): Promise<Bmc | null> {
  const tools = [await runTool(['ipmi_sim', '--help']), await runTool(['ipmitool', '-V'])]
  if (tools.includes(null)) return null
  return startBmc({ folder: bmc, password: randomBytes(8).toString('hex'), tie })
}

async function prepareAccelerator(
  { folder, accelerator }: DemoOptions,
  report: DemoReport,
): Promise<Accelerator> {
  await mkdir(folder.root, { recursive: true, mode: 0o700 })
  await writeFile(folder.probe, Buffer.concat([renderProbe(), Buffer.alloc(2 ** 20 - SECTOR)]))
  await writeFile(folder.serialScreen, SERIAL_SCREEN)
  if (accelerator !== 'auto') return accelerator
  const chosen = await chooseAccelerator(planProbe('kvm', folder.probe))
  report.prepared(
    chosen === 'kvm'
      ? 'KVM works here'
      : 'No usable KVM here: the machine is emulated, which takes some minutes',
  )
  return chosen
}

async function openServer(
  { checkout, folder, source, site }: DemoOptions,
  calls: boolean,
  { report, signal }: { readonly report: DemoReport; readonly signal: AbortSignal },
): Promise<Server> {
  report.busy('Starting server and image cache')
  await using undo = new AsyncDisposableStack()
  const port = await findFreePort(FIRST_PORT)
  const server = undo.use(
    await startServer(
      {
        checkout,
        site,
        calls,
        stateDir: folder.state,
        log: folder.serverLog,
        port,
        cachePort: port + 1,
        password: await readPassword(folder),
      },
      signal,
    ),
  )
  report.prepared(`Server and image cache on ${server.url}, with their state in ${folder.root}`)
  if (source.from === 'site') {
    await fetchRelease(
      server,
      (part) => report.busy(`Fetching the live system${renderPart(part)}`),
      signal,
    )
    report.prepared(`Live system fetched from ${source.site.url}`)
  }
  report.busy('Waiting for the image to be in the catalog')
  undo.move()
  return server
}

const renderPart = (part: number | null) => (part === null ? '' : `: ${Math.floor(part * 100)} %`)

/** The same at each start, so that a browser that is logged in stays so. */
async function readPassword({ password: path }: DemoFolder): Promise<string> {
  const kept = (await readFile(path, 'utf8').catch(() => '')).trim()
  if (kept !== '') return kept
  const made = randomBytes(6)
    .toString('hex')
    .replaceAll(/(.{4})(?=.)/g, '$1-')
  await writeFile(path, `${made}\n`, { mode: 0o600 })
  return made
}
