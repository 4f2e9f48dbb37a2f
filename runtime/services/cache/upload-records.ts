/** Records of unfinished uploads, so that they can be resumed after a restart. */
import { z } from 'zod'

export const UploadRecordSchema = z.object({
  name: z.string(),
  sizeBytes: z.int().min(1),
  /** Lower case; null: whatever comes is right. */
  sha256: z.string().nullable().catch(null),
  /** As the client named it. */
  version: z.string().nullable().catch(null),
  /** So many bytes are on the disk for sure. */
  durableBytes: z.int().min(0),
  /** ISO time of the last byte. */
  touchedAt: z.string(),
  /** All of it is here, and it is being verified. */
  isWhole: z.boolean().catch(false),
  /** The digest of what was verified, and is in the folder or on its way there. */
  verified: z.string().nullable().catch(null),
})

export type UploadRecord = Readonly<z.infer<typeof UploadRecordSchema>>
