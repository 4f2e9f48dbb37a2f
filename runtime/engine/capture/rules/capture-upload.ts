/** Checks what clients and operators send about captured images, and how large these may become. */
import { z } from 'zod'
import { plainWords } from '#kit/foundation/printable.ts'
import { ImageNameSchema, MAX_UPLOAD_BYTES } from '#engine/catalog/rules/image-upload.ts'
import { MacSchema } from '#kit/net/rules/mac-schema.ts'
import { RunIdSchema } from '#engine/inventory/rules/run.ts'

/** Of one PATCH, which a client keeps in memory until the cache has it on its disk. */
export const MAX_CAPTURE_PART_BYTES = 64 * 2 ** 20
const MAX_WARNINGS = 32
const MAX_WARNING_LENGTH = 500
const ENDING = '.img.zst'

export const CaptureNameSchema = ImageNameSchema.refine(
  (name) => name.toLowerCase().endsWith(ENDING),
  `must end in ${ENDING}`,
)

/** Only descriptive: cuts what is too long. */
const words = (most: number) =>
  z
    .string()
    .transform((text) => plainWords(text.slice(0, most)))
    .nullish()
    .transform((text) => text || null)
    .catch(null)

/** Every text is the machine's own and hostile. */
export const CaptureSourceSchema = z.object({
  /** Null: a person captures. */
  mac: MacSchema.nullish().transform((mac) => mac ?? null),
  hostname: words(255),
  run: RunIdSchema.nullish()
    .transform((run) => run ?? null)
    .catch(null),
  disk: z.object({
    path: words(255),
    model: words(128),
    serial: words(256),
    size_bytes: z.int().min(1).max(MAX_UPLOAD_BYTES),
  }),
  generalized: z.boolean().default(false).catch(false),
})

export type CaptureSource = Readonly<z.output<typeof CaptureSourceSchema>>

/** The body of `POST /captures`. Unknown fields are dropped, as a newer client may send more. */
export const CaptureSchema = z.object({ name: CaptureNameSchema, source: CaptureSourceSchema })

const digest = z
  .string()
  .trim()
  .toLowerCase()
  .regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits')

/** The body of `POST /captures/{id}/finish`. */
export const CaptureEndSchema = z.object({
  bytes: z.int().min(1),
  sha256: digest,
  index_sha256: digest,
  /** Such as SSH host keys, which should not be on two machines. */
  warnings: z
    .array(z.string().transform((text) => plainWords(text.slice(0, MAX_WARNING_LENGTH))))
    .max(MAX_WARNINGS)
    .default([]),
})
export type CaptureEnd = Readonly<z.output<typeof CaptureEndSchema>>

/** The body of `POST /captures/{id}/accept`; without a name, that of the order. */
export const AcceptSchema = z.strictObject({ name: CaptureNameSchema.nullish() })

/** The body of `POST /captures/tokens`. */
export const TokenRequestSchema = z.strictObject({ name: CaptureNameSchema })

const OVERHEAD_BYTES = 64 * 2 ** 20

/** Incompressible data grows a little, and the index is added. */
export const maxBytesOf = ({ disk: { size_bytes: bytes } }: Pick<CaptureSource, 'disk'>): number =>
  bytes + Math.ceil(bytes / 64) + OVERHEAD_BYTES

/** Null: no number of bytes. */
export function parseUploadOffset(text: string | null): number | null {
  const offset = /^\d{1,16}$/.test(text ?? '') ? Number(text) : Number.NaN
  return Number.isSafeInteger(offset) ? offset : null
}
