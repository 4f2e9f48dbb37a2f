/** What flasher-web asks of the DHCP proxy, checked again by the program that runs as root, and dnsmasq's configuration. */
import { createHash } from 'node:crypto'
import {
  AUTOEXEC,
  BIOS_FILE,
  planActivation,
  renderNetwork,
  renderProxyDhcp,
  UEFI_FILES,
  type Activation,
  type InterfaceAddress,
} from '#fleet/boot/rules/dhcp.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

/** In the folder of the wish, which the server may write. */
export const WISH_FILE = 'wish.json'
export const MAX_WISH_BYTES = 16 * 1024
const MAX_NETWORKS = 16
/** flasher-web touches its wish more often than that while it runs. */
const ALIVE_MS = 60_000
export const TOUCH_MS = 10_000

export interface ProxyWish {
  /** `192.0.2.0/24`, each a network of this host. */
  readonly networks: readonly string[]
  /** Where flasher-web listens, by plain HTTP. */
  readonly port: number
  /** The site has other servers: iPXE gets the script that names all, by TFTP. */
  readonly hasOthers: boolean
  /** Changes with the boot files, which are then fetched again. */
  readonly revision: string
}

const NETWORK = /^\d{1,3}(\.\d{1,3}){3}\/\d{1,2}$/

/** The file may hold anything. */
export function parseWish(text: string): Result<ProxyWish, string> {
  const given = parseJson(text)
  if (!isRecord(given)) return refuse('the wish is no JSON object')
  const { networks, port, hasOthers, revision } = given
  if (!isNetworks(networks)) return refuse(`the wish must name 1 to ${MAX_NETWORKS} networks`)
  if (!isPort(port)) return refuse('the wish names no port')
  if (!isRevision(revision)) return refuse('the wish has no revision')
  return accept({ networks, port, hasOthers: hasOthers === true, revision })
}

/** By when it was touched: nobody takes away the wish of a server that was killed. */
export const isWishOld = (touchedMs: number, nowMs: number): boolean =>
  !(Math.abs(nowMs - touchedMs) <= ALIVE_MS)

const isNetworks = (given: unknown): given is readonly string[] =>
  Array.isArray(given) &&
  given.length > 0 &&
  given.length <= MAX_NETWORKS &&
  given.every((one) => typeof one === 'string' && NETWORK.test(one))

const isPort = (given: unknown): given is number =>
  typeof given === 'number' && Number.isInteger(given) && given > 0 && given < 65_536

const isRevision = (given: unknown): given is string =>
  typeof given === 'string' && /^[\w.-]{0,64}$/.test(given)

/** Differs where these values do. */
export const renderRevision = (values: unknown): string =>
  createHash('sha256').update(JSON.stringify(values)).digest('hex').slice(0, 16)

export interface ProxyPlan {
  readonly served: readonly (Activation & { readonly name: string })[]
  /** Networks that are not served now, such as those of a card that is gone. */
  readonly left: readonly { readonly name: string; readonly why: string }[]
  /** Of the wish. */
  readonly revision: string
}

/**
 * By PXE, UEFI gets iPXE: Debian's signed GRUB reads its server from the answer of the DHCP server
 * alone, and stops. By HTTP Boot the signed chain comes from the address itself.
 */
export function planProxy(wish: ProxyWish, addresses: readonly InterfaceAddress[]): ProxyPlan {
  const { port, hasOthers } = wish
  const served: (Activation & { readonly name: string })[] = []
  const left: { name: string; why: string }[] = []
  for (const name of new Set(wish.networks)) {
    const own = addresses.find((one) => one.family === 4 && renderNetwork(one) === name)
    const planned =
      own === undefined
        ? null
        : planActivation(
            { device: own.device, subnet: name, port: String(port), loader: 'grub' },
            addresses.filter((one) => one === own),
          )
    if (planned?.ok === true) {
      const { device, target } = planned.value
      served.push({ name, device, target: { ...target, pxeLoader: 'ipxe', hasOthers } })
    } else left.push({ name, why: NOT_HERE })
  }
  return { served, left, revision: wish.revision }
}

