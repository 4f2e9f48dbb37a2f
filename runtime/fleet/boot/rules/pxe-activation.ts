/** Decides what dnsmasq gets to be a DHCP proxy on one interface, from words that nobody has checked. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import {
  planDhcp,
  renderProxyDhcp,
  UEFI_FILES,
  type DhcpTarget,
  type FirmwareLoader,
} from './dhcp.ts'

export interface InterfaceAddress {
  readonly device: string
  readonly address: string
  /** Bits of the network. */
  readonly prefix: number
  readonly family: 4 | 6
}

interface ActivationRequest {
  readonly device: string
  /** `a.b.c.d` or `a.b.c.d/nn`; host bits are ignored. */
  readonly subnet: string
  readonly port: string
  /** UEFI loads it; absent: iPXE. */
  readonly loader?: FirmwareLoader
}

export interface Activation {
  readonly device: string
  readonly target: DhcpTarget
}

export interface ActiveProxy {
  readonly device: string
  /** `192.0.2.0`. */
  readonly network: string
  /** Null: not in the file. */
  readonly port: number | null
  readonly loader: FirmwareLoader
}

const REFUSALS = {
  'no-interface': 'this host has no interface of that name',
  'no-ipv4': 'the interface has no IPv4 address',
  'not-a-subnet': 'the subnet must be written as a.b.c.d or a.b.c.d/nn, with nn from 8 to 30',
  'not-its-subnet': 'the interface has no address in that subnet',
  'not-a-port': 'the port must be a number from 1 to 65535',
} as const

type ActivationRefusal = keyof typeof REFUSALS

export const describeRefusal = (refusal: ActivationRefusal): string => REFUSALS[refusal]

/** Nothing that dnsmasq reads as more than a name: commas, blanks, a final `*`. */
const DEVICE = /^[A-Za-z0-9_][\w.:@-]{0,14}$/

/** Accepts only an existing interface, a subnet of its own, and a port. */
export function planActivation(
  { device, subnet, port, loader }: ActivationRequest,
  addresses: readonly InterfaceAddress[],
): Result<Activation, ActivationRefusal> {
  const own = DEVICE.test(device) ? addresses.filter((each) => each.device === device) : []
  if (own.length === 0) return refuse('no-interface')
  const usable = own.filter(({ family }) => family === 4)
  if (usable.length === 0) return refuse('no-ipv4')
  const asked = parseSubnet(subnet)
  if (asked === null) return refuse('not-a-subnet')
  if (!isPort(port)) return refuse('not-a-port')
  const chosen = usable.find(({ address, prefix }) => {
    const isMeant = asked.prefix === null || asked.prefix === prefix
    return (
      isMeant && isPrefix(prefix) && networkOf(address, prefix) === networkOf(asked.address, prefix)
    )
  })
  if (chosen === undefined) return refuse('not-its-subnet')
  const { address, prefix } = chosen
  const target = planDhcp(address, prefix, `http://${address}:${Number(port)}`, loader)
  return target.ok ? accept({ device, target: target.value }) : refuse('not-its-subnet')
}

export function renderNetwork({ address, prefix }: InterfaceAddress): string | null {
  const target = planDhcp(address, prefix, 'http://host')
  return target.ok ? `${target.value.network}/${prefix}` : null
}

/** No DNS or TFTP: dnsmasq refuses a keyword that two files set. */
export const renderActivation = ({ device, target }: Activation): string =>
  [
    '# Written by flasher-web-activate-pxe; it replaces the whole file.',
    'bind-dynamic',
    `interface=${device}`,
    renderProxyDhcp(target),
  ].join('\n')

/** Null: activates nothing. Reads the deployed servers' files, too. */
export function parseActivation(text: string): ActiveProxy | null {
  const device = /^interface=(\S+)$/m.exec(text)?.[1]
  const network = /^dhcp-range=([\d.]+),proxy(?:,|$)/m.exec(text)?.[1]
  if (device === undefined || network === undefined) return null
  const port = /^dhcp-boot=tag:ipxe,http:\/\/[^/]+:(\d{1,5})\//m.exec(text)?.[1]
  const loader = text.includes(`,${UEFI_FILES.grub.uefi},`) ? 'grub' : 'ipxe'
  return { device, network, port: port === undefined ? null : Number(port), loader }
}

const OCTET = /^(?:0|[1-9]\d{0,2})$/

function parseSubnet(text: string) {
  const [address = '', bits, ...rest] = text.split('/')
  const octets = address.split('.')
  const isAddress =
    octets.length === 4 && octets.every((one) => OCTET.test(one) && Number(one) < 256)
  if (!isAddress || rest.length > 0) return null
  if (bits === undefined) return { address, prefix: null }
  const prefix = OCTET.test(bits) ? Number(bits) : 0
  return isPrefix(prefix) ? { address, prefix } : null
}

const isPrefix = (prefix: number) => prefix >= 8 && prefix <= 30

const isPort = (text: string) => /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535

const networkOf = (address: string, prefix: number) => {
  const number = address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0)
  return Math.floor(number / 2 ** (32 - prefix))
}
