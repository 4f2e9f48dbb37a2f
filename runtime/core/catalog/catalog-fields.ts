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
  const fields = new Map<string, unknown>(Object.entries(entry))
  const name = textOf(fields.get('name'), LONGEST_NAME)
  const src = textOf(fields.get('src'), LONGEST_SOURCE)
  const called = name ?? `entry ${index + 1}`
  const reason = findFault(fields, name, src)
  if (reason !== null || name === null || src === null) {
    return refuse({ name: called, reason: reason ?? 'has no name or source' })
  }
  return accept({
    name,
    src,
    resolved_src: textOf(fields.get('resolved_src'), LONGEST_SOURCE),
    format: tokenOf(fields.get('format')),
    arch: tokenOf(fields.get('arch')),
    sha256: digestOf(fields.get('sha256')),
    size_bytes: sizeOf(fields.get('size_bytes')),
    description: textOf(fields.get('description'), LONGEST_TEXT),
    netboot_ref: textOf(fields.get('netboot_ref'), LONGEST_NAME),
  })
}

function findFault(fields: ReadonlyMap<string, unknown>, name: string | null, src: string | null) {
  if (name === null) return `has no name of 1 to ${LONGEST_NAME} characters`
  if (src === null) return 'has no source (src)'
  const resolved = fields.get('resolved_src')
  if (!isAbsent(resolved) && textOf(resolved, LONGEST_SOURCE) === null) {
    return 'resolved_src is not an address'
  }
  const sha256 = fields.get('sha256')
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
