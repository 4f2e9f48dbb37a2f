/** What `pnpm build:images` makes, for tests that boot it: built at the first call, else at once. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import type { Arch } from '#appliance/appliance.ts'
import {
  boardImage,
  checksumsOf,
  commonDebFiles,
  containersFile,
  debFile,
  ipxeFile,
  LIVE_SUMS,
  LIVE_TRIO,
  LIVE_USB,
  netbootStem,
  netbootTrio,
  secureBootFiles,
  serverImage,
  serverUpdate,
  STICK_FILES,
  usbIso,
} from '#appliance/assets.ts'
import { readVersion } from '#build/facts.ts'

const CHECKOUT = join(import.meta.dirname, '../../..')
const DIST = join(CHECKOUT, 'dist')
const version = readVersion(CHECKOUT)

/** One try for all tests of a run. */
const built = new Map<string, Promise<string>>()

/** Why nothing can be built here; null where it can. */
export function findBuildObstacle(): string | null {
  if (process.arch !== 'x64') return 'images are built on x86-64'
  return process.getuid?.() === 0 ? null : 'building images needs root'
}

/** The path of the ISO. */
export async function openIso(): Promise<string> {
  return join(await build('usb-pc'), usbIso('x86_64', version))
}

/** The stick as files: the archive, and the page that copies them. */
export async function openStickFiles(): Promise<{ readonly zip: string; readonly page: string }> {
  const folder = await build('usb-files')
  return { zip: join(folder, STICK_FILES.archive), page: join(folder, STICK_FILES.page) }
}

/** The stick for boards, unpacked: removed at the end. */
export async function unpackBoard(): Promise<{ readonly path: string } & AsyncDisposable> {
  const packed = join(await build('usb-rpi'), boardImage(version))
  const folder = await mkdtemp(join(tmpdir(), 'flasher-board-'))
  const path = join(folder, 'board.img')
  await pipeline(createReadStream(packed), createGunzip(), createWriteStream(path))
  return { path, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) }
}

/** The paths of the Debian packages: the programs', the server's, the one of the former name. */
export async function openDebs() {
  const folder = await build('deb')
  const [server = '', former = ''] = commonDebFiles(version)
  const find = (name: string) => join(folder, name)
  return {
    version,
    programs: find(debFile('x86_64', version)),
    server: find(server),
    former: find(former),
  }
}

/** The archive of the container images. */
export async function openContainers() {
  return { version, archive: join(await build('containers'), containersFile('x86_64', version)) }
}

/** The product with the server appliance of each architecture. */
const SERVERS: Readonly<Record<Arch, string>> = { x86_64: 'server', arm64: 'server-rpi' }

/** Paths of the server appliance: its disk, and what updates it. */
export async function openServer(arch: Arch = 'x86_64') {
  const folder = await build(SERVERS[arch])
  const update = serverUpdate(arch, version)
  const find = (name: string) => join(folder, name)
  return {
    version,
    image: find(serverImage(arch)),
    kernel: find(update.kernel),
    initrd: find(update.initrd),
    squashfs: find(update.squashfs),
  }
}

export interface Trio {
  readonly kernel: string
  readonly initrd: string
  readonly squashfs: string
  /** Their digests, as `sha256sum -c` takes them. */
  readonly checksums: string
}

/** The product with the trio of each architecture. */
const TRIOS: Readonly<Record<Arch, string>> = { x86_64: 'netboot-pc', arm64: 'netboot-arm64' }

/** Paths of the files that boot from the network. */
export async function openTrio(arch: Arch = 'x86_64'): Promise<Trio> {
  const folder = await build(TRIOS[arch])
  const { kernel, initrd, squashfs } = netbootTrio(arch, version)
  return {
    kernel: join(folder, kernel),
    initrd: join(folder, initrd),
    squashfs: join(folder, squashfs),
    checksums: join(folder, checksumsOf(netbootStem(arch, version))),
  }
}

/** Earlier line: the path of the stick, compressed. */
export async function openLiveUsb(): Promise<string> {
  return join(await build('earlier-usb'), LIVE_USB)
}

/** Earlier line: paths of the files that boot from the network. */
export async function openLiveTrio(): Promise<Trio> {
  const folder = await build('earlier-live')
  return {
    kernel: join(folder, LIVE_TRIO.vmlinuz),
    initrd: join(folder, LIVE_TRIO.initrd),
    squashfs: join(folder, LIVE_TRIO.squashfs),
    checksums: join(folder, LIVE_SUMS),
  }
}

/** The paths of our iPXE for UEFI, by processor. */
export async function openIpxe(): Promise<{ readonly x86_64: string; readonly arm64: string }> {
  const folder = await build('ipxe-efi')
  const find = (arch: Arch) => join(folder, ipxeFile(arch, version))
  return { x86_64: find('x86_64'), arm64: find('arm64') }
}

/** Paths of Debian's signed shim and GRUB, and of their configuration. */
export async function openSecureBoot(
  arch: Arch = 'x86_64',
): Promise<ReturnType<typeof secureBootFiles>> {
  const folder = await build('secureboot-efi')
  const { shim, grub, config } = secureBootFiles(arch, version)
  return { shim: join(folder, shim), grub: join(folder, grub), config: join(folder, config) }
}

/** The folder in which its files lie. FLASHER_TEST_DIST names one where they lie already. */
function build(name: string): Promise<string> {
  const given = process.env['FLASHER_TEST_DIST']
  if (given !== undefined && given !== '') return Promise.resolve(given)
  const before = built.get(name)
  if (before !== undefined) return before
  const building = runBuild(name)
  built.set(name, building)
  return building
}

async function runBuild(name: string): Promise<string> {
  const child = spawn(process.execPath, ['build/images.ts', name, '--level', 'dev'], {
    cwd: CHECKOUT,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const said: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => said.push(chunk.toString()))
  }
  await once(child, 'close')
  if (child.exitCode === 0) return DIST
  throw new Error(
    `build:images ${name} ended with ${child.exitCode}: ${said.join('').slice(-2000)}`,
  )
}
