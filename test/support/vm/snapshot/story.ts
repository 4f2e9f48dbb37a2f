/** A story: a lab, a machine that begins in its live system, and what becomes of the run and of the disks. */
import { open } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { z } from 'zod'
import type { Namespace } from '#test/support/http/namespace.ts'
import { type Lab, LAB_MAC, LAB_SERVER, type LabOptions } from '#test/support/server/lab.ts'
import { waitUntil } from '#test/support/waiting.ts'
import { openIpxe } from '../built-images.ts'
import { openGuestSession } from '../guest-session.ts'
import { startBootLab } from '../pxe-flash.ts'
import { startQemu } from '../qemu.ts'
import { loadState } from './migration.ts'
import type { PluggedDisk } from './plugged-disk.ts'
import { MEGABYTES, planMachine, SATA, type SnapshotFirmware } from './snapshot-machine.ts'
import { openSnapshot } from './snapshots.ts'
import { createStoryMachine, type StoryMachine } from './story-machine.ts'

/** Seconds for a script in the guest. */
const CONTINUED_PATIENCE = 240

interface ContinuedOptions {
  readonly firmware: SnapshotFirmware
  readonly namespace: Namespace
  /** Where the line to the agent is put. */
  readonly folder: string
  /** The raw file of the SATA disk, which the guest finds by `findSata`. */
  readonly sata?: string
}

let started = 0

async function continueMachine(options: ContinuedOptions): Promise<StoryMachine> {
  const { firmware, namespace, folder, sata } = options
  const snapshot = await openSnapshot(firmware)
  await using undo = new AsyncDisposableStack()
  started += 1
  const agent = join(folder, `agent-${started}`)
  const netdev = namespace.netdevs[0]
  const files = { netdev, memory: snapshot.memory, isKept: false, agent, sata }
  const args = [...planMachine(firmware, LAB_MAC, files), '-incoming', 'defer']
  const machine = undo.use(
    await startQemu({ namespace: namespace.name, megabytes: MEGABYTES, args }),
  )
  const { monitor } = machine
  await loadState(monitor, snapshot.state)
  const session = await openGuestSession(agent, machine.ended)
  await monitor.execute('cont')
  const require = async (script: string) => {
    const { exitCode, stdout, stderr } = await session.run(script, CONTINUED_PATIENCE)
    if (exitCode === 0) return stdout
    const log = machine.keepLog()
    throw new Error(
      `exit code ${exitCode} in the live system of: ${script}\n${stdout}${stderr}\nthe serial log is ${log}`,
    )
  }
  await require(renderArrival())
  undo.move()
  return createStoryMachine(machine, require)
}

/** The same machine from its firmware on. It is stopped before its first instruction, until `cont`. */
async function powerOnMachine(options: ContinuedOptions): Promise<StoryMachine> {
  const { firmware, namespace, folder, sata } = options
  started += 1
  const memory = join(folder, `memory-${started}`)
  const files = { netdev: namespace.netdevs[0], memory, isKept: false, sata }
  const args = [...planMachine(firmware, LAB_MAC, files), '-S']
  const machine = await startQemu({ namespace: namespace.name, megabytes: MEGABYTES, args })
  return createStoryMachine(machine, null)
}

/** Since the machine stopped, time went by, and the addresses of the network's cards are others. */
const renderArrival = () => `
date --utc --set @${Math.floor(Date.now() / 1000)} >/dev/null
for card in /sys/class/net/e*; do ip neigh flush dev \${card##*/}; done
busybox chvt 1
`

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 300
const MACHINE = `/machines/${LAB_MAC}`
/** The earlier owner's data at the beginning of each disk. */
export const USED = Buffer.alloc(2 ** 20, 'an earlier owner, ')

const ImagesSchema = z.array(z.object({ name: z.string(), ref: z.string() }))
const RunSchema = z.object({
  id: z.string(),
  mode: z.string(),
  phase: z.string(),
  result: z.string().nullable(),
  reason: z.string().nullable(),
  bytes_written: z.int(),
  verified: z.boolean().nullable(),
  bytes_kept: z.int().nullable().optional(),
  delta: z.string().nullable().optional(),
  sources: z
    .array(z.object({ name: z.string(), bytes: z.int() }))
    .nullable()
    .optional(),
  image: z.object({ name: z.string() }).nullable(),
  disk: z.object({ serial: z.string().nullable(), tran: z.string().nullable() }).nullable(),
})
export type StoryRun = z.infer<typeof RunSchema>
const RunsSchema = z.object({ runs: z.array(RunSchema) })

export type StoryDisk = (PluggedDisk | { readonly name: 'sata'; readonly bus: 'sata' }) & {
  /** 128 when absent; the SATA disk has its own size. */
  readonly megabytes?: number
}

export interface StoryOptions {
  readonly firmware?: SnapshotFirmware
  readonly disks: readonly StoryDisk[]
  /**
   * The fields of the machine, such as its mode; `image` by its name in place of a reference. Null: the
   * server knows it from the story before.
   */
  readonly machine: (Readonly<Record<string, unknown>> & { readonly image?: string }) | null
  /** Where it begins; the kept live system when absent. */
  readonly from?: StoryBeginning
}

/** `firmware`: the machine is turned on and boots over the network; BIOS and UEFI alone. */
export type StoryBeginning = 'snapshot' | 'firmware'

