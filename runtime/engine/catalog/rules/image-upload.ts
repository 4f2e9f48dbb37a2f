/** Checks what a client announces before it uploads an image file into the cache. */
import { z } from 'zod'
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import { whyNotAnImage } from './dropped-file.ts'

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
