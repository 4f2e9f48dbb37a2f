/** Reads the package lists that mkosi writes. */
import { parseJson } from '#kit/foundation/json-reader.ts'

export interface DebianPackage {
  readonly name: string
  readonly version: string
  readonly architecture: string
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Parses a `.manifest` into a list sorted by name. Throws when it is not one. */
export function parseManifest(text: string): readonly DebianPackage[] {
  const manifest = parseJson(text)
  const rows = isRecord(manifest) ? manifest['packages'] : null
  if (!Array.isArray(rows))
    throw new Error('this is not a manifest of mkosi: its list of packages is missing')
  return rows
    .flatMap((row: unknown) => {
      if (!isRecord(row)) return []
      const { name, version, architecture } = row
      const whole = [name, version, architecture].every((value) => typeof value === 'string')
      return whole
        ? [{ name: String(name), version: String(version), architecture: String(architecture) }]
        : []
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}
