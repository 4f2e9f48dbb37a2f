/** Networks of addresses: which hosts are asked without a proxy, as curl and Go read `no_proxy`, and which are more than one host. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

/**
 * Tells whether an address is asked without a proxy. `list` has names that stand for all below
 * them, addresses, networks (`10.0.0.0/8`, `fd00::/8`), ranges (`10.0.0.1-10.0.0.9`), each perhaps
 * with a port, IPv6 in brackets or not; `*` is every host.
 */
export function isDirectHost(href: string, list: string): boolean {
  const url = URL.parse(href)
  if (url === null) return false
  const host = trimDots(url.hostname)
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  return list.split(/[\s,]+/).some((entry) => {
    const { name, port: wanted } = splitEntry(entry.toLowerCase())
    return (wanted === null || wanted === port) && isNamed(host, name)
  })
}

/** Tells whether an address is another one, or in a network such as `10.0.0.0/8`. */
export function isAddressIn(address: string, network: string): boolean {
  const bits = toBits(address)
  return bits !== null && isWithin(bits, network)
}

/** A colon stands before a port, unless it is one of many: then it is in an address without brackets. */
function splitEntry(entry: string): { readonly name: string; readonly port: string | null } {
  const [, name, port = null] = /^(\[[^\]]*\](?:\/\d+)?|[^:]*)(?::(\d+))?$/.exec(entry) ?? []
  return name === undefined ? { name: entry, port: null } : { name, port }
}

function isNamed(host: string, name: string): boolean {
  if (name === '*') return true
  const address = toBits(host)
  if (address !== null) return isWithin(address, name)
  const suffix = trimDots(name.replace(/^\*?\./, ''))
  return suffix !== '' && (host === suffix || host.endsWith(`.${suffix}`))
}

const isWithin = (address: string, name: string): boolean =>
  isInRange(address, name) || isInNetwork(address, name.replaceAll(/[[\]]/g, ''))

function isInRange(address: string, range: string): boolean {
  const [first = '', last = first] = range.split('-')
  const [from, to] = [toBits(first), toBits(last)]
  return from !== null && to !== null && from <= address && address <= to
}

function isInNetwork(address: string, network: string): boolean {
  const [, base = '', length] = /^(.*)\/(\d{1,3})$/.exec(network) ?? []
  const bits = toBits(base)
  if (bits === null) return false
  const prefix = Number(length) + (base.includes(':') ? 0 : MAPPED.length)
  return prefix <= bits.length && bits.slice(0, prefix) === address.slice(0, prefix)
}

const MAPPED = `${'0'.repeat(80)}${'1'.repeat(16)}`

/** 128 binary digits, an IPv4 address as the IPv6 one that stands for it; null: no address. */
function toBits(text: string): string | null {
  const bare = text.replaceAll(/[[\]]/g, '')
  if (/^\d+\.\d+\.\d+\.\d+$/.test(bare)) return toBits4(bare)
  // The URL's parser has one spelling for each address, the last part in hexadecimal as well.
  const host = bare.includes(':') ? URL.parse(`http://[${bare}]/`)?.hostname : undefined
  return host === undefined ? null : toBits6(host.slice(1, -1))
}

function toBits6(address: string): string {
  const [left = [], right = []] = address
    .split('::')
    .map((part) => part.split(':').filter((group) => group !== ''))
  const zeros = Array<string>(8 - left.length - right.length).fill('0')
  return [...left, ...zeros, ...right]
    .map((group) => Number.parseInt(group, 16).toString(2).padStart(16, '0'))
    .join('')
}

function toBits4(text: string): string | null {
  const octets = text.split('.').map(Number)
  if (octets.some((octet) => octet > 255)) return null
  return `${MAPPED}${octets.map((octet) => octet.toString(2).padStart(8, '0')).join('')}`
}

/** The dot of the root says nothing: `a.example.` is `a.example`. */
const trimDots = (name: string) => name.replace(/\.+$/, '')

// Reads proxy settings from the environment, in the form that Node's agents take.

