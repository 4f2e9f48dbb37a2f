/** What the lock file says of one npm package. */
import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'

export interface LockedPackage {
  readonly version: string
  /** As npm writes it: `sha512-` and base64. */
  readonly integrity: string
}

/**
 * Finds a package in the text of `pnpm-lock.yaml`.
 *
 * @throws {Error} The file does not have exactly one version of the package.
 */
export function parseLocked(lock: string, name: string): LockedPackage {
  const row = new RegExp(
    `^  ${RegExp.escape(name)}@(\\S+):\\n    resolution: \\{integrity: (sha512-[^}]+)\\}$`,
    'gm',
  )
  const [found, ...others] = lock.matchAll(row)
  const [, version, integrity] = found ?? []
  if (version === undefined || integrity === undefined || others.length > 0) {
    throw new Error(`the lock file does not have exactly one version of ${name}`)
  }
  return { version, integrity }
}

/** Computes the integrity of a file as npm writes it; null when there is none. */
export async function readIntegrity(path: string): Promise<string | null> {
  const bytes = await readFile(path).catch(() => null)
  return bytes === null ? null : `sha512-${hash('sha512', bytes, 'base64')}`
}
