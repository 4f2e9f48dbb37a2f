/** Addresses that are more than one host's of many: of this host itself, of a link, of nobody. */
import { isDirectHost } from './direct-host.ts'

const LOOPBACK: readonly string[] = ['127.0.0.0/8', '::1/128']
/** Clouds have their metadata, with passwords, at such an address. */
const LINK_LOCAL: readonly string[] = ['169.254.0.0/16', 'fe80::/10']

/** Unspecified, multicast, and link-local IPv6 with its zone, which no network names. */
const NO_HOST = ['0.0.0.0/8', '224.0.0.0/4', '::/128', 'ff00::/8']

const isWithin = (address: string, networks: readonly string[]): boolean =>
  isDirectHost(`http://${address.includes(':') ? `[${address}]` : address}/`, networks.join(' '))

export const isLoopback = (address: string): boolean => isWithin(address, LOOPBACK)

export const isLinkLocal = (address: string): boolean => isWithin(address, LINK_LOCAL)

/**
 * Says whether one of the networks is meant to have an address. Loopback and link-local addresses are
 * only in networks that begin there: `0.0.0.0/0` does not name them.
 */
export function isNamedBy(address: string, networks: readonly string[]): boolean {
  const special = [LOOPBACK, LINK_LOCAL].find((ranges) => isWithin(address, ranges))
  const counting =
    special === undefined
      ? networks
      : networks.filter((network) => isWithin(plainAddress(baseOf(network)), special))
  return isWithin(address, counting)
}

const baseOf = (network: string) => network.replace(/[/-].*$/s, '')

/** Unspecified, multicast, or with a zone: nothing is contacted there. */
export const isNoHost = (address: string): boolean =>
  address.includes('%') || isWithin(address, NO_HOST)

/** Each address in its one spelling; IPv4 in IPv6 is the IPv4 address. */
export function plainAddress(address: string): string {
  const plain = spell(address)
  return ipv4Behind(MAPPED, plain) ?? plain
}

/** The IPv4 host that a translator in the network (NAT64) makes of an address; any other is itself. */
export const withoutTranslation = (plain: string): string => ipv4Behind(TRANSLATED, plain) ?? plain

/** The URL's parser knows how IPv6 is written. With a zone it is no address of a URL, and stays as it is. */
const spell = (address: string): string =>
  URL.parse(`http://[${address}]/`)?.hostname.slice(1, -1) ?? address.toLowerCase()

const MAPPED = '::ffff:'
const TRANSLATED = '64:ff9b::'

function ipv4Behind(prefix: string, plain: string): string | null {
  if (!plain.startsWith(prefix)) return null
  const [, high, low] = /^([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(plain.slice(prefix.length)) ?? []
  if (high === undefined || low === undefined) return null
  const bits = [high, low].map((group) => Number.parseInt(group, 16))
  return bits.flatMap((group) => [group >> 8, group & 255]).join('.')
}
