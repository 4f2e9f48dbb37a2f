/** Checks what a client announces before it uploads an image file into the cache. */
import { z } from 'zod'
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import { isLoopback } from './cache-entry.ts'
import { decodePart } from '#kit/net/rules/image-location.ts'
import { detectFormat, isTarballName } from '#engine/image/rules/format.ts'

export type UploadRequest = Readonly<z.infer<typeof UploadSchema>>

/** 64 TiB: larger than any disk that is flashed. */
export const MAX_UPLOAD_BYTES = 2 ** 46
/** Sent at a time by the upload page; the beginning of a part that is cut off is kept. */
export const MAX_PART_BYTES = 8 * 2 ** 20
/** What file systems take. */
const MAX_NAME_BYTES = 255

export const ImageNameSchema = z.string().superRefine((name, context) => {
  const message = whyNoName(name)
  if (message !== null) context.addIssue({ code: 'custom', message })
})

export const UploadSchema = z.strictObject({
  name: ImageNameSchema,
  size_bytes: z.int().min(1, 'must not be empty').max(MAX_UPLOAD_BYTES),
  sha256: z
    .string()
    .trim()
    .toLowerCase()
    .regex(/^([0-9a-f]{64})?$/, 'must be 64 hexadecimal digits')
    .nullish()
    .transform((digest) => digest || null),
  /** Of the client's file, such as its time: parts of two versions are never joined. */
  version: z
    .string()
    .max(100)
    .nullish()
    .transform((version) => version ?? null),
})

/** Null: the name is fine. */
function whyNoName(name: string): string | null {
  if (/^\.|[/\\]/.test(name)) return 'must be a file name without folders or a leading dot'
  if (Buffer.byteLength(name) > MAX_NAME_BYTES)
    return `must be at most ${MAX_NAME_BYTES} bytes long`
  if (/\p{Bidi_Control}/u.test(name)) return 'must not contain characters that reverse text'
  const reason = whyNotAnImage(name)
  return reason === '' ? `must end in ${ENDINGS}` : reason
}

const ENDINGS = IMAGE_FORMATS.map((format) => `.${format}`)
  .toSorted()
  .join(', ')
  .replace(/, (?=[^,]*$)/, ' or ')

// Decides which files that people put into the cache's folder are images, and at which addresses they are.

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

// A machine of which an image was ordered, with its labels: they decide who sees that image at the cache.

export interface CapturedMachine {
  readonly mac: string
  readonly labels: readonly string[]
}

export const MAX_CAPTURED = 2000
