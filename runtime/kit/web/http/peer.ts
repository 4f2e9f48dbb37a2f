/** Identifies the peer of a request: its address, the host name it used, and whether the line is private. */
import type { H3Event } from 'h3'
import { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'
import { parseHostHeader } from '#kit/net/rules/host-header.ts'
import type { Peer, PeerSettings } from '../answers/caller.ts'
import { refuse } from '../answers/faults.ts'
import { NOT_LEADING, type PassedReader } from './client-seal.ts'

/** Hops that are looked at; the rest of a header that long is made up. */
const MAX_HOPS = 32

const NO_SETTINGS: PeerSettings = { publicUrl: null, allowedHosts: [], trustedProxies: [] }

/** What was found for a `Host` header: nearly always that of the request before. */
type Door = Omit<Peer, 'ip'>

/**
 * It throws a 400 for a `Host` that cannot be one or is not ours. It does not use h3's
 * `getRequestIP` and `getRequestHost`: they believe the forwarding headers of anybody.
 * `readPassed`: for the leader of a fleet, to which other servers pass requests on; null: there are
 * none. It throws a 421 for what is to be passed on anew, if by anybody.
 */
export function createPeers(
  settings = () => NO_SETTINGS,
  readPassed: PassedReader | null = null,
): (event: H3Event) => Peer {
  let [known, rules] = [settings(), createRules(settings())]
  let [lastSaid, lastDoor]: [string, Door | null] = ['', null]

  function refresh(): void {
    const now = settings()
    const isSame =
      now.publicUrl === known.publicUrl &&
      now.allowedHosts === known.allowedHosts &&
      now.trustedProxies === known.trustedProxies
    if (!isSame) [known, rules, lastDoor] = [now, createRules(now), null]
  }

  function doorOf(said: string, isSecure: boolean): Door {
    if (lastDoor?.isSecure === isSecure && said === lastSaid) return lastDoor
    lastDoor = openDoor(said, isSecure, rules)
    lastSaid = said
    return lastDoor
  }

  return (event) => {
    refresh()
    const said = event.req.headers.get('host') ?? event.url.host
    const { direct, isTls } = readLine(event, readPassed)
    if (!rules.isTrusted(direct)) return { ip: direct || null, ...doorOf(said, isTls) }
    const door = doorOf(said, isTls || forwardedProto(event) === 'https')
    const forwarded = event.req.headers.get('x-forwarded-host')
    return {
      ...door,
      ip: originOf(event, direct, rules.isTrusted),
      ownHosts: forwarded === null ? door.ownHosts : [...door.ownHosts, forwarded],
    }
  }
}

function readLine(event: H3Event, readPassed: PassedReader | null) {
  const request = readPassed === null ? null : rawRequestOf(event)
  const passed = request === null ? null : (readPassed?.(request) ?? null)
  if (passed === 'stale')
    throw refuse(NOT_LEADING, 'this was passed on before, or to another leader')
  if (passed !== null) return { direct: plainAddress(passed.ip), isTls: passed.isSecure }
  const isTls = event.url.protocol === 'https:'
  return { direct: plainAddress(event.req.ip ?? ''), isTls }
}

/** Null: it came by no socket. HTTP/2 is not spoken here. */
export function rawRequestOf({ req }: H3Event): IncomingMessage | null {
  const request = req.runtime?.node?.req
  return request instanceof IncomingMessage ? request : null
}

type Rules = ReturnType<typeof createRules>

function createRules({ publicUrl, allowedHosts, trustedProxies }: PeerSettings) {
  const list = listOf(trustedProxies)
  return {
    publicUrl,
    own: publicUrl === null ? null : new URL(publicUrl),
    allowed: allowedHosts.map((name) => name.toLowerCase().replace(/\.$/, '')),
    isTrusted: (ip: string): boolean =>
      trustedProxies.length > 0 &&
      isIP(ip) !== 0 &&
      list.check(ip, isIP(ip) === 6 ? 'ipv6' : 'ipv4'),
  }
}

function openDoor(said: string, isSecure: boolean, { publicUrl, own, allowed }: Rules): Door {
  const parsed = parseHostHeader(said)
  if (!parsed.ok) throw refuse(400, 'the Host header is not a host name or address')
  const host = parsed.value
  const name = host.replace(/\.?(?::\d+)?$/, '')
  if (allowed.length > 0 && own?.hostname !== name && !allowed.includes(name)) {
    throw refuse(400, 'this server does not answer to that name', {
      hint: 'Add the name to [server] allowed_hosts, or set [server] public_url.',
    })
  }
  return {
    isSecure,
    host,
    baseUrl: publicUrl ?? `${isSecure ? 'https' : 'http'}://${host}`,
    ownHosts: own === null ? [host] : [host, own.host],
  }
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

/** Takes brackets, port and the IPv6 form of an IPv4 address away. */
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
