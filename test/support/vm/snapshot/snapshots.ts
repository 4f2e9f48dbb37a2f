/** Boots the live system from the firmware on, once for each of them, and keeps the machine as it is then. */
import { execFileSync } from 'node:child_process'
import { readdir, readFile, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { LAB_MAC, type LabOptions } from '#test/support/server/lab.ts'
import { openTestCache } from '#test/support/server/test-cache.ts'
import { waitUntil } from '#test/support/waiting.ts'
import { openIpxe, openSecureBoot, openTrio } from '../built-images.ts'
import { openGuestSession, type GuestSession } from '../guest-session.ts'
import { press, type } from './keyboard.ts'
import { PATIENCE, startBootLab } from '../pxe-flash.ts'
import { startQemu, type Qemu } from '../qemu.ts'
import { saveState } from './migration.ts'
import { MEGABYTES, planMachine, type SnapshotFirmware } from './snapshot-machine.ts'

const MachineSchema = z.object({ known_disks: z.array(z.unknown()).nullable() })

/** A busy host loses keys: seconds until what was typed has not worked, and how often it is typed. */
const TYPING = 60
const MAX_TRIES = 4
/** Milliseconds until the second console is on the screen. */
const SWITCH_MS = 2000

export interface Snapshot {
  /** The files of the memory and of everything else. */
  readonly memory: string
  readonly state: string
}

/** Snapshots of one firmware that are kept: those of further live systems make place. */
const MAX_KEPT = 2

const AGENT = join(import.meta.dirname, 'agent.sh')
const FIRMWARE_FOLDER = '/usr/share/OVMF'

/** A boot takes a minute or two; where the same one was kept already, it is there at once. */
export async function openSnapshot(firmware: SnapshotFirmware): Promise<Snapshot> {
  const trio = await openTrio()
  const cache = await openTestCache(`live-${firmware}`, {
    recipe: [trio.checksums, AGENT],
    also: [readQemuVersion(), await readFirmware(), READ_AGENT, PREPARE, ...describe(firmware)],
  })
  const folder = await cache.keep(['memory', 'state'], (into) => makeSnapshot(firmware, into))
  await removeOlder(folder, `live-${firmware}-`)
  return { memory: join(folder, 'memory'), state: join(folder, 'state') }
}

/** The arguments without what differs each time. */
const describe = (firmware: SnapshotFirmware) =>
  planMachine(firmware, LAB_MAC, { netdev: '', memory: '', isKept: true, agent: '' })

const readQemuVersion = () =>
  execFileSync('qemu-system-x86_64', ['--version'], { encoding: 'utf8' }).trim()

/** Debian's package says with its version what all its files are. */
async function readFirmware(): Promise<string> {
  const names = (await readdir(FIRMWARE_FOLDER)).toSorted()
  const sizes = names.map(async (name) => {
    const { size, mtimeMs } = await stat(join(FIRMWARE_FOLDER, name))
    return `${name} ${size} ${mtimeMs}`
  })
  return (await Promise.all(sizes)).join('\n')
}

async function removeOlder(folder: string, prefix: string): Promise<void> {
  const root = dirname(folder)
  const names = (await readdir(root)).filter((name) => name.startsWith(prefix))
  const found = await Promise.all(
    names.map(async (name) => ({ name, at: (await stat(join(root, name))).mtimeMs })),
  )
  const older = found.toSorted((a, b) => b.at - a.at).slice(MAX_KEPT)
  for (const { name } of older) {
    if (name !== basename(folder)) await rm(join(root, name), { recursive: true, force: true })
  }
}

/** What a lab hands to machines of this firmware. */
export async function openLoaders(
  firmware: SnapshotFirmware,
): Promise<Pick<LabOptions, 'ipxe' | 'secureBoot'>> {
  if (firmware === 'secure') return { secureBoot: await openSecureBoot() }
  return { ipxe: await openIpxe() }
}

async function makeSnapshot(firmware: SnapshotFirmware, into: string): Promise<void> {
  await using lab = await startBootLab(await openLoaders(firmware))
  await lab.ask(`/machines/${LAB_MAC}`, { boot_mode: 'flasher-tui' }, 'PUT')
  const agent = join(lab.folder, 'agent')
  const memory = join(into, 'memory')
  const netdev = lab.namespace.netdevs[0]
  const args = planMachine(firmware, LAB_MAC, { netdev, memory, isKept: true, agent })
  await using machine = await startQemu({
    namespace: lab.namespace.name,
    megabytes: MEGABYTES,
    args,
  })
  await machine.waitFor(/flasher: digest verified/, PATIENCE)
  const knowsDisks = async () =>
    MachineSchema.parse(await lab.ask(`/machines/${LAB_MAC}`)).known_disks !== null
  await waitUntil(knowsDisks, lab.said, PATIENCE * 1000)
  const session = await startAgent(machine, agent)
  const prepared = await session.run(PREPARE, PATIENCE)
  if (prepared.exitCode !== 0) throw new Error(`${prepared.stdout}${prepared.stderr}`)
  await saveState(machine.monitor, join(into, 'state'))
}

const HERE = 'shell-here'
/** The line is open before anything is written to it: what comes earlier is lost. */
const READ_AGENT = [
  'systemctl stop flasher-console@ttyS1',
  'exec 3<>/dev/ttyS1',
  `echo ${HERE}>/dev/ttyS0`,
  'head -n1<&3|base64 -d>/run/agent.sh',
  'exec bash /run/agent.sh<&3',
].join(';')

/** The shell on the second console reads the agent from the second serial line. */
async function startAgent(machine: Qemu, socket: string): Promise<GuestSession> {
  const { monitor } = machine
  const session = await openGuestSession(socket, machine.ended)
  const agent = (await readFile(AGENT)).toString('base64')
  await press(monitor, ['alt', 'f2'])
  await sleep(SWITCH_MS)
  for (let tries = 1; ; tries += 1) {
    // What was typed before is given up.
    await press(monitor, ['ctrl', 'c'])
    await type(monitor, `\n${READ_AGENT}\n`)
    try {
      await machine.waitFor(new RegExp(HERE), TYPING)
      session.tell(`${agent}\n`)
      await machine.waitFor(/flasher-agent: ready/, TYPING)
      return session
    } catch (error) {
      if (tries === MAX_TRIES) throw error
    }
  }
}

/**
 * As before the first wizard: nobody has been driven, and no disk has been seen. What it read once
 * stays in memory, as it would in a machine that had a moment more.
 */
const PREPARE = `
set -e
systemctl stop flasher-console@tty1 flasher-console@ttyS0 flasher-console@ttyS1
rm -f /run/flasher/driven /run/flasher.status
echo 1 >/sys/block/sda/device/delete
udevadm settle
sync
`
