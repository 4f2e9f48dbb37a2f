/** Reads the version from this program's own package.json. */
import { readFile } from 'node:fs/promises'
import { findPackageJSON } from 'node:module'
import { Fault } from '../foundation/fault.ts'
import { isRecord } from '../foundation/shape.ts'

/**
 * Reads the version of package.json, in the source tree and in an installed package alike. Rejects
 * with a Fault `input-invalid` where it has none.
 */
export async function readVersion(): Promise<string> {
  const path = findPackageJSON('../..', import.meta.url)
  const manifest: unknown = path === undefined ? null : JSON.parse(await readFile(path, 'utf8'))
  if (isRecord(manifest) && typeof manifest['version'] === 'string') return manifest['version']
  throw new Fault('input-invalid', 'package.json of flasher has no version')
}
