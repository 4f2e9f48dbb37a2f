/** Lists of Debian packages: read from a tree's dpkg, written as JSON for later steps. */
import { writeFile } from 'node:fs/promises'
import type { DebianPackage } from './package-list.ts'

/** Lists the installed packages in the text of `/var/lib/dpkg/status` (deb-control(5)). */
export const parseStatus = (text: string): readonly DebianPackage[] =>
  text.split(/\n\n+/).flatMap((stanza) => {
    const fieldOf = (field: string) => new RegExp(`^${field}: (.+)$`, 'm').exec(stanza)?.[1] ?? ''
    const name = fieldOf('Package')
    if (name === '' || fieldOf('Status') !== 'install ok installed') return []
    return [{ name, version: fieldOf('Version'), architecture: fieldOf('Architecture') }]
  })

/**
 * Writes a list as JSON, sorted by name. Rejects when it is empty, which means that something was
 * misread.
 */
export async function writeList(path: string, packages: readonly DebianPackage[]): Promise<void> {
  if (packages.length === 0) throw new Error(`${path} would list no package`)
  const sorted = packages.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  await writeFile(path, `${JSON.stringify(sorted, null, 2)}\n`)
}
