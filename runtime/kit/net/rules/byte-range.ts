/** Decides which part of a file a request gets, and whether its copy is current (RFC 9110, 13 and 14). */

export interface Conditions {
  readonly range: string | null
  readonly ifRange: string | null
  readonly ifNoneMatch: string | null
  readonly ifModifiedSince: string | null
}

interface Version {
  readonly sizeBytes: number
  readonly etag: string
  /** As in `Last-Modified`, which clients send back as they got it; null: no time is known. */
  readonly lastModified: string | null
}

type FileAnswer =
  | { readonly status: 200 }
  /** The part from one byte to the other, both included. */
  | { readonly status: 206; readonly from: number; readonly to: number }
  | { readonly status: 304 }
  | { readonly status: 416 }

/** Several ranges, and what is no range, get the whole file. */
export function decideFileAnswer(asked: Conditions, version: Version): FileAnswer {
  if (isKnown(asked, version)) return { status: 304 }
  if (asked.range === null || !isSameVersion(asked.ifRange, version)) return { status: 200 }
  return parseRange(asked.range, version.sizeBytes)
}

function isKnown({ ifNoneMatch, ifModifiedSince }: Conditions, version: Version): boolean {
  if (ifNoneMatch !== null) {
    return ifNoneMatch.split(',').some((tag) => ['*', version.etag].includes(bare(tag)))
  }
  return ifModifiedSince !== null && ifModifiedSince.trim() === version.lastModified
}

/** A weak tag never proves that two byte strings are the same. */
function isSameVersion(ifRange: string | null, version: Version): boolean {
  if (ifRange === null) return true
  return [version.etag, version.lastModified].includes(ifRange.trim())
}

/** One range; several, or anything else, and the whole file is sent, as the RFC allows. */
function parseRange(header: string, size: number): FileAnswer {
  const match = /^\s*bytes\s*=\s*(\d{0,15})\s*-\s*(\d{0,15})\s*$/i.exec(header)
  const [, first = '', last = ''] = match ?? []
  if (first === '') return last === '' ? { status: 200 } : cutTail(Number(last), size)
  const [from, to] = [Number(first), last === '' ? Infinity : Number(last)]
  if (to < from) return { status: 200 }
  return from >= size ? { status: 416 } : { status: 206, from, to: Math.min(size - 1, to) }
}

const cutTail = (length: number, size: number): FileAnswer =>
  length === 0 || size === 0
    ? { status: 416 }
    : { status: 206, from: Math.max(0, size - length), to: size - 1 }

const bare = (tag: string) => tag.trim().replace(/^W\//, '')
