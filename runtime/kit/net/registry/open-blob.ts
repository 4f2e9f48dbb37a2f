/** Finds out whether a registry gives an image to everybody, and by which address. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { HttpClient } from '../http-client.ts'
import { findObstacle } from '../rules/open-source.ts'
import { createEntrances, type RegistryOptions } from './registry-entrance.ts'
import { createRegistry } from './registry.ts'
import { blobUrlOf, isOrasUrl, renderOrasRef, type OrasRef } from './rules/oras.ts'

interface WantedImage {
  /** The digest of the file as stored, 64 hexadecimal digits. */
  readonly sha256: string
  readonly sizeBytes: number | null
  readonly arch: string | null
  /** What this found for the same image before; null: nothing. */
  readonly known: string | null
}

/**
 * Returns the address at which anybody can read an image: that of its bytes where the registry asks
 * for nothing, else a reference by the digest of its manifest, for which a client gets a token
 * without a password. A refusal says in a clause why there is none; rejects where the registry
 * cannot be asked.
 */
export async function findOpenBlob(
  options: Omit<RegistryOptions, 'isAnonymous'>,
  ref: OrasRef,
  wanted: WantedImage,
): Promise<Result<string, string>> {
  const anonymous = { ...options, isAnonymous: true }
  await using entrances = createEntrances(anonymous)
  const digest = `sha256:${wanted.sha256}`
  const entered = await entrances.enter(ref, 'pull', ({ base, repository, access }) =>
    askFirstByte(access, blobUrlOf(base, repository, digest)),
  )
  const { base, repository, access, first } = entered
  const obstacle = findObstacle(first.status, first.headers, wanted)
  if (obstacle !== null) return refuse(obstacle)
  if (access.authorization === null) return accept(blobUrlOf(base, repository, digest))
  // Registries count how often manifests are asked for, and one that its digest names is never another.
  if (wanted.known !== null && isOrasUrl(wanted.known)) return accept(wanted.known)
  await using registry = createRegistry(anonymous)
  const found = await registry.resolve(ref, { arch: wanted.arch }).catch(() => null)
  // The tag may have moved on.
  if (found?.digest !== digest || found.manifest === null) {
    return refuse('the tag there does not name these bytes any more')
  }
  const pinned = { kind: 'digest', digest: found.manifest } as const
  return accept(renderOrasRef({ ...ref, version: pinned }))
}

async function askFirstByte(access: Pick<HttpClient, 'fetch'>, url: string) {
  const answer = await access.fetch(
    { url, authorization: null },
    { method: 'GET', headers: { range: 'bytes=0-0' } },
  )
  answer.drop()
  return answer
}
