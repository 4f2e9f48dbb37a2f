/** Library entry points of the oras module: images in OCI registries. */
import {
  isOrasUrl as isReference,
  type OrasRef as Reference,
  parseOrasRef,
} from '../kit/net/registry/rules/oras.ts'
import { createRegistry, type ResolvedBlob as Blob } from '../kit/net/registry/registry.ts'
import { LibraryError, rethrowAs } from './library-error.ts'

/** `oras://host/owner/repository` with a `:tag` or a `@sha256:…`: one of the two is null. */
export interface OrasRef {
  /** Lower case, with the port where one is named. */
  readonly host: string
  readonly repository: string
  readonly tag: string | null
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest: string | null
}

/** Where the image's bytes are just now, and what has to be sent to be let in. */
export type ResolvedBlob = Blob

/** Not a reference (`misuse`), or unavailable from the registry (`input-missing`…). */
export class OrasError extends LibraryError {
  override readonly name = 'OrasError'
}

export interface ResolveOptions {
  /** Which image of an index (`x86_64`, `arm64`); absent: the only one, else this machine's. */
  readonly arch?: string
  /** Ends it at once. */
  readonly signal?: AbortSignal
}

/** Whether a text wants to be a reference, in any case. */
export const isOrasUrl = (url: string): boolean => isReference(url)

/** Throws an OrasError with `code` `misuse` that says what is wrong with it. */
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
 * Asks the registry which blob a reference means: a manifest's largest layer that is no signature or
 * checksum. Credentials come from FLASHER_REGISTRY_… or from Docker's and Podman's files, authorities
 * from FLASHER_CA_FILE. `headers` are for `url`'s host alone. Rejects with an OrasError.
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
