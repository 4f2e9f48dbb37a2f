/** Adds all images of a catalog manifest to the cache's list; existing entries stay as they are. */
import { Fault } from '#kit/foundation/fault.ts'
import { renderFieldErrors } from '#kit/foundation/field-error.ts'
import { type ManifestImage, renderFlaw } from '#engine/catalog/rules/manifest.ts'
import type { ImageCache } from './image-cache.ts'
import { readManifest } from '#engine/catalog/catalog-manifests.ts'
import type { Environment } from '#kit/host/shell.ts'

export interface Imported {
  readonly added: readonly string[]
  /** Listed already, by the same name and from the same source. */
  readonly known: readonly string[]
  /** One sentence for each entry that was left out. */
  readonly flaws: readonly string[]
}

/** By its ending; in a registry by the end of the repository (`oras://host/lab/catalog:v1`). */
export const isManifestUrl = (url: string): boolean =>
  /\.toml([?#]|$)/i.test(url) || /^oras:\/\/.*[/._-](catalog|toml)[:@][^/]*$/i.test(url)

/** Rejects with a Fault where the manifest is unavailable or invalid; reads no local files. */
export async function importCatalog(
  cache: Pick<ImageCache, 'add' | 'rows'>,
  url: string,
  env: Environment,
): Promise<Imported> {
  if (!/^(https?|oras):\/\//i.test(url)) {
    throw new Fault('input-invalid', 'a catalog is read from an http(s):// or oras:// address here')
  }
  const { images, flaws } = await readManifest(url, { env })
  const outcomes = await Array.fromAsync(images, (image) => addImage(cache, image))
  const of = (kind: Outcome['kind']) =>
    outcomes.flatMap((outcome) => (outcome.kind === kind ? [outcome.words] : []))
  return {
    added: of('added'),
    known: of('known'),
    flaws: [...flaws.map(renderFlaw), ...of('flaw')],
  }
}

interface Outcome {
  readonly kind: 'added' | 'known' | 'flaw'
  readonly words: string
}

async function addImage(
  cache: Pick<ImageCache, 'add' | 'rows'>,
  { ref: _ref, line: _line, ...fields }: ManifestImage,
): Promise<Outcome> {
  const { name, src } = fields
  const added = await cache.add(fields)
  if (added.ok) return { kind: 'added', words: name }
  const { refusal } = added
  if (refusal.why === 'invalid') {
    return { kind: 'flaw', words: `${name}: ${renderFieldErrors(refusal.errors)}` }
  }
  const isSame = cache.rows().some(({ entry }) => entry.name === name && entry.src === src)
  return isSame
    ? { kind: 'known', words: name }
    : { kind: 'flaw', words: `${name}: another image has that name` }
}
