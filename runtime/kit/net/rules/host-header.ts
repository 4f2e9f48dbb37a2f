/** The server's own address for machines, from the `Host` header or the configuration, and ports that browsers refuse. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { isRecord } from '#kit/foundation/shape.ts'

/** This is longer than any name in use; scripts stay under 4 KB with it. */
const MAX_CHARACTERS = 140

const LABEL = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'
const NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*\\.?$`)
const OCTET = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)'
const IPV4 = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`)
/** One segment or more, each of characters that need no escaping anywhere. */
const PREFIX = /^(?:\/[\w.~-]+)*$/

/** A name, an IPv4 address or an IPv6 address in brackets, perhaps with a port, in lower case. */
export function parseHost(header: string): Result<string, 'not-a-host'> {
  const text = header.toLowerCase()
  const parts = /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::(\d{1,5}))?$/.exec(text)
  if (parts === null || text.length > MAX_CHARACTERS) return refuse('not-a-host')
  const [, name = '', port] = parts
  return isHostName(name) && isPort(port) ? accept(text) : refuse('not-a-host')
}

/**
 * Parses a host that a client sent. The zone of an IPv6 address means something on its own host
 * alone and gets into no script; an IPv4 address with the dot of the root is that address.
 */
export const parseHostHeader = (header: string): Result<string, 'not-a-host'> =>
  parseHost(
    header
      .replace(/^(\[[0-9a-f:.]+)%[\w.~%-]{1,40}\]/i, '$1]')
      .replace(/^(\d+(?:\.\d+){3})\.(?=:\d+$|$)/, '$1'),
  )

/** Scheme, host, perhaps a path below which a proxy serves us; without a trailing slash. */
export function parsePublicUrl(text: string): Result<string, 'not-a-url'> {
  const parts = /^(https?):\/\/([^/]+)(.*?)\/*$/i.exec(text.trim())
  if (parts === null) return refuse('not-a-url')
  const [, scheme = '', authority = '', prefix = ''] = parts
  const host = parseHost(authority)
  if (!host.ok || !PREFIX.test(prefix)) return refuse('not-a-url')
  const url = `${scheme.toLowerCase()}://${host.value}${prefix}`
  return url.length > MAX_CHARACTERS ? refuse('not-a-url') : accept(url)
}

/** What is behind the host: boot scripts and files are below it, pages are not; '' is nothing. */
export const pathOfUrl = (publicUrl: string): string =>
  /^https?:\/\/[^/]+(\/.*)$/.exec(publicUrl)?.[1] ?? ''

function isHostName(name: string): boolean {
  if (name.startsWith('[')) return URL.canParse(`http://${name}/`)
  // A number at the end: an address, or nothing (`1.2.3`, `010.0.0.1`, `a.0x7f` mean other hosts
  // elsewhere, or none).
  if (/(?:^|\.)(?:\d+|0x[0-9a-f]*)\.?$/.test(name)) return IPV4.test(name)
  return NAME.test(name)
}

const isPort = (port: string | undefined) =>
  port === undefined || (Number(port) >= 1 && Number(port) <= 65535)

// Parses the machine server's address from `--server` and `flasher.server=` ("Wizard command line").

/** The port that our server takes when nobody says otherwise. */
const OWN_PORT = 8080

/**
 * Lists the base addresses to try, the best first, without a slash at their ends. A bare name
 * without a port may be on port 80 (a proxy before it) or on our own; whoever wrote a scheme or a
 * port meant it.
 */
export function parseServerAddress(text: string): Result<readonly string[], 'not-a-server'> {
  const given = text.trim().replace(/\/+$/, '')
  if (given.includes('://')) {
    const url = parsePublicUrl(given)
    return url.ok ? accept([url.value]) : refuse('not-a-server')
  }
  const [, authority = '', path = ''] = /^([^/]*)(.*)$/.exec(given) ?? []
  const host = parseHost(authority)
  const plain = parsePublicUrl(`http://${given}`)
  if (!host.ok || !plain.ok) return refuse('not-a-server')
  const hasPort = /:\d+$/.test(host.value.replace(/^\[.*\]/, ''))
  return accept(hasPort ? [plain.value] : [plain.value, `http://${host.value}:${OWN_PORT}${path}`])
}

/** No more servers of one site are asked; a list that is longer is cut. */
const MAX_SERVERS = 8

/**
 * Parses the other servers of a site (`flasher.servers=`), whole addresses with commas between them.
 * What is none is left out: a machine that has one good address goes on.
 */
export const parseServerList = (text: string | null): readonly string[] =>
  (text ?? '').split(',', MAX_SERVERS).flatMap((each) => {
    const url = parsePublicUrl(each)
    return url.ok ? [url.value] : []
  })

/** Tells whether an answer to `GET /version` can be our server's: an object with a `version`. */
export const isServerVersion = (document: unknown): boolean =>
  isRecord(document) && typeof document['version'] === 'string'

// Checks the raw target of an HTTP request before anything parses it.

export type TargetRefusal = 'dot-segment' | 'backslash' | 'not-a-target'

interface RequestTarget {
  /** Path and query, or `*`. */
  readonly path: string
  /** Named by an absolute target; null: the `Host` header alone names one. */
  readonly host: string | null
}

/**
 * No segment begins with a dot, nothing is encoded, no slash is repeated: nearly all requests.
 * `parseTarget` leaves such a target as it is.
 */
export const PLAIN_TARGET = /^(?:\/[\w:~-][\w:~.-]*)+(?:\?|$)/
const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/is
/** Segments `.` and `..`. An encoded slash separates none: routes take it for a part of a name. */
const DOTS = /(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i

/**
 * Parses a target and merges the slashes that some boot loaders repeat. Its query is not checked:
 * whatever stands in it leads nowhere else.
 */
export function parseTarget(target: string): Result<RequestTarget, TargetRefusal> {
  if (target === '*') return accept({ path: target, host: null })
  const split = splitTarget(target)
  if (split === null) return refuse('not-a-target')
  const end = split.rest.search(/[?#]/)
  const path = end === -1 ? split.rest : split.rest.slice(0, end)
  if (path.includes('\\')) return refuse('backslash')
  if (DOTS.test(path)) return refuse('dot-segment')
  const query = split.rest.slice(path.length)
  return accept({ path: `${mergeSlashes(path) || '/'}${query}`, host: split.host })
}

function splitTarget(
  target: string,
): { readonly rest: string; readonly host: string | null } | null {
  if (target.startsWith('/')) return { rest: target, host: null }
  const [, authority = '', rest = ''] = ABSOLUTE.exec(target) ?? []
  const host = parseHostHeader(authority)
  return host.ok ? { rest, host: host.value } : null
}

/**
 * shim asks for `/boot//grubx64.efi`: it appends a name with a slash to a folder that ends in one. So
 * may GRUB, and people who write an address with a slash at its end before such a path.
 */
const mergeSlashes = (path: string) =>
  /^\/+(?:boot|grub|pxe)\/|^\/{2,}pxe-bootstrap\.ipxe$/.test(path)
    ? path.replaceAll(/\/{2,}/g, '/')
    : path

/** Ports that browsers never connect to, since other services live there: the "bad ports" of the Fetch standard. */
const UNSAFE: ReadonlySet<number> = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102,
  103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465,
  512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993,
  995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668,
  6669, 6679, 6697, 10080,
])

export const isUnsafePort = (port: number): boolean => UNSAFE.has(port)
