/** What an accepted capture is called in a registry. */
import { parseOrasRepository, type OrasRef } from '../../kit/net/registry/rules/oras.ts'

const MAX_NAME = 100
const SHOWN_DIGITS = 12

/**
 * Names the copy of an image below a repository: `oras://registry.lab/captures` and `Web 42.img.zst`
 * make `captures/web-42` with a tag of its digest, so that nothing is ever replaced. Null: the
 * repository is empty or none.
 */
export function nameCopy(target: string, name: string, sha256: string): OrasRef | null {
  const parsed = parseOrasRepository(target)
  if (parsed === null) return null
  const part = name
    .toLowerCase()
    .replace(/\.img\.zst$/, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_NAME)
    .replaceAll(/^-+|-+$/g, '')
  const tag = sha256.slice(0, SHOWN_DIGITS)
  const { host, repository } = parsed
  return { host, repository: `${repository}/${part || 'image'}`, version: { kind: 'tag', tag } }
}
