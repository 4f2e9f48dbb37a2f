/** The fields of one catalog entry as others write them, in JSON and TOML alike, checked and bounded. */
import { isRecord } from '../foundation/shape.ts'
import { accept, refuse, type Result } from '../foundation/result.ts'

export interface CatalogFields {
  readonly name: string
  readonly src: string
  readonly resolved_src: string | null
  readonly format: string | null
  readonly arch: string | null
  /** Lower case. */
  readonly sha256: string | null
  readonly size_bytes: number | null
  readonly description: string | null
  readonly netboot_ref: string | null
}

/** `name`: what the entry can be called in a message. */
interface FieldsRefusal {
  readonly name: string
  readonly reason: string
}

export const LONGEST_NAME = 512
const LONGEST_SOURCE = 8192
const LONGEST_TEXT = 8192

/**
 * `""` and null mean absent. A field that only describes is left out where it makes no sense; one that
 * decides which bytes are written refuses the whole entry.
 */
export function parseCatalogFields(
  entry: unknown,
  index: number,
): Result<CatalogFields, FieldsRefusal> {
  if (!isRecord(entry)) {
    return refuse({ name: `entry ${index + 1}`, reason: 'is not a table of fields' })
  }
  const name = textOf(entry['name'], LONGEST_NAME)
  const src = textOf(entry['src'], LONGEST_SOURCE)
  const called = name ?? `entry ${index + 1}`
  if (name === null) {
    return refuse({ name: called, reason: `has no name of 1 to ${LONGEST_NAME} characters` })
  }
  if (src === null) return refuse({ name: called, reason: 'has no source (src)' })
  const reason = findFault(entry)
  if (reason !== null) return refuse({ name: called, reason })
  return accept({
    name,
    src,
    resolved_src: textOf(entry['resolved_src'], LONGEST_SOURCE),
    format: tokenOf(entry['format']),
    arch: tokenOf(entry['arch']),
    sha256: digestOf(entry['sha256']),
    size_bytes: sizeOf(entry['size_bytes']),
    description: textOf(entry['description'], LONGEST_TEXT),
    netboot_ref: textOf(entry['netboot_ref'], LONGEST_NAME),
  })
}

function findFault({ resolved_src: resolved, sha256 }: Readonly<Record<string, unknown>>) {
  if (!isAbsent(resolved) && textOf(resolved, LONGEST_SOURCE) === null) {
    return 'resolved_src is not an address'
  }
  const isDigest = isAbsent(sha256) || digestOf(sha256) !== null
  return isDigest ? null : 'sha256 is not 64 hexadecimal digits'
}

const isAbsent = (value: unknown) => value === undefined || value === null || value === ''

function textOf(value: unknown, most: number): string | null {
  if (typeof value !== 'string' || value.trim() === '' || value.length > most) return null
  return value.toWellFormed()
}

/** `img.gz`, `x86_64`: short and plain, as they end up in command lines and file names. */
function tokenOf(value: unknown): string | null {
  const text = typeof value === 'string' ? value.trim().toLowerCase() : ''
  return /^[a-z0-9][a-z0-9._+-]{0,31}$/.test(text) ? text : null
}

function digestOf(value: unknown): string | null {
  const text = typeof value === 'string' ? value.trim().toLowerCase() : ''
  return /^[0-9a-f]{64}$/.test(text) ? text : null
}

const sizeOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null