const NOT_HERE =
  'This host has no address in this network. A proxy answers in its own networks only; other networks need a DHCP relay that points to your DHCP server, with the lines below.'

/** Of the network cards that machines can be on. */
export const listProxyNetworks = (addresses: readonly InterfaceAddress[]) => {
  const found = addresses.flatMap((one) => {
    const name = one.family === 4 ? renderNetwork(one) : null
    const isUsable = name !== null && one.prefix >= 8 && one.prefix <= 30
    return isUsable ? [{ name, device: one.device, address: one.address }] : []
  })
  return found.filter(({ name }, at) => found.findIndex((one) => one.name === name) === at)
}

/** One for each card, as files name the server: by its address in the first network of the card. */
export const listTftpFolders = ({ served }: ProxyPlan) =>
  served
    .filter(({ device }, at) => served.findIndex((one) => one.device === device) === at)
    .map(({ device, target: { baseUrl } }) => ({ device, baseUrl }))

interface ProxyPlaces {
  /** Has the folders of the cards. Null: another daemon of this host serves the files already. */
  readonly tftp: string | null
}

/** Reads no other file, answers no names, assigns no address. */
export const renderProxyConfiguration = (plan: ProxyPlan, { tftp }: ProxyPlaces): string =>
  [
    '# Made by flasher-web-proxy; changes are lost.',
    'port=0',
    'no-hosts',
    'no-resolv',
    'no-ping',
    'log-dhcp',
    'bind-dynamic',
    ...new Set(plan.served.map(({ device }) => `interface=${device}`)),
    'leasefile-ro',
    'pid-file=',
    ...(tftp === null ? [] : ['enable-tftp', 'tftp-max=200', ...renderRoots(plan, tftp)]),
    renderProxyDhcp(...plan.served.map(({ target }) => target)),
  ].join('\n')

/** The first one without a card is for this host itself. */
const renderRoots = (plan: ProxyPlan, tftp: string) =>
  listTftpFolders(plan).flatMap(({ device }, at) => [
    ...(at === 0 ? [`tftp-root=${tftp}/${device}`] : []),
    `tftp-root=${tftp}/${device},${device}`,
  ])

/** The appliance, Debian's package ipxe, and those of others. */
const LOCAL_FOLDERS = ['/var/lib/tftpboot', '/usr/lib/ipxe', '/usr/share/ipxe']

/** What machines load by TFTP: its name there, where the server has it, and where this host may. */
export const PROXY_FILES: readonly {
  readonly name: string
  readonly path: string
  readonly local: readonly string[]
}[] = [
  { name: BIOS_FILE, local: ['undionly.kpxe'] },
  { name: UEFI_FILES.ipxe.uefi, local: ['ipxe.efi', 'ipxe-x86_64.efi'] },
  { name: UEFI_FILES.ipxe.arm, local: ['ipxe-arm64.efi'] },
  { name: AUTOEXEC, local: [] },
].map(({ name, local }) => ({
  name,
  path: `/boot/${name}`,
  local: local.flatMap((file) => LOCAL_FOLDERS.map((folder) => `${folder}/${file}`)),
}))

/** Files without which machines of a kind cannot boot. */
export const listMissingFiles = (
  present: readonly string[],
): readonly { readonly file: string; readonly advice: string }[] =>
  [
    {
      file: BIOS_FILE,
      advice: 'BIOS machines without iPXE need it. Install the package ipxe on this host.',
    },
    {
      file: UEFI_FILES.ipxe.uefi,
      advice:
        'UEFI machines need it for PXE. It comes with a live system, or with the package ipxe.',
    },
  ].filter(({ file }) => !present.includes(file))
