/** Derives the server's address for machines from the `Host` header or the configuration, checked strictly. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

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

/**
 * Parses the `public_url` setting: scheme, host, perhaps a path below which a proxy serves us. What
 * is returned has no trailing slash.
 */
export function parsePublicUrl(text: string): Result<string, 'not-a-url'> {
  const parts = /^(https?):\/\/([^/]+)(.*?)\/*$/i.exec(text.trim())
  if (parts === null) return refuse('not-a-url')
  const [, scheme = '', authority = '', prefix = ''] = parts
  const host = parseHost(authority)
  if (!host.ok || !PREFIX.test(prefix)) return refuse('not-a-url')
  const url = `${scheme.toLowerCase()}://${host.value}${prefix}`
  return url.length > MAX_CHARACTERS ? refuse('not-a-url') : accept(url)
}

/**
 * Returns what `public_url` has behind the host: boot scripts and files are below it, pages are
 * not; '' is nothing.
 */
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
