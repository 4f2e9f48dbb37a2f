/** Checks the raw target of an HTTP request before anything parses it. */
import { parseHostHeader } from './host-header.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

export type TargetRefusal = 'dot-segment' | 'backslash' | 'not-a-target'

interface RequestTarget {
  /** Path and query, or `*`. */
  readonly path: string
  /** Named by an absolute target; null: the `Host` header alone names one. */
  readonly host: string | null
}

/** No segment begins with a dot, nothing is encoded, no slash is repeated: nearly all requests. */
const PLAIN = /^(?:\/[\w:~-][\w:~.-]*)+(?:\?|$)/
const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/is
/** Segments `.` and `..`. An encoded slash separates none: routes take it for a part of a name. */
const DOTS = /(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i

/** Tells whether a target needs no further look: `parseTarget` would leave it as it is. */
export const isPlainTarget = (target: string): boolean => PLAIN.test(target)

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
