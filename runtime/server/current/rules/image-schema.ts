/** Current line: schemas of the catalog's responses for the API document ("ImageEntry", "Catalog manifest"). */
import { z } from 'zod'

const digest = z.string().regex(/^[0-9a-f]{64}$/)
const ref = digest.describe('sha256 of the canonical source: the bty_image_ref of a machine')

const ImageEntrySchema = z.object({
  name: z.string(),
  format: z.string().describe('img.zst, qcow2…; empty: not known'),
  size_bytes: z.int().min(0).describe('0: not known'),
  url: z.string().describe('The source'),
  ref,
  sha_short: z
    .string()
    .regex(/^[0-9a-f]{12}$/)
    .nullable(),
  arch: z.string().nullable(),
})

export const ImagesSchema = z.array(ImageEntrySchema)

export const ManifestSchema = z.object({
  version: z.literal(1),
  images: z.array(
    z.object({
      name: z.string(),
      src: z.string().describe('Where a machine gets the bytes: the cache, or the source'),
      ref: ref.optional().describe('Only where src itself makes it'),
      bty_image_ref: ref,
      sha256: digest.optional(),
      format: z.string().optional(),
      size_bytes: z.int().min(0).optional(),
      arch: z.string().optional(),
      description: z.string().optional(),
    }),
  ),
})
