/** A small lab: a wire, DHCP and TFTP by dnsmasq, the machine server, the cache, and machines that boot from them. */
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Arch } from '#appliance/appliance.ts'
import { GRUB_CONFIG, GRUB_FILES, SHIM_FILES } from '#appliance/assets.ts'
import { login } from './flasher-web.ts'
import { createNamespace, LAB_ADDRESS, type Namespace } from '../http/namespace.ts'
import { startDhcp } from '../net/lab-dhcp.ts'
import { ARM_FIRMWARE } from '../vm/arm64-machine.ts'
import { collectWords, waitUntil } from '../waiting.ts'
import { startQemu, type Processor, type Qemu } from '../vm/qemu.ts'
import { SECURE_FIRMWARE } from '../vm/secure-firmware.ts'

export const LAB_MAC = '52:54:00:12:34:56'
export const LAB_SERVER = `http://${LAB_ADDRESS}:8080`
/** The password of the operator. */
export const LAB_PASSWORD = 'a password of the tests'

const PROGRAMS = fileURLToPath(new URL('../../../runtime/bin/', import.meta.url))

/**
 * How a machine gets to its boot loader: by the ROM of its card, or by its firmware over TFTP or HTTP.
 * `…secure-…`: firmware that starts nothing but what Microsoft's keys have signed.
 */
export type Way =
  | 'bios-rom'
  | 'uefi-pxe'
  | 'uefi-http'
  | 'secure-pxe'
  | 'secure-http'
  | 'arm64-pxe'
  | 'arm64-secure-pxe'

export interface LabOptions {
  /** Files of a release, for the boot directory. */
  readonly boot: readonly string[]
  /** Our iPXE for UEFI, which firmware loads by TFTP or HTTP; absent: no machine boots that way. */
  readonly ipxe?: { readonly x86_64: string; readonly arm64?: string }
  /** Debian's signed shim and GRUB of a release, instead. */
  readonly secureBoot?: { readonly shim: string; readonly grub: string; readonly config: string }
  /** The processor that the signed boot loaders are for; a PC's when absent. */
  readonly arch?: Arch
  /** Images that lie in the cache's folder. */
  readonly images?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** DHCP gives addresses, and says nothing of booting. */
  readonly hasPlainDhcp?: boolean
  /** Before the machine server's own words: what it is started by. */
  readonly prefix?: readonly string[]
}

export interface Lab extends AsyncDisposable {
  readonly folder: string
  readonly namespace: Namespace
  /** The server's address on this host, for a browser. */
  readonly url: string
  /** As the operator: a JSON answer, or an Error with the server's words. A text is sent as it is. */
  ask(path: string, body?: unknown, method?: string): Promise<unknown>
  /** The same of the cache, with the session of the server. */
  askCache: Lab['ask']
  /** A machine with a disk, if one is named. It ends when it is restarted. */
  start(way: Way, options?: MachineOptions): Promise<Qemu>
  /** What the machine server has said so far. */
  said(): string
  /** Ends the machine server at once, and starts it again. */
  stopServer(): Promise<void>
  startServer(): Promise<void>
  /** The same of the cache. */
  stopCache(): Promise<void>
  startCache(): Promise<void>
}

export interface MachineOptions {
  /** `LAB_MAC` when absent. */
  readonly mac?: string
  /** The path of a raw image. */
  readonly disk?: string
  readonly megabytes?: number
  /** Its disk comes before the network. */
  readonly isDiskFirst?: boolean
  /** The path of what its UEFI remembers, instead of nothing. */
  readonly variables?: string
  /** With a graphics card, for pictures: a BIOS then speaks there, not on the serial line. */
  readonly hasScreen?: boolean
  /** They are added to the command line of QEMU. */
  readonly args?: readonly string[]
}

export const DISK_SERIAL = 'FLASHER0001'

