/** Turns a catalog from any place into the images that a wizard offers, and the entries that it rejects. */
import { isFlashable, decideArch, decideFormat, refOf } from './catalog.ts'
import type { Fault, FaultCode } from '#kit/foundation/fault.ts'
import { IMAGE_FORMATS, type ImageFormat } from '#appliance/disk-images.ts'
import { parseLocation, renderLocationRefusal } from '#kit/net/rules/image-location.ts'
import type { Manifest, ManifestFlaw, ManifestImage } from './manifest.ts'
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { isOutOfOrder, isStoredRaw } from '#engine/image/rules/format.ts'
import type { ListedImage } from '#appliance/imager-list.ts'

export interface CatalogImage {
  readonly name: string
  /** A path, an http(s) URL with credentials, an oras reference or `s3://bucket/key`. */
  readonly location: string
  readonly src: string
  /** sha256 of the canonical source; null: it has no canonical form. */
  readonly ref: string | null
  /** Null: unknown, or none that can be written. */
  readonly format: ImageFormat | null
  readonly arch: string | null
  /** Of the stored bytes, lower case; null: unknown, as for rolling tags. */
  readonly sha256: string | null
  /** Bytes as stored. */
  readonly sizeBytes: number | null
  readonly description: string | null
  /** Why it cannot be flashed; null: it can. */
  readonly obstacle: string | null
  /** The catalog says that it is an image, whatever it looks like. */
  readonly anyContent?: boolean
}

export interface LoadedCatalog {
  /** Safe to show. */
  readonly name: string
  readonly images: readonly CatalogImage[]
  readonly flaws: readonly ManifestFlaw[]
}

/** `message` names the place, and the line where one is at fault. */
export interface CatalogRefusal {
  /** `input-invalid`: no catalog, or no place for one. */
  readonly code: FaultCode
  readonly message: string
  /** Null: unknown. */
  readonly hint: string | null
}

export const refusalOf = ({ code, message, hint }: Fault): CatalogRefusal => ({
  code,
  message,
  hint: hint ?? null,
})

/**
 * Flaws in order of lines. `folder`: of a local manifest; null: it came from elsewhere, and its
 * images of this machine are refused.
 */
export function offerImages(name: string, manifest: Manifest, folder: string | null) {
  const images: CatalogImage[] = []
  const flaws = [...manifest.flaws]
  for (const image of manifest.images) {
    const location = decideLocation(image, folder)
    if (location.ok) images.push(describe(image, location.value))
    else flaws.push({ line: image.line, reason: printable(`${image.name}: ${location.refusal}`) })
  }
  return { name, images, flaws: flaws.toSorted(byLine) } satisfies LoadedCatalog
}

const byLine = (one: ManifestFlaw, other: ManifestFlaw) => (one.line ?? 0) - (other.line ?? 0)

/** Without decoding: absolute after three slashes, else below `folder`. Null: no such address. */
export function filePathOf(address: string, folder: string): string | null {
  const [, path = ''] = /^file:\/\/(.*)$/is.exec(address) ?? []
  if (path === '' || path.includes('\0')) return null
  return path.startsWith('/') ? path : `${folder === '' ? '.' : folder}/${path}`
}

const isFileAddress = (address: string) => /^file:\/\//i.test(address)

/** Null: none is offered. A built-in name would have every stick ask one host. */
export function decideDefaultCatalog(hints: {
  /** FLASHER_DEFAULT_CATALOG. */
  readonly named: string | undefined
  /** `flasher.catalog=` of the kernel command line. */
  readonly kernel: string | undefined
  /** `[releases] base_url`. */
  readonly releaseBaseUrl: string | undefined
}): string | null {
  const named = hints.named || hints.kernel
  if (named) return named
  const base = hints.releaseBaseUrl?.replace(/\/+$/, '')
  return base ? `${base}/releases/latest/download/catalog.toml` : null
}

