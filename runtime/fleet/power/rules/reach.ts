/** Decides whether an address may be contacted for a machine's power: only within `[power] networks`. */
import { isDirectHost } from '../../../kit/net/rules/direct-host.ts'
import { lasting, type PowerTrouble } from './power.ts'

export interface ReachRules {
  /** Addresses and CIDR ranges. */
  readonly networks: readonly string[]
  /** The addresses of this host's interfaces. */
  readonly own: readonly string[]
  /** The ports on which our own services listen. */
  readonly ownPorts: readonly number[]
}

/**
 * Returns why an address, as a name server gave it, may not be contacted; null: it may. A loopback
 * address may be one of an emulator on this host, so it is only refused where no network of loopback
 * addresses names it, or where our own service listens.
 */
export function refuseAddress(
  { address, port }: { readonly address: string; readonly port: number },
  { networks, own, ownPorts }: ReachRules,
): PowerTrouble | null {
  if (networks.length === 0) return lasting('address', 'no network is allowed', SET_NETWORKS)
  const plain = withoutMapping(address)
  if (isNever(plain)) return lasting('address', `${plain} is no address of a machine`, CORRECT)
  if (!isWithin(plain, listCounting(plain, networks))) {
    return lasting('address', `${plain} is outside [power] networks`, `${CORRECT} ${SET_NETWORKS}`)
  }
  const isOwn = isLoopback(plain)
    ? ownPorts.includes(port)
    : own.map(withoutMapping).includes(plain)
  return isOwn ? lasting('address', `${plain} is this server itself`, CORRECT) : null
}

/** Where a BMC listens for IPMI. */
const IPMI_PORT = 623

/** Whether an address that was not set yet would be contacted over IPMI, as far as `networks` decides that. */
export const mayContact = (address: string | null, networks: readonly string[]): boolean =>
  address !== null &&
  refuseAddress({ address, port: IPMI_PORT }, { networks, own: [], ownPorts: [] }) === null

const isWithin = (address: string, networks: readonly string[]): boolean =>
  isDirectHost(`http://${address.includes(':') ? `[${address}]` : address}/`, networks.join(' '))

const LOOPBACK = ['127.0.0.0/8', '::1/128']
/** Clouds have their metadata, with passwords, at such an address. */
const LINK_LOCAL = ['169.254.0.0/16', 'fe80::/10']

/** Loopback and link-local addresses are only in networks that begin there: `0.0.0.0/0` does not name them. */
function listCounting(address: string, networks: readonly string[]): readonly string[] {
  const special = [LOOPBACK, LINK_LOCAL].find((ranges) => isWithin(address, ranges))
  if (special === undefined) return networks
  return networks.filter((network) => isWithin(withoutMapping(baseOf(network)), special))
}

const baseOf = (network: string) => network.replace(/[/-].*$/s, '')
const isLoopback = (address: string) => isWithin(address, LOOPBACK)

/** Unspecified, multicast, and link-local IPv6 with its zone, which no network names. */
const NEVER = ['0.0.0.0/8', '224.0.0.0/4', '::/128', 'ff00::/8']
const isNever = (address: string) => address.includes('%') || isWithin(address, NEVER)

/** IPv4 in IPv6 is the IPv4 address. */
function withoutMapping(address: string): string {
  const [, dotted] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? []
  if (dotted !== undefined) return dotted
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i.exec(address) ?? []
  if (high === undefined || low === undefined) return address
  const bits = [high, low].map((group) => Number.parseInt(group, 16))
  return bits.flatMap((group) => [group >> 8, group & 255]).join('.')
}

const CORRECT = 'Correct the address of its BMC.'
const SET_NETWORKS = 'List the networks of the BMCs in [power] networks.'
