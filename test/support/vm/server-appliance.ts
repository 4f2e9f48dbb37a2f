/** The server appliance as a machine: its disk, its ports on loopback, and its console. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import type { Arch } from '#appliance/appliance.ts'
import type { Namespace } from '../http/namespace.ts'
import { waitUntil } from '../waiting.ts'
import { ARM_FIRMWARE } from './arm64-machine.ts'
import { openServer } from './built-images.ts'
import { FIRMWARE_ARGS, type Firmware } from './usb-machine.ts'
import { startQemu, type Processor, type Qemu } from './qemu.ts'
import { findPort } from '../http/ports.ts'

/** How the firmware comes to the boot loader: of a PC, or of arm64. */
export type ApplianceFirmware = Firmware | 'arm64' | 'arm64-secure'

export interface ApplianceOptions {
  readonly firmware: ApplianceFirmware
  readonly disk: string
  /** An image of a volume with a seed, if any. */
  readonly seed?: string
  /** A restart of the system starts the machine again; else it ends it. */
  readonly restarts?: boolean
  /** A network with a DHCP server that gives this address to `APPLIANCE_MAC`; else one of its own, to this host. */
  readonly lan?: { readonly namespace: Namespace; readonly address: string }
}

export interface Appliance extends AsyncDisposable {
  readonly qemu: Qemu
  /** The address of flasher-web, as this host reaches it. */
  readonly url: string
}

export const APPLIANCE_MAC = '52:54:00:12:34:01'
/** Ends where the settings of `-netdev` follow. */
const DEVICES =
  `-device virtio-rng-pci -device virtio-net-pci,netdev=net,mac=${APPLIANCE_MAC},romfile= -netdev`.split(
    ' ',
  )

interface Machine {
  readonly processor: Processor
  readonly args: readonly string[]
}

const pc = (firmware: Firmware): Machine => ({
  processor: 'x86_64',
  args: [...FIRMWARE_ARGS[firmware], '-vga', 'std'],
})

const MACHINES: Readonly<Record<ApplianceFirmware, Machine>> = {
  bios: pc('bios'),
  uefi: pc('uefi'),
  secure: pc('secure'),
  arm64: { processor: 'aarch64', args: ARM_FIRMWARE.uefi },
  'arm64-secure': { processor: 'aarch64', args: ARM_FIRMWARE.secure },
}

/** A disk of 4 GiB in `folder` with the image on it, as somebody would write it. */
export async function writeServerDisk(folder: string, arch: Arch = 'x86_64'): Promise<string> {
  const { image } = await openServer(arch)
  const disk = join(folder, 'server.img')
  execFileSync('zstd', ['-q', '-d', '-f', '--sparse', image, '-o', disk])
  execFileSync('truncate', ['-s', '4G', disk])
  return disk
}

/** A volume labelled `cidata` with these files (NoCloud). */
export function writeSeed(folder: string, files: Readonly<Record<string, string>>): string {
  const seed = join(folder, 'seed.img')
  execFileSync('truncate', ['-s', '2M', seed])
  execFileSync('mformat', ['-i', seed, '-v', 'cidata', '::'])
  for (const [name, text] of Object.entries(files)) {
    execFileSync('mcopy', ['-i', seed, '-', `::${name}`], { input: text })
  }
  return seed
}

export async function startAppliance(options: ApplianceOptions): Promise<Appliance> {
  const { firmware, disk, seed, restarts = false, lan } = options
  const drives = [disk, ...(seed === undefined ? [] : [seed])].flatMap((file, at) => [
    '-drive',
    `if=none,id=disk${at},format=raw,file=${file}`,
    '-device',
    `virtio-blk-pci,drive=disk${at}${at === 0 ? ',bootindex=0' : ''}`,
  ])
  const { netdev, url } = await planNetwork(lan)
  const { processor, args } = MACHINES[firmware]
  const qemu = await startQemu({
    processor,
    megabytes: 1024,
    ...(lan === undefined ? {} : { namespace: lan.namespace.name }),
    args: [
      ...args,
      ...drives,
      ...DEVICES,
      netdev,
      ...(restarts ? ['-action', 'reboot=reset'] : []),
    ],
  })
  return { qemu, url, [Symbol.asyncDispose]: () => qemu[Symbol.asyncDispose]() }
}

async function planNetwork(lan: ApplianceOptions['lan']) {
  if (lan !== undefined) {
    const url = await lan.namespace.openDoor(8080, lan.address)
    return { netdev: lan.namespace.netdevs[1], url }
  }
  const port = await findPort()
  const netdev = `user,id=net,hostfwd=tcp:127.0.0.1:${port}-:8080`
  return { netdev, url: `http://127.0.0.1:${port}` }
}

const MINUTE = 60
const MAX_LOGINS = 5

/** What the login screen shows, up to where it asks. */
export const waitForLogin = (qemu: Qemu): Promise<string> =>
  qemu.waitFor(/flasher-server login: /, 10 * MINUTE)

/** The login screen comes before the servers answer. */
export const waitForHealth = ({ url, qemu }: Appliance): Promise<void> =>
  waitUntil(
    async () => {
      const answer = await fetch(`${url}/healthz`).catch(() => null)
      return answer?.ok === true && (await answer.text()) === '{"status":"ok"}'
    },
    () => `the serial log is ${qemu.keepLog()}`,
    5 * MINUTE * 1000,
  )

/** The generated password on a login screen. */
export function readPassword(screen: string): string {
  const [, password = ''] = /Password +([a-z0-9-]+)/.exec(screen) ?? []
  assert.match(password, /^\w{4}(-\w{4}){4}$/, screen)
  return password
}

/**
 * Logs in on the login screen. `login` gives up after a minute, which a busy host may take for the
 * session alone.
 */
export async function login(qemu: Qemu, password: string): Promise<void> {
  for (let tries = 0; tries < MAX_LOGINS; tries += 1) {
    qemu.send('admin\r')
    await qemu.waitFor(/Password: /, 2 * MINUTE)
    qemu.send(`${password}\r`)
    const said = await qemu.waitFor(/admin@flasher-server:~\$ |timed out after/, 5 * MINUTE)
    if (said.endsWith('$ ')) return
    await waitForLogin(qemu)
  }
  throw new Error(`the serial log is ${qemu.keepLog()}: nobody could log in`)
}

/** Runs a command as root on the console; what it said. */
export async function runAsRoot(qemu: Qemu, password: string, command: string): Promise<string> {
  // The quotes keep the echo of the line itself from matching.
  qemu.send(`echo '${password}' | sudo -S -p '' sh -c '${command}'; echo en""ded $?\r`)
  const said = await qemu.waitFor(/ended \d+/, 15 * MINUTE)
  assert.match(said, /ended 0/, said)
  return said
}
