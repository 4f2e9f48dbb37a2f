/** Reads catalog manifests from a file, a web server or a registry. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { OrasSourceOptions } from '#engine/image/sources/remote-sources.ts'
import { Fault, renderError, isMissing } from '#kit/foundation/fault.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Environment } from '#kit/host/shell.ts'
import { type OrasRef, renderOrasRef } from '#kit/net/registry/rules/oras.ts'
import {
  type HttpTarget,
  type LocationRefusal,
  parseLocation,
  renderLocationRefusal,
  renderSafeUrl,
} from '#kit/net/rules/image-location.ts'
import { readingCancelled } from '#kit/net/rules/network-failure.ts'
import {
  type CatalogRefusal,
  filePathOf,
  type LoadedCatalog,
  offerImages,
  refusalOf,
} from './rules/catalog-source.ts'
import { type Manifest, parseManifest, renderFlaw } from './rules/manifest.ts'

interface ReadManifest extends Manifest {
  /** Safe to show. */
  readonly name: string
  /** Null: it came from another machine. */
  readonly folder: string | null
}

interface ManifestOptions {
  /** Names proxies, FLASHER_CA_FILE and registry credentials. */
  readonly env: Environment
  readonly signal?: AbortSignal | undefined
  /** For all of it, from another machine. */
  readonly timeoutMs?: number
}

const MAX_BYTES = 4 * 1024 * 1024
const LONGEST_MS = 30_000

interface ManifestText extends Pick<ReadManifest, 'name' | 'folder'> {
  readonly text: string
}

/** Rejects with a Fault as `readManifestText`, and with `input-invalid`. */
export async function readManifest(
  source: string,
  options: ManifestOptions,
): Promise<ReadManifest> {
  const { name, folder, text } = await readManifestText(source, options)
  const manifest = parseManifest(text)
  if (manifest.ok) return { ...manifest.value, name, folder }
  throw new Fault('input-invalid', `${name}: ${renderFlaw(manifest.refusal)}`, {
    hint: /^\s*<(!doctype|html|\?xml)/i.test(text) ? 'This is a web page.' : undefined,
  })
}

/** At most 4 MiB from a path, a `file://`, http(s) or oras address. Rejects with a Fault. */
export async function readManifestText(
  source: string,
  options: ManifestOptions,
): Promise<ManifestText> {
  const location = parseLocation(filePathOf(source, '.') ?? source)
  if (!location.ok) throw new Fault('input-invalid', describeRefusedLocation(location.refusal))
  switch (location.value.kind) {
    case 'stdin':
      throw new Fault('input-invalid', 'a catalog cannot be read from standard input')
    case 'file': {
      const { path } = location.value
      return { name: path, folder: dirname(path), text: await readFile(path) }
    }
    case 's3':
      throw new Fault('input-invalid', 'a catalog cannot be read from a bucket (s3://)')
    case 'oras':
      return readFromRegistry(location.value.ref, options)
    case 'http':
      return readFromServer(location.value.target, options)
  }
}

/** A device or a pipe never ends: only files are opened. */
async function readFile(path: string): Promise<string> {
  try {
    await using handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const stats = await handle.stat()
    if (stats.isDirectory()) throw new Error('it is a folder')
    if (!stats.isFile()) throw new Error('it is not a file')
    if (stats.size > MAX_BYTES) throw new Error(TOO_LARGE)
    return await handle.readFile('utf8')
  } catch (cause) {
    throw cannotBeRead(path, isMissing(cause) ? 'there is no such file' : renderError(cause), cause)
  }
}

/** Lazy, as in `sources.ts`. */
async function readFromServer(target: HttpTarget, { env, signal, timeoutMs }: ManifestOptions) {
  const { fetchDocument } = await import('#kit/net/json-client.ts')
  const url = new URL(target.url)
  // A server's bare address means its catalog.
  if (url.pathname === '/' && url.search === '') url.pathname = '/catalog.toml'
  const name = renderSafeUrl(url.href)
  try {
    const answer = await fetchDocument({
      target: { ...target, url: url.href },
      name,
      env,
      maxBytes: MAX_BYTES,
      timeoutMs: timeoutMs ?? LONGEST_MS,
      etag: null,
      signal,
    })
    return { name, folder: null, text: answer?.text ?? '' }
  } catch (thrown) {
    throw signal?.aborted === true ? readingCancelled(name) : thrown
  }
}

/** The layer that is a catalog by its name, else the largest; checks its digest. */
async function readFromRegistry(ref: OrasRef, { env, signal, timeoutMs }: ManifestOptions) {
  const name = renderOrasRef(ref)
  const ms = timeoutMs ?? LONGEST_MS
  const late = AbortSignal.timeout(ms)
  const all = signal === undefined ? late : AbortSignal.any([late, signal])
  try {
    return { name, folder: null, text: await readBlob(ref, { env, signal: all, stallMs: ms }) }
  } catch (thrown) {
    if (signal?.aborted === true) throw thrown
    if (late.aborted) throw cannotBeRead(name, `no answer within ${ms / 1000} s`, thrown)
    if (!(thrown instanceof Fault)) throw thrown
    const words = thrown.message.replace(/^image URL /, 'catalog ')
    throw new Fault(thrown.code, words, { hint: thrown.hint, cause: thrown })
  }
}

type BlobOptions = Pick<OrasSourceOptions, 'env' | 'signal' | 'stallMs'>

async function readBlob(ref: OrasRef, options: BlobOptions): Promise<string> {
  const { openOrasSource } = await import('#engine/image/sources/remote-sources.ts')
  const choice = { title: /\.toml$/i, arch: null, retryMs: 500 }
  await using source = await openOrasSource(ref, { ...options, ...choice })
  if ((source.sizeBytes ?? 0) > MAX_BYTES) throw cannotBeRead(source.name, TOO_LARGE)
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of source.stream()) {
    bytes += chunk.length
    if (bytes > MAX_BYTES) throw cannotBeRead(source.name, TOO_LARGE)
    chunks.push(Buffer.from(chunk))
  }
  return Buffer.concat(chunks).toString('utf8')
}

const TOO_LARGE = `it is larger than ${MAX_BYTES} bytes`
const cannotBeRead = (name: string, reason: string, cause?: unknown) =>
  new Fault('input-missing', `${name} cannot be read: ${reason}`, { cause })

function describeRefusedLocation(refusal: LocationRefusal): string {
  if (refusal.why === 'empty') return 'no catalog is named'
  if (refusal.why !== 'scheme-unsupported') return renderLocationRefusal(refusal)
  const { scheme, shown } = refusal
  return `${scheme}:// catalogs are not supported: ${shown} (a path, http://, https:// or oras:// are)`
}

/** Bad entries become flaws; refused where there is no catalog. At most 30 seconds and 4 MiB. */
export function createCatalogSources(options: Pick<ManifestOptions, 'env' | 'timeoutMs'>) {
  return async function loadCatalogSource(
    source: string,
    signal?: AbortSignal,
  ): Promise<Result<LoadedCatalog, CatalogRefusal>> {
    try {
      const manifest = await readManifest(source, { ...options, signal })
      return accept(offerImages(manifest.name, manifest, manifest.folder))
    } catch (thrown) {
      if (thrown instanceof Fault) return refuse(refusalOf(thrown))
      throw thrown
    }
  }
}
