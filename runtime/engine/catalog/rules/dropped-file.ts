/** Decides which files that people put into the cache's folder are images, and at which addresses they are. */
import { z } from 'zod'
import { isLoopback } from './blob-address.ts'
import { decodePart } from '#kit/net/rules/image-location.ts'
import { detectFormat, isTarballName } from '#engine/image/rules/format.ts'

/** Another size, time or inode is another version. */
export const FileStampSchema = z.object({
  name: z.string(),
  sizeBytes: z.number(),
  /** Nanoseconds since the epoch, in decimal. */
  mtimeNs: z.string(),
  ino: z.string(),
})
export type FileStamp = Readonly<z.infer<typeof FileStampSchema>>

export const isSameStamp = (a: FileStamp, b: FileStamp): boolean =>
  a.name === b.name && a.sizeBytes === b.sizeBytes && a.mtimeNs === b.mtimeNs && a.ino === b.ino

/** A clause; null: an image by its name; empty: it does not look like one. */
export function whyNotAnImage(name: string): string | null {
  if (/[\p{Cc}\p{Cs}\ufffd]/u.test(name)) return 'its name holds characters that no address can'
  if (detectFormat(name) !== null) return null
  return isTarballName(name) ? 'a tarball cannot be flashed: extract it first' : ''
}

/** `file:///<name>`; escapes what would end a path, or is an escape. */
export const fileSource = (name: string): string =>
  `file:///${name.replaceAll(/[%?#\\]/g, encodeURIComponent)}`

/** Null: no `file:///<name>`. */
export function parseFileSource(source: string): string | null {
  const [, spelled] = /^file:\/\/\/([^/]+)$/i.exec(source) ?? []
  return spelled === undefined ? null : decodePart(spelled)
}

export const fileUrl = (base: string, name: string): string =>
  `${base}/files/${encodeURIComponent(name)}`

/** In `…/files/<name>` on `ownHost` (with port) or on this machine; null: another address. */
export function parseFileUrl(source: string, ownHost: string): string | null {
  const url = /^https?:/i.test(source) ? URL.parse(source) : null
  if (url === null) return null
  const isOwn = url.host === ownHost.toLowerCase() || isLoopback(url.hostname)
  const [, spelled] = /^\/files\/([^/]+)$/.exec(url.pathname) ?? []
  return isOwn && spelled !== undefined ? decodePart(spelled) : null
}