export interface Story extends AsyncDisposable {
  readonly lab: Lab
  readonly machine: StoryMachine
  /** The raw file of a disk. */
  fileOf(disk: string): string
  /** The machine has asked for its script, and its consoles start; or it is turned on. */
  begin(): Promise<void>
  /** Those since the machine was set up, the newest first. */
  readRuns(): Promise<readonly StoryRun[]>
  /** Waits until the last run is so. */
  waitForRun(isSo: (run: StoryRun) => boolean): Promise<StoryRun>
  /** Waits until the last run has ended. */
  waitForEnd(): Promise<StoryRun>
}

/** A lab for the stories of a file, whose cache offers the images. */
export const startStoryLab = async (
  images: readonly string[],
  { env = {}, from }: Pick<LabOptions, 'env'> & Pick<StoryOptions, 'from'> = {},
): Promise<Lab> =>
  startBootLab({ images, env, ...(from === 'firmware' ? { ipxe: await openIpxe() } : {}) })

export async function openStory(lab: Lab, options: StoryOptions): Promise<Story> {
  const { disks, from } = options
  const earlier = new Set<string>()
  if (options.machine !== null) {
    await setUpMachine(lab, options.machine)
    for (const { id } of await readAllRuns(lab)) earlier.add(id)
  }
  const count = (stories += 1)
  const fileOf = (name: string) => join(lab.folder, `${count}-${name}`)
  for (const disk of disks) await makeUsedDisk(fileOf(disk.name), disk)
  await using undo = new AsyncDisposableStack()
  const machine = undo.use(await startMachine(lab, options, fileOf))
  undo.defer(() => {
    processorSeconds += machine.readProcessorSeconds()
  })
  for (const disk of disks) {
    if (disk.bus === 'sata') await machine.findSata()
    else await machine.plug(disk, fileOf(disk.name))
  }
  const begin = async () => {
    if (from === 'firmware') await machine.monitor.execute('cont')
    else await machine.require(BEGIN)
  }
  const runs = followRuns(lab, machine, earlier)
  const held = undo.move()
  return {
    lab,
    machine,
    fileOf,
    begin,
    ...runs,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

function startMachine(
  { namespace, folder }: Lab,
  { firmware = 'bios', disks, from }: StoryOptions,
  fileOf: Story['fileOf'],
): Promise<StoryMachine> {
  const sata = disks.find(({ bus }) => bus === 'sata')
  const start = from === 'firmware' ? powerOnMachine : continueMachine
  return start({
    firmware,
    namespace,
    folder,
    ...(sata === undefined ? {} : { sata: fileOf(sata.name) }),
  })
}

/** `earlier`: the ids of runs that are another story's. */
function followRuns(
  lab: Lab,
  machine: StoryMachine,
  earlier: ReadonlySet<string>,
): Pick<Story, 'readRuns' | 'waitForRun' | 'waitForEnd'> {
  const readRuns = async () => (await readAllRuns(lab)).filter(({ id }) => !earlier.has(id))
  const waitForRun = async (isSo: (run: StoryRun) => boolean) => {
    let last: StoryRun | undefined
    await waitUntil(
      async () => {
        last = (await readRuns())[0]
        machine.readProcessorSeconds()
        return last !== undefined && isSo(last)
      },
      () => `${JSON.stringify(last)}; the serial log is ${machine.keepLog()}; ${lab.said()}`,
      PATIENCE * 1000,
    )
    if (last === undefined) throw new Error('there is no run')
    return last
  }
  return { readRuns, waitForRun, waitForEnd: () => waitForRun(({ result }) => result !== null) }
}

let stories = 0
let processorSeconds = 0

/** What QEMU took in the stories since the last call. */
export function takeProcessorSeconds(): number {
  const taken = processorSeconds
  processorSeconds = 0
  return taken
}

const readAllRuns = async (lab: Lab) => RunsSchema.parse(await lab.ask(`${MACHINE}/runs`)).runs

/** The machine of the last story is forgotten. */
async function setUpMachine(lab: Lab, { image, ...fields }: NonNullable<StoryOptions['machine']>) {
  await lab.ask(MACHINE, undefined, 'DELETE').catch(() => null)
  const ref = image === undefined ? {} : { bty_image_ref: await findImage(lab, image) }
  await lab.ask(MACHINE, { ...fields, ...ref }, 'PUT')
}

async function findImage(lab: Lab, path: string): Promise<string> {
  let ref: string | undefined
  await waitUntil(
    async () => {
      const images = ImagesSchema.parse(await lab.ask('/images'))
      ref = images.find(({ name }) => name === basename(path))?.ref
      return ref !== undefined
    },
    () => `${path} is not offered`,
  )
  return ref ?? ''
}

async function makeUsedDisk(path: string, disk: StoryDisk) {
  const megabytes = disk.bus === 'sata' ? SATA.megabytes : (disk.megabytes ?? 128)
  await using file = await open(path, 'w')
  await file.truncate(megabytes * 2 ** 20)
  await file.write(USED, 0, USED.length, 0)
}

/**
 * What firmware and boot loader do in a boot that is not kept: the machine asks for its script, and starts
 * its live system with the words that are in it. One console is enough, and half the work of two.
 */
const BEGIN = `
set -e
curl -fsS --retry 5 --retry-all-errors ${LAB_SERVER}/pxe/${LAB_MAC} >/run/boot-script
sed -n 's/^kernel .* \\(console=.*\\) || goto again$/\\1/p' /run/boot-script | head -n 1 >/run/command-line
[ -s /run/command-line ] || { cat /run/boot-script >&2; exit 1; }
mount --bind /run/command-line /proc/cmdline
systemctl start --no-block flasher-console@ttyS0
`
