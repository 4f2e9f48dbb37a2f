/** The server appliance as a machine: its disk, its ports on loopback, and its console. */
import { execFileSync } from 'node:child_process'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { openServer } from './built-images.ts'
import { FIRMWARE_ARGS, type Firmware } from './usb-machine.ts'
import { startQemu, type Qemu } from './qemu.ts'

export interface ApplianceOptions {
  readonly firmware: Firmware
  readonly disk: string
  /** An image of a volume with a seed, if any. */
  readonly seed?: string
  /** A restart of the system starts the machine again; else it ends it. */
  readonly restarts?: boolean
  readonly args?: readonly string[]
}

export interface Appliance extends AsyncDisposable {
  readonly qemu: Qemu
  /** Of flasher-web, on this host. */
  readonly url: string
}

/** Ends where the settings of `-netdev` follow. */
const NETWORK =
  '-vga std -device virtio-rng-pci -device virtio-net-pci,netdev=net,romfile= -netdev'.split(' ')

/** A disk of 4 GiB in `folder` with the image on it, as somebody would write it. */
export async function writeServerDisk(folder: string): Promise<string> {
  const { image } = await openServer()
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
  const { firmware, disk, seed, restarts = false, args = [] } = options
  const port = await findPort()
  const drives = [disk, ...(seed === undefined ? [] : [seed])].flatMap((file, at) => [
    '-drive',
    `if=none,id=disk${at},format=raw,file=${file}`,
    '-device',
    `virtio-blk-pci,drive=disk${at}${at === 0 ? ',bootindex=0' : ''}`,
  ])
  const qemu = await startQemu({
    megabytes: 1024,
    args: [
      ...FIRMWARE_ARGS[firmware],
      ...drives,
      ...NETWORK,
      `user,id=net,hostfwd=tcp:127.0.0.1:${port}-:8080`,
      ...(restarts ? ['-action', 'reboot=reset'] : []),
      ...args,
    ],
  })
  return {
    qemu,
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: () => qemu[Symbol.asyncDispose](),
  }
}

/** A port that is free now; QEMU takes a number only. */
async function findPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return address.port
}
