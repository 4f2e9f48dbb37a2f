/** What an image starts from, as a cache keeps it and a server reads it. */
import { z } from 'zod'
import { PROCESSORS } from '#engine/inventory/rules/firmware-facts.ts'
import type { ImageBoot } from './boot-facts.ts'

const Digest = z.string().regex(/^[0-9a-f]{64}$/)
const Processor = z.enum(PROCESSORS)

const SigningChainSchema = z.object({
  certificates: z
    .array(z.object({ fingerprint: Digest, contentFingerprint: Digest, name: z.string().max(100) }))
    .max(16),
  issuer: z.string().max(300),
})

const EfiProgramSchema = z.object({
  processor: Processor.nullable(),
  digest: Digest,
  signatures: z.array(SigningChainSchema).max(8),
  sbat: z.record(z.string().max(64), z.int().min(0)).nullable(),
})

const ImageBootSchema: z.ZodType<ImageBoot> = z.object({
  bios: z.boolean().nullable(),
  programs: z.array(EfiProgramSchema).max(256),
  unread: z.array(Processor).max(256),
  hasSystemPartition: z.boolean(),
  isSearched: z.boolean(),
  isDisc: z.boolean(),
})

/** Null: it cannot be known. */
export const BootRecordSchema = z.object({ boot: ImageBootSchema.nullable() })
export type BootRecord = z.infer<typeof BootRecordSchema>
