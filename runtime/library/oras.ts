/** Library entry points of the oras module: images in OCI registries. */
import {
  isOrasUrl as isReference,
  type OrasRef as Reference,
  parseOrasRef,
} from '#kit/net/registry/rules/oras.ts'
import { createRegistry, type ResolvedBlob as Blob } from '#kit/net/registry/registry.ts'
import { LibraryError, rethrowAs } from './library-error.ts'

/** A reference `oras://host/owner/repository` with a `:tag` or a `@sha256:…`; the other one is null. */
export interface OrasRef {
  /** The registry in lower case, with the port if the reference names one. */
  readonly host: string
  /** The path at the registry, `owner/repository`. */
  readonly repository: string
  readonly tag: string | null
  /** The digest of a manifest or blob: `sha256:` and 64 hexadecimal digits. */
  readonly digest: string | null
}

/**
 * Where an image's bytes are now. `headers` authorise the request, and must be sent to the host of `url`
 * only: registries redirect to other hosts, which must not see them. `sizeBytes` is the size as stored,
 * null where the registry was not asked for a manifest.
 */
export type ResolvedBlob = Blob

/**
 * Why a reference could not be resolved. `code` is `misuse` (the text is not a reference),
 * `input-missing` (the registry does not have it)…; `hint` says how to fix it, where that is known.
 *
 * @example
 * ```ts
 * import { OrasError, parseRef } from 'flasher-lab/oras'
 *
 * try {
 *   parseRef('oras://registry.example')
 * } catch (error) {
 *   if (error instanceof OrasError) console.log(error.code) // misuse
 * }
 * ```
 */
export class OrasError extends LibraryError {
  override readonly name = 'OrasError'
}

/** What `resolveRef` may be given besides the reference. */
export interface ResolveOptions {
  /** The image of an index to take (`x86_64`, `arm64`); absent: the only one, else this machine's. */
  readonly arch?: string
  /** Aborting this ends the requests at once, with an OrasError whose `code` is `cancelled`. */
  readonly signal?: AbortSignal
}

/**
 * Says whether a text begins with `oras://`, in any case; whether it is well formed says `parseRef`.
 *
 * @param url - Any text.
 * @returns Whether it is meant as a reference.
 *
 * @example
 * ```ts
 * import { isOrasUrl } from 'flasher-lab/oras'
 *
 * console.log(isOrasUrl('ORAS://registry.example/lab/debian:13'), isOrasUrl('https://h/a')) // true false
 * ```
 */
export const isOrasUrl = (url: string): boolean => isReference(url)

/**
 * Reads a reference; opens no connection.
 *
 * @param ref - `oras://host/owner/repository:tag`, or with `@sha256:…` in place of the tag.
 * @returns Its parts; of `tag` and `digest`, one is null.
 * @throws {OrasError} The text is not a reference (`misuse`); the message says why.
 *
 * @example
 * ```ts
 * import { parseRef } from 'flasher-lab/oras'
 *
 * const { host, repository, tag } = parseRef('oras://Registry.example/lab/debian:13')
 * console.log(host, repository, tag) // registry.example lab/debian 13
 * ```
 */
export function parseRef(ref: string): OrasRef {
  const { host, repository, version } = parse(ref)
  return {
    host,
    repository,
    tag: version.kind === 'tag' ? version.tag : null,
    digest: version.kind === 'digest' ? version.digest : null,
  }
}

/**
 * Asks the registry which blob a reference means: the largest layer of its manifest that is not a
 * signature, checksum or description. Credentials come from `FLASHER_REGISTRY_…` or from Docker's and
 * Podman's files, additional certificate authorities from `FLASHER_CA_FILE`. A registry that sends
 * nothing for 30 seconds is given up.
 *
 * @param ref - A reference, as text or parsed.
 * @param options - `arch` selects the image of an index, `signal` ends it early.
 * @returns The blob's URL, its digest, its size in bytes, and the headers of a request for it.
 * @throws {OrasError} The reference is malformed (`misuse`), or the registry does not have it or is
 *   unavailable.
 *
 * @example
 * ```ts
 * import { resolveRef } from 'flasher-lab/oras'
 *
 * const blob = await resolveRef('oras://registry.example/lab/debian:13', { arch: 'x86_64' })
 * console.log(blob.title, blob.sizeBytes) // debian.img.zst …
 * const response = await fetch(blob.url, { headers: blob.headers })
 * console.log(response.status) // 200
 * await response.body?.cancel()
 * ```
 */
export async function resolveRef(
  ref: string | OrasRef,
  { arch, signal = new AbortController().signal }: ResolveOptions = {},
): Promise<ResolvedBlob> {
  const parsed = parse(typeof ref === 'string' ? ref : render(ref))
  await using registry = createRegistry({ env: process.env, signal, stallMs: 30_000, retryMs: 500 })
  const resolving = registry.resolve(parsed, { arch: arch ?? null })
  const { url, headers, digest, sizeBytes, title } = await resolving.catch(rethrowAs(OrasError))
  return { url, headers, digest, sizeBytes, title }
}

function parse(text: string): Reference {
  const parsed = parseOrasRef(text)
  if (parsed.ok) return parsed.value
  throw new OrasError('misuse', `${parsed.refusal}: ${text}`)
}

const render = ({ host, repository, tag, digest }: OrasRef) =>
  `oras://${host}/${repository}${tag === null ? '' : `:${tag}`}${digest === null ? '' : `@${digest}`}`
