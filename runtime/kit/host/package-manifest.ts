/** Reads the version and the address of the repository from this program's own package.json. */
import { readFile } from 'node:fs/promises'
import { findPackageJSON } from 'node:module'
import { join } from 'node:path'
import { Fault } from '#kit/foundation/fault.ts'
import { isRecord } from '#kit/foundation/shape.ts'

/** In the source tree and in an installed package. A Fault `input-invalid` where it has none. */
export async function readVersion(): Promise<string> {
  const manifest = await readManifest()
  if (isRecord(manifest) && typeof manifest['version'] === 'string') return manifest['version']
  throw new Fault('input-invalid', 'package.json of flasher has no version')
}

/** Reads where package.json says that the project is; null: it does not. */
export async function readRepository(): Promise<string | null> {
  const manifest = await readManifest()
  const named = isRecord(manifest) ? manifest['repository'] : null
  const address = isRecord(named) ? named['url'] : named
  return typeof address === 'string' ? address : null
}

/** Where live systems may lie: what a checkout has built, and what was put beside the package. */
export function listLiveFolders(): readonly string[] {
  const path = findManifest()
  return path === undefined ? [] : [join(path, '../dist'), join(path, '../..')]
}

const findManifest = () => findPackageJSON('../..', import.meta.url)

async function readManifest(): Promise<unknown> {
  const path = findManifest()
  return path === undefined ? null : JSON.parse(await readFile(path, 'utf8'))
}