/** Needs root, and the packages dnsmasq-base, iproute2, ovmf and ipxe-qemu; for arm64 qemu-efi-aarch64. */
export async function startLab(options: LabOptions): Promise<Lab> {
  const { boot, ipxe, secureBoot, images = [], env = {}, prefix = [] } = options
  const folder = await mkdtemp(join(tmpdir(), 'flasher-lab-'))
  await using undo = new AsyncDisposableStack()
  undo.defer(() => rm(folder, { recursive: true, force: true }))
  const namespace = undo.use(await createNamespace())
  const state = join(folder, 'state')
  for (const each of ['state/boot', 'state/cache', 'tftp', 'home']) {
    await mkdir(join(folder, each), { recursive: true, mode: 0o700 })
  }
  const programs = [...Object.values(ipxe ?? {}), ...Object.values(secureBoot ?? {})]
  for (const path of [...boot, ...programs])
    await copyFile(path, join(state, 'boot', basename(path)))
  for (const path of images) await copyFile(path, join(state, 'cache', basename(path)))
  await fillTftp(join(folder, 'tftp'), options)

  const environment = {
    HOME: join(folder, 'home'),
    FLASHER_PATHS_STATE_DIR: state,
    FLASHER_CONFIG_FILE: '/dev/null',
    FLASHER_ADMIN_PASSWORD: LAB_PASSWORD,
    FLASHER_SERVER_HOST: LAB_ADDRESS,
    FLASHER_CACHE_HOST: LAB_ADDRESS,
    FLASHER_WITHCACHE_URL: `http://${LAB_ADDRESS}:8081`,
    ...env,
  }
  const startProgram = (name: string, by: readonly string[] = []) => {
    const words = [...by, process.execPath, join(PROGRAMS, name)]
    const child = namespace.spawn(words, environment)
    return { child, said: collectWords(child) }
  }
  await startDhcp(namespace, {
    folder,
    server: LAB_ADDRESS,
    loader: chooseLoader(options),
    own: ['enable-tftp', `tftp-root=${join(folder, 'tftp')}`],
  })
  let cache = startProgram('flasher-cache.mjs')
  const url = await namespace.openDoor(8080)
  const cacheUrl = await namespace.openDoor(8081)
  const waitForCache = () => waitUntil(() => isUp(cacheUrl), cache.said)
  await waitForCache()

  let server = startProgram('flasher-web.mjs', prefix)
  const waitForServer = () => waitUntil(() => isUp(url), server.said)
  await waitForServer()
  const { cookie } = await login(url, LAB_PASSWORD)

  const held = undo.move()
  return {
    folder,
    namespace,
    url,
    ask: createAsk(url, cookie),
    askCache: createAsk(cacheUrl, cookie),
    start: (way, machine) => startMachine(namespace, way, machine),
    said: () => server.said(),
    async stopServer() {
      server.child.kill('SIGKILL')
      await waitUntil(async () => !(await isUp(url)), server.said)
    },
    async startServer() {
      server = startProgram('flasher-web.mjs', prefix)
      await waitForServer()
    },
    async stopCache() {
      cache.child.kill('SIGKILL')
      await waitUntil(async () => !(await isUp(cacheUrl)), cache.said)
    },
    async startCache() {
      cache = startProgram('flasher-cache.mjs')
      await waitForCache()
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

function chooseLoader({ hasPlainDhcp, secureBoot }: LabOptions) {
  if (hasPlainDhcp === true) return null
  return secureBoot === undefined ? 'ipxe' : 'grub'
}

/** What asks a server as the operator whose session `cookie` is. */
export const createAsk =
  (url: string, cookie: string): Lab['ask'] =>
  async (path, body, method = body === undefined ? 'GET' : 'POST') => {
    const isText = typeof body === 'string'
    const type = isText ? 'text/plain' : 'application/json'
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { cookie, accept: 'application/json', 'content-type': type },
      ...(body === undefined ? {} : { body: isText ? body : JSON.stringify(body) }),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text === '' ? null : JSON.parse(text)
  }

/** Copies the boot loaders into the TFTP folder as the documentation says; they are small. */
async function fillTftp(
  tftp: string,
  { ipxe, secureBoot, arch = 'x86_64' }: LabOptions,
): Promise<void> {
  await mkdir(join(tftp, dirname(GRUB_CONFIG)))
  const files = {
    'ipxe.efi': ipxe?.x86_64,
    'ipxe-arm64.efi': ipxe?.arm64,
    [SHIM_FILES[arch]]: secureBoot?.shim,
    [GRUB_FILES[arch]]: secureBoot?.grub,
    [GRUB_CONFIG]: secureBoot?.config,
  }
  for (const [name, path] of Object.entries(files)) {
    if (path !== undefined) await copyFile(path, join(tftp, name))
  }
}

const planFirmware = (...files: readonly string[]) =>
  files.flatMap((file, unit) => [
    '-drive',
    `if=pflash,format=raw,unit=${unit},${unit === 0 ? 'readonly' : 'snapshot'}=on,file=${file}`,
  ])
const OVMF = '/usr/share/OVMF/OVMF_CODE_4M.fd'
const FIRMWARE = planFirmware(OVMF, '/usr/share/OVMF/OVMF_VARS_4M.fd')

/** OVMF tries IPv4 PXE, IPv6 PXE, then HTTP, each for a minute: what is not wanted is switched off. */
const NOT_BY_PXE = ['IPv4PXESupport', 'IPv6PXESupport'].flatMap((name) => [
  '-fw_cfg',
  `name=opt/org.tianocore/${name},string=no`,
])

interface WayOptions {
  readonly card: string
  readonly args: readonly string[]
  readonly processor?: Processor
}

const WAY: Readonly<Record<Way, WayOptions>> = {
  'bios-rom': { card: '', args: [] },
  'uefi-pxe': { card: ',romfile=', args: FIRMWARE },
  'uefi-http': { card: ',romfile=', args: [...FIRMWARE, ...NOT_BY_PXE] },
  'secure-pxe': { card: ',romfile=', args: SECURE_FIRMWARE },
  'secure-http': { card: ',romfile=', args: [...SECURE_FIRMWARE, ...NOT_BY_PXE] },
  'arm64-pxe': { card: ',romfile=', args: ARM_FIRMWARE.uefi, processor: 'aarch64' },
  'arm64-secure-pxe': { card: ',romfile=', args: ARM_FIRMWARE.secure, processor: 'aarch64' },
}
/** A board of ours for arm64 has no graphics that could be switched off. */
const planScreen = (hasScreen: boolean, { processor = 'x86_64' }: WayOptions) => {
  if (hasScreen) return ['-vga', 'std']
  return processor === 'x86_64' ? ['-machine', 'graphics=off'] : []
}

export function startMachine(
  namespace: Namespace,
  way: Way,
  options: MachineOptions = {},
): Promise<Qemu> {
  const { megabytes = 1024, isDiskFirst = false, disk, args = [] } = options
  const { processor } = WAY[way]
  const [network, storage] = isDiskFirst ? [2, 1] : [1, 2]
  return startQemu({
    namespace: namespace.name,
    megabytes,
    ...(processor === undefined ? {} : { processor }),
    args: [
      ...planBoard(namespace, way, network, options),
      ...(disk === undefined ? [] : planDisk(disk, storage)),
      ...args,
    ],
  })
}

/** Firmware, screen and network card. */
function planBoard(
  { netdevs }: Namespace,
  way: Way,
  bootIndex: number,
  { mac = LAB_MAC, variables, hasScreen = false }: MachineOptions,
): readonly string[] {
  const { card, args } = WAY[way]
  return [
    ...(variables === undefined ? args : planFirmware(OVMF, variables)),
    ...planScreen(hasScreen, WAY[way]),
    '-netdev',
    netdevs[0],
    '-device',
    `virtio-net-pci,netdev=net,mac=${mac},bootindex=${bootIndex}${card}`,
    '-device',
    'virtio-rng-pci',
  ]
}

/** No NVMe: this OVMF finds none by its place in QEMU's boot order. */
const planDisk = (path: string, bootIndex: number): readonly string[] => [
  '-drive',
  `if=none,id=disk,format=raw,file=${path}`,
  '-device',
  `virtio-blk-pci,drive=disk,serial=${DISK_SERIAL},bootindex=${bootIndex}`,
]

const isUp = async (url: string): Promise<boolean> =>
  (await fetch(`${url}/healthz`).catch(() => null))?.ok === true