/** A cache's catalog names a dropped file by identity and address. */
function decideLocation(image: ManifestImage, folder: string | null): Result<string, string> {
  const { src, resolved_src: resolved } = image
  const isHttp = resolved !== null && /^https?:\/\//i.test(resolved)
  if (!isFileAddress(src)) return checkAddress(isHttp && /^http/i.test(src) ? resolved : src)
  if (folder === null) {
    if (isHttp) return checkAddress(resolved)
    return refuse('only a catalog on this machine can list files of this machine')
  }
  const path = filePathOf(src, folder)
  return path === null ? refuse(`no path in ${src}`) : accept(path)
}

function checkAddress(address: string): Result<string, string> {
  const location = parseLocation(address)
  const kind = location.ok ? location.value.kind : null
  if (kind === 'http' || kind === 'oras' || kind === 's3') return accept(address)
  const isWellMeant = /^(https?|oras|s3):/i.test(address)
  if (isWellMeant && !location.ok) return refuse(renderLocationRefusal(location.refusal))
  return refuse(
    'its source is no http(s)://, oras://, s3:// or, in a local catalog, file:// address',
  )
}

function describe(image: ManifestImage, location: string): CatalogImage {
  const { name, src, resolved_src: resolved, sha256, description } = image
  const names = [name, resolved, src]
  const format = decideFormat(image.format, names)
  const ref = image.ref ?? valueOf(refOf(src))
  return {
    name,
    location,
    src,
    ref,
    format: IMAGE_FORMATS.find((known) => known === format) ?? null,
    arch: decideArch(image.arch, names),
    sha256,
    sizeBytes: image.size_bytes,
    description,
    obstacle: findObstacle(format, location),
    ...(image.any_content ? { anyContent: true } : {}),
  }
}

/** The format may show only in the file name that a registry reports later. */
function findObstacle(format: string, location: string): string | null {
  if (isFlashable({ format })) return null
  if (/^(tar|t[a-z]z\d?|tar\..*)$/.test(format)) return 'a tarball: extract it first'
  if (format !== '') return `${format} is not a format that can be flashed`
  return /^oras:/i.test(location) ? null : 'its format is unknown: the catalog must name it'
}

const valueOf = (result: Result<string, unknown>) => (result.ok ? result.value : null)

/** Picks the images that Raspberry Pi Imager can write, as its list names them (`GET /imager.json`). */
interface OfferedImage {
  readonly name: string
  readonly description: string | null
  readonly format: string | null
  readonly arch: string | null
  readonly sizeBytes: number | null
  readonly rawSizeBytes: number | null
  readonly rawSha256: string | null
  /** Of the stored bytes; null: unknown. */
  readonly sha256: string | null
  /** ISO time; null: unknown. */
  readonly addedAt: string | null
  readonly url: string
}

export const listForImager = (images: readonly OfferedImage[]): readonly ListedImage[] =>
  images.flatMap((image) => {
    const format = findWritable(image.format)
    if (format === null) return []
    const { name, description, arch, sizeBytes, addedAt } = image
    const isRaw = isStoredRaw(format)
    return [
      {
        name,
        description: description ?? '',
        url: nameEnd(image.url, format),
        rawSizeBytes: isRaw ? sizeBytes : image.rawSizeBytes,
        rawSha256: isRaw ? image.sha256 : image.rawSha256,
        sizeBytes,
        releaseDate: addedAt?.slice(0, 10) ?? null,
        arch,
      },
    ]
  })

function findWritable(format: string | null): ImageFormat | null {
  const known = IMAGE_FORMATS.find((one) => one === format)
  return known === undefined || isOutOfOrder(known) ? null : known
}

/** The Imager goes by the end of an address alone; the last part of a cache's address is free. */
function nameEnd(url: string, format: ImageFormat): string {
  const end = `.${format}`
  if (url.toLowerCase().endsWith(end)) return url
  return /\/b\/[\w-]+\/[^/]*$/.test(url) ? `${url}${end}` : url
}
