/** Resolves a reference in an OCI registry to its current blob, opens access to it, and finds out whether everybody has that. */
import { createHash } from 'node:crypto'
import { arch as ownArch } from 'node:os'
import { Fault } from '#kit/foundation/fault.ts'
import {
  blobUrlOf,
  isOrasUrl,
  locatorOf,
  manifestUrl,
  type OrasRef,
  renderOrasRef,
} from './rules/oras.ts'
import { MANIFEST_TYPES, type OrasLayer, parseManifestBody } from './rules/oras-manifest.ts'
import { describeFailure, notReachable, readingCancelled } from '../rules/network-failure.ts'
import type { HttpClient } from '../http-client.ts'
import { askDocument, type DocumentAnswer } from '../json-client.ts'
import {
  createEntrances,
  isTlsUnknown,
  PLAIN_REGISTRY,
  READ_HINTS,
  type RegistryEntrance,
  type RegistryOptions,
} from './registry-entrance.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { findObstacle } from '../rules/http-range.ts'

export interface ResolvedBlob {
  readonly url: string
  /** What a request for `url` needs; to be sent to this host only. */
  readonly headers: Readonly<Record<string, string>>
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest: string
  /** The size that the manifest says; null: it was not asked. */
  readonly sizeBytes: number | null
  readonly title: string | null
}

/** A layer, and the digest of the manifest that names it; null: it was named itself. */
type FoundLayer = OrasLayer & { readonly manifest: string | null }

interface ResolveOptions {
  /** The architecture to choose from an index of several. */
  readonly arch?: string | null
  /** Prefers the layer of such a name to the largest. */
  readonly title?: RegExp | undefined
}

/** Indexes may name indexes, but nobody nests them deeper. */
const MAX_MANIFESTS = 3

/** It is given back when no blob is read any more. */
export function createRegistry(options: RegistryOptions) {
  const { signal } = options
  const entrances = createEntrances(options)

  return {
    /** A Fault `input-missing` says why the image is unavailable. */
    async resolve(ref: OrasRef, wanted: ResolveOptions = {}) {
      try {
        const { base, repository, access, bounds, first } = await entrances.enter(
          ref,
          'pull',
          (entrance) => askManifest(entrance, locatorOf(ref.version)),
        )
        const ask = (locator: string) => askManifest({ base, repository, access, bounds }, locator)
        const layer = await findLayer(ref, wanted, ask, first)
        const { authorization } = access
        return {
          url: blobUrlOf(base, repository, layer.digest),
          headers: authorization === null ? {} : { authorization },
          ...layer,
          client: access,
        } satisfies ResolvedBlob & FoundLayer & { readonly client: Pick<HttpClient, 'fetch'> }
      } catch (thrown) {
        throw explain(thrown, renderOrasRef(ref), signal)
      }
    },
    [Symbol.asyncDispose]: () => entrances[Symbol.asyncDispose](),
  }
}

/** Asks for the manifest of a tag or digest; any status is an answer. */
const askManifest = (
  { base, repository, access, bounds }: RegistryEntrance,
  locator: string,
): Promise<DocumentAnswer> =>
  askDocument(
    access,
    { url: manifestUrl(base, repository, locator), authorization: null },
    { ...bounds, headers: { accept: MANIFEST_TYPES.join(', ') } },
  )

async function findLayer(
  ref: OrasRef,
  { arch = null, title }: ResolveOptions,
  ask: (locator: string) => Promise<DocumentAnswer>,
  first: DocumentAnswer,
): Promise<FoundLayer> {
  const name = renderOrasRef(ref)
  const { version } = ref
  const isPinned = version.kind === 'digest'
  // A digest is a manifest's by convention; older catalogs mean the blob itself by it, at which the
  // widespread registry fails (500), as it takes it for a broken manifest.
  if (isPinned && [400, 404, 500].includes(first.status)) {
    return {
      digest: version.digest,
      sizeBytes: null,
      title: null,
      indexSha256: null,
      manifest: null,
    }
  }
  let document = first
  let digest = isPinned ? version.digest : null
  for (let depth = 0; depth < MAX_MANIFESTS; depth += 1) {
    const { text, digest: found } = readManifest(name, document, digest)
    const manifest = parseManifestBody(text, { arch, ownArch: ownArch(), title })
    if (!manifest.ok) throw notReachable(name, manifest.refusal)
    if (manifest.value.kind === 'several') throw several(ref, manifest.value)
    if (manifest.value.kind === 'image') return { ...manifest.value.layer, manifest: found }
    digest = manifest.value.digest
    document = await ask(digest)
  }
  throw notReachable(name, 'its indexes are nested too deeply')
}

const MAX_NAMED = 10

function several(
  ref: OrasRef,
  { arch, digests }: { readonly arch: string; readonly digests: readonly string[] },
): Fault {
  const names = digests.slice(0, MAX_NAMED)
  const alternatives = names.map((digest) =>
    renderOrasRef({ ...ref, version: { kind: 'digest', digest } }),
  )
  const reason = `it holds ${digests.length} images for ${arch}: ${names.join(', ')}`
  const hint = `Name one by its digest: ${alternatives[0] ?? ''}`
  return notReachable(renderOrasRef(ref), reason, { hint, alternatives })
}

function readManifest(name: string, { status, bytes }: DocumentAnswer, digest: string | null) {
  if (status !== 200) {
    throw notReachable(name, `HTTP ${status}`, { hint: READ_HINTS[status] })
  }
  const found = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
  if (digest === null || found === digest) return { text: bytes.toString('utf8'), digest: found }
  throw new Fault('digest-mismatch', `${name}: its manifest is ${found}, not ${digest}`, {
    hint: 'The registry or a proxy changes the data.',
  })
}

function explain(thrown: unknown, name: string, signal: AbortSignal): unknown {
  if (signal.aborted) return readingCancelled(name)
  const failure = describeFailure(thrown)
  if (failure === null) return thrown
  const hint = failure.hint ?? (isTlsUnknown(thrown) ? PLAIN_REGISTRY : undefined)
  return notReachable(name, failure.reason, { hint, cause: thrown })
}

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
    return refuse('the tag now points to another image')
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
