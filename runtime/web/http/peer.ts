/** Who is at the other end, by which name it calls us, and whether on a private line. */
import type { H3Event } from 'h3'
import { BlockList, isIP } from 'node:net'
import { parseHost } from '../../core/net/host-header.ts'
import { refuse } from './faults.ts'
import type { WebSettings } from './caller.ts'

export interface Peer {
  /** IPv4 where it is one; null only where there is no socket (in-process requests). */
  readonly ip: string | null
  /** As asked for, checked: host or address, with a port when it is not the usual one. */
  readonly host: string
  readonly isSecure: boolean
  /** What scripts and links name. */
  readonly baseUrl: string
  /** Hosts that a form of ours may come from. */
  readonly ownHosts: readonly string[]
}

/** Hops that are looked at; the rest of a header that long is made up. */
const MAX_HOPS = 32

/** Throws a 400 for a `Host` that cannot be one or is not ours. */
export function createPeers(settings: () => WebSettings): (event: H3Event) => Peer {
  let known: { readonly ranges: readonly string[]; readonly list: BlockList } | null = null

  function isTrusted(ip: string): boolean {
    const ranges = settings().trustedProxies
    if (ranges.length === 0) return false
    if (known?.ranges !== ranges) known = { ranges, list: listOf(ranges) }
    return isIP(ip) !== 0 && known.list.check(ip, isIP(ip) === 6 ? 'ipv6' : 'ipv4')
  }

  let last = { said: '', host: '' }
  /** As the request before said it, in nearly all cases. */
  function hostOf(event: H3Event): string {
    const said = event.req.headers.get('host') ?? event.url.host
    if (said !== last.said || said === '') last = { said, host: readHost(said) }
    return last.host
  }

  return (event) => {
    const { publicUrl, allowedHosts } = settings()
    const direct = plainAddress(event.req.ip ?? '')
    const own = publicUrl === null ? null : new URL(publicUrl)
    const host = hostOf(event)
    if (!isOurs(host, allowedHosts, own)) {
      throw refuse(400, 'this server does not answer to that name', {
        hint: 'Add the name to [server] allowed_hosts, or set [server] public_url.',
      })
    }
    const isTls = event.url.protocol === 'https:'
    const line = isTrusted(direct)
      ? readProxied(event, direct, isTrusted)
      : { ip: direct, isSecure: false, host: null }
    const isSecure = isTls || line.isSecure
    return {
      ip: line.ip === '' ? null : line.ip,
      host,
      isSecure,
      baseUrl: publicUrl ?? `${isSecure ? 'https' : 'http'}://${host}`,
      ownHosts: [host, own?.host, line.host].filter((name) => name != null),
    }
  }
}

const readProxied = (event: H3Event, direct: string, isTrusted: (ip: string) => boolean) => ({
  ip: originOf(event, direct, isTrusted),
  isSecure: forwardedProto(event) === 'https',
  host: event.req.headers.get('x-forwarded-host'),
})

function readHost(said: string): string {
  const parsed = parseHost(said)
  if (!parsed.ok) throw refuse(400, 'the Host header is not a host name or address')
  return parsed.value
}

function isOurs(host: string, allowed: readonly string[], own: URL | null): boolean {
  if (allowed.length === 0) return true
  const name = host.replace(/:\d+$/, '').toLowerCase()
  return own?.hostname === name || allowed.some((each) => each.toLowerCase() === name)
}

/** From the right: each trusted proxy vouches for the address before it. */
function originOf(event: H3Event, direct: string, isTrusted: (ip: string) => boolean): string {
  const hops = forwardedFor(event).slice(-MAX_HOPS)
  let ip = direct
  while (isTrusted(ip)) {
    const before = plainAddress(hops.pop() ?? '')
    if (isIP(before) === 0) break
    ip = before
  }
  return ip
}

/** `Forwarded` (RFC 7239) where it is given, else `X-Forwarded-For`. */
function forwardedFor(event: H3Event): string[] {
  const standard = event.req.headers.get('forwarded')
  if (standard === null) return (event.req.headers.get('x-forwarded-for') ?? '').split(',')
  return standard.split(',').map((hop) => /(?:^|;)\s*for=("?)([^;"]*)\1/i.exec(hop)?.[2] ?? '')
}

function forwardedProto(event: H3Event): string {
  const standard = event.req.headers.get('forwarded')?.split(',').at(-1) ?? ''
  const proto =
    /(?:^|;)\s*proto="?([a-z]+)/i.exec(standard)?.[1] ??
    event.req.headers.get('x-forwarded-proto')?.split(',').at(-1) ??
    ''
  return proto.trim().toLowerCase()
}

/** Without brackets, port and the IPv6 clothes of an IPv4 address. */
export function plainAddress(text: string): string {
  if (isIP(text) === 4) return text
  const address = text.trim().replace(/^\[(.*)\](?::\d+)?$/, '$1')
  const bare = /^\d+\.\d+\.\d+\.\d+:\d+$/.test(address) ? address.replace(/:\d+$/, '') : address
  return bare.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '')
}

/** Settings were checked when they were read: what is no range here is left out. */
function listOf(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits] = range.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (isIP(address) === 0) continue
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return list
}
