/** Catalog manifests: TOML, version 1 ("Catalog manifest"), read and written. */
import { stringify } from 'smol-toml'
import { type CatalogEntry, refOf } from './catalog.ts'
import { type CatalogFields, parseCatalogFields } from './catalog-fields.ts'
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { parseToml } from '#kit/config/rules/toml.ts'

const MANIFEST_VERSION = 1
const MAX_IMAGES = 10_000

export interface ManifestImage extends CatalogFields {
  /** As written (`bty_image_ref`, `ref`): `src` may be a cache's address. */
  readonly ref: string | null
  /** Where its table starts, from 1; null: unknown. */
  readonly line: number | null
}

/** Safe to show; `line` from 1, null: the document as a whole. */
export interface ManifestFlaw {
  readonly line: number | null
  readonly reason: string
}

export interface Manifest {
  readonly images: readonly ManifestImage[]
  readonly flaws: readonly ManifestFlaw[]
}

/** Wrong entries become flaws. The refusal holds the line at fault, from 1, or null. */
export function parseManifest(text: string): Result<Manifest, ManifestFlaw> {
  const document = parseToml(text)
  if (!document.ok) {
    const { message, line, column } = document.refusal
    return flaw(`${message} (column ${column})`, line)
  }
  const { version, images = [] } = document.value
  if (version !== MANIFEST_VERSION) {
    const found = version === undefined ? 'none is given' : `this one is ${JSON.stringify(version)}`
    return flaw(
      `a catalog must have version = ${MANIFEST_VERSION}; ${found}`,
      lineOf(text, VERSION),
    )
  }
  if (!Array.isArray(images)) {
    return flaw('"images" must be tables: [[images]]', lineOf(text, IMAGES))
  }
  if (images.length > MAX_IMAGES) return flaw(`lists more than ${MAX_IMAGES} images`, null)
  return accept(collect(images, linesOfTables(text, images.length)))
}

export const renderFlaw = ({ line, reason }: ManifestFlaw): string =>
  line === null ? reason : `line ${line}: ${reason}`

/**
 * Deployed clients compute `ref` from `src` and refuse a manifest where another stands, so that it
 * is there only where it is the same.
 */
export function renderManifest(entries: readonly CatalogEntry[]): string {
  return stringify({ version: MANIFEST_VERSION, images: entries.map(renderRow) })
}

function renderRow(entry: CatalogEntry) {
  const { name, url, ref, sha256, format, sizeBytes, arch, description } = entry
  const own = refOf(url)
  return present({
    name,
    src: url,
    ref: own.ok && own.value === ref ? ref : null,
    [IDENTITY]: ref,
    sha256,
    format,
    size_bytes: sizeBytes,
    arch,
    description,
    any_content: entry.anyContent ?? null,
  })
}

const IDENTITY = 'bty_image_ref'

type ManifestFields = Readonly<Record<string, string | number | boolean | null>>
/** TOML has no null. */
const present = (fields: ManifestFields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== ''))

function collect(tables: readonly unknown[], lines: readonly (number | null)[]): Manifest {
  const images: ManifestImage[] = []
  const flaws: ManifestFlaw[] = []
  const names = new Set<string>()
  for (const [index, table] of tables.entries()) {
    const line = lines[index] ?? null
    const fields = parseCatalogFields(table, index)
    if (!fields.ok)
      flaws.push({ line, reason: printable(`${fields.refusal.name}: ${fields.refusal.reason}`) })
    else if (names.has(fields.value.name)) {
      flaws.push({ line, reason: printable(`${fields.value.name} is listed before`) })
    } else {
      names.add(fields.value.name)
      images.push({ ...fields.value, ref: refField(Object(table)), line })
    }
  }
  return { images, flaws }
}

function refField(table: object): string | null {
  const fields = new Map<string, unknown>(Object.entries(table))
  const ref = fields.get(IDENTITY) ?? fields.get('ref')
  return typeof ref === 'string' && /^[0-9a-f]{64}$/i.test(ref) ? ref.toLowerCase() : null
}

const VERSION = /^[ \t]*version[ \t]*=/
const IMAGES = /^[ \t]*(images[ \t]*=|\[[ \t]*images[ \t]*\])/
const TABLE = /^[ \t]*\[\[[ \t]*("images"|'images'|images)[ \t]*\]\]/

const flaw = (reason: string, line: number | null) => refuse({ line, reason })

function lineOf(text: string, pattern: RegExp): number | null {
  const at = text.split('\n').findIndex((line) => pattern.test(line))
  return at < 0 ? null : at + 1
}

/** The parser reports no positions; headers inside a text would make the counts differ. */
function linesOfTables(text: string, count: number): readonly (number | null)[] {
  const found = text.split('\n').flatMap((line, at) => (TABLE.test(line) ? [at + 1] : []))
  return found.length === count ? found : Array.from({ length: count }, () => null)
}