const VARIABLES = ['http_proxy', 'https_proxy'] as const
type Variable = (typeof VARIABLES)[number]

export type ProxySettings = { readonly [Name in Variable | 'no_proxy']?: string }

/**
 * Reads the three variables in either case, lower first. A proxy without a scheme is an http one,
 * as for curl; the refusal is the name of a variable whose value (it may hold a password) is
 * unusable.
 */
export function decideProxies(env: Variables): Result<ProxySettings, Variable> {
  const settings: { [Name in Variable | 'no_proxy']?: string } = {}
  for (const name of VARIABLES) {
    const given = valueOf(env, name)
    const address = given.includes('://') ? given : `http://${given}`
    if (given !== '' && !isHttp(address)) return refuse(name)
    if (given !== '') settings[name] = address
  }
  const direct = valueOf(env, 'no_proxy')
  return accept(direct === '' ? settings : { ...settings, no_proxy: direct })
}

type Variables = Readonly<Record<string, string | undefined>>
const valueOf = (env: Variables, name: string) => env[name] ?? env[name.toUpperCase()] ?? ''
const isHttp = (href: string) => ['http:', 'https:'].includes(URL.parse(href)?.protocol ?? '')

const LOOPBACK: readonly string[] = ['127.0.0.0/8', '::1/128']
/** Clouds have their metadata, with passwords, at such an address. */
const LINK_LOCAL: readonly string[] = ['169.254.0.0/16', 'fe80::/10']

/** Unspecified, multicast, and link-local IPv6 with its zone, which no network names. */
const NO_HOST = ['0.0.0.0/8', '224.0.0.0/4', '::/128', 'ff00::/8']

const isInOneOf = (address: string, networks: readonly string[]): boolean =>
  isDirectHost(`http://${address.includes(':') ? `[${address}]` : address}/`, networks.join(' '))

export const isLoopback = (address: string): boolean => isInOneOf(address, LOOPBACK)

export const isLinkLocal = (address: string): boolean => isInOneOf(address, LINK_LOCAL)

/**
 * Says whether one of the networks is meant to have an address. Loopback and link-local addresses are
 * only in networks that begin there: `0.0.0.0/0` does not name them.
 */
export function isNamedBy(address: string, networks: readonly string[]): boolean {
  const special = [LOOPBACK, LINK_LOCAL].find((ranges) => isInOneOf(address, ranges))
  const counting =
    special === undefined
      ? networks
      : networks.filter((network) => isInOneOf(plainAddress(baseOf(network)), special))
  return isInOneOf(address, counting)
}

const baseOf = (network: string) => network.replace(/[/-].*$/s, '')

/** Unspecified, multicast, or with a zone: nothing is contacted there. */
export const isNoHost = (address: string): boolean =>
  address.includes('%') || isInOneOf(address, NO_HOST)

/** Each address in its one spelling; IPv4 in IPv6 is the IPv4 address. */
export function plainAddress(address: string): string {
  const plain = spell(address)
  return ipv4Behind(MAPPED_PREFIX, plain) ?? plain
}

/** The IPv4 host that a translator in the network (NAT64) makes of an address; any other is itself. */
export const withoutTranslation = (plain: string): string =>
  ipv4Behind(TRANSLATED_PREFIX, plain) ?? plain

/** The URL's parser knows how IPv6 is written. With a zone it is no address of a URL, and stays as it is. */
const spell = (address: string): string =>
  URL.parse(`http://[${address}]/`)?.hostname.slice(1, -1) ?? address.toLowerCase()

const MAPPED_PREFIX = '::ffff:'
const TRANSLATED_PREFIX = '64:ff9b::'

function ipv4Behind(prefix: string, plain: string): string | null {
  if (!plain.startsWith(prefix)) return null
  const [, high, low] = /^([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(plain.slice(prefix.length)) ?? []
  if (high === undefined || low === undefined) return null
  const bits = [high, low].map((group) => Number.parseInt(group, 16))
  return bits.flatMap((group) => [group >> 8, group & 255]).join('.')
}
