/** Decides where the followed cache has an image that a client asks for here, and what its answer to a HEAD means. */
import { blobKeyOf } from '../../../engine/catalog/rules/cache-entry.ts'
import { blobName, blobUrl, VERSION_PARAMETER } from '../../../engine/catalog/rules/blob-address.ts'
import { fileSource, fileUrl, parseFileUrl } from '../../../engine/catalog/rules/dropped-file.ts'
import { describeHead, type Headers } from '../../../kit/net/rules/http-range.ts'

/** An image as a client names it. */
export interface AskedImage {
  /** Two spellings of one address share it. */
  readonly key: string
  /** The name under which a client saves it. */
  readonly name: string
  /** The version that is asked for, by its SHA-256 in lower case; null: the current one. */
  readonly wanted: string | null
  /** Where the followed cache may have it, in the order in which it is asked. */
  readonly urls: readonly string[]
}

const SHA256 = /^[0-9a-f]{64}$/

/** Tells which version a query names; undefined: a text that is the SHA-256 of nothing. */
export function parseWanted(text: string | null): string | null | undefined {
  if (text === null) return null
  return SHA256.test(text) ? text : undefined
}

/** Names a file of the folder of the followed cache. */
export const askFile = (base: string, name: string, wanted: string | null): AskedImage => ({
  key: blobKeyOf(fileSource(name)) ?? '',
  name,
  wanted,
  urls: [withVersion(fileUrl(base, name), wanted)],
})

/**
 * Names a source; null where it is none. A file of the followed cache may be named by any of the
 * hosts that cache has: its digest says that it is the right one.
 */
export function askSource(base: string, source: string, wanted: string | null): AskedImage | null {
  const key = blobKeyOf(source)
  if (key === null) return null
  const fileName = parseFileUrl(source, URL.parse(source)?.host ?? '')
  const direct = fileName === null || wanted === null ? [] : [fileUrl(base, fileName)]
  const urls = [blobUrl(base, source), ...direct].map((url) => withVersion(url, wanted))
  return { key, name: blobName(source), wanted, urls }
}

const withVersion = (url: string, wanted: string | null) =>
  wanted === null ? url : `${url}?${VERSION_PARAMETER}=${wanted}`

/** What the followed cache has at an address. */
export type HeadAnswer =
  | {
      readonly kind: 'here'
      /** Null: it is on its way there, and will be what it will be. */
      readonly sha256: string | null
      /** Null: nobody knows yet. */
      readonly sizeBytes: number | null
    }
  | { readonly kind: 'absent' }
  | { readonly kind: 'refused'; readonly status: number }

/** Reads the answer to a HEAD; a length of 0 says nothing. */
export function parseHeadAnswer(status: number, headers: Headers): HeadAnswer {
  if (status === 404 || status === 410) return { kind: 'absent' }
  if (status !== 200) return { kind: 'refused', status }
  const { sha256 = null, sizeBytes } = describeHead(headers)
  return { kind: 'here', sha256, sizeBytes }
}

/** Counts the caches that pass a request on to each other, so that a circle of them ends. */
export const HOPS_HEADER = 'x-flasher-follows'

const MAX_HOPS = 4

/** Returns the number of caches before this one; null: these are more than anybody needs. */
export function parseHops(text: string | null): number | null {
  const hops = /^\d{1,3}$/.test(text ?? '') ? Number(text) : 0
  return hops >= MAX_HOPS ? null : hops
}
