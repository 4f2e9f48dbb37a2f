/** Renders `release.toml` from its template `release.toml.in`. */
import type { ReleaseLine } from '#appliance/release.ts'

export interface HashedFile {
  readonly name: string
  readonly bytes: number
  /** SHA-256 in hexadecimal. */
  readonly digest: string
}

interface ManifestFacts {
  readonly line: ReleaseLine
  readonly version: string
  readonly tag: string
  /** Seconds since 1970. */
  readonly epoch: number
  readonly files: readonly HashedFile[]
}

/**
 * Fills in the words between @ signs.
 *
 * @throws {Error} A word between @ signs is unknown.
 */
export function renderManifest(template: string, facts: ManifestFacts): string {
  const { line, version, tag, epoch, files } = facts
  const values: Readonly<Record<string, string>> = {
    line,
    version,
    tag,
    released: new Date(epoch * 1000).toISOString().replace('.000Z', 'Z'),
    artifacts: files.map(renderArtifact).join('\n\n'),
  }
  return template.replaceAll(/@([a-z]+)@/g, (_, name: string) => {
    const value = values[name]
    if (value === undefined) throw new Error(`release.toml.in has an unknown word: @${name}@`)
    return value
  })
}

const renderArtifact = ({ name, bytes, digest }: HashedFile) =>
  ['[[artifacts]]', `name = "${name}"`, `size = ${bytes}`, `sha256 = "${digest}"`].join('\n')
