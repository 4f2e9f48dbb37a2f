/** Records of unfinished downloads, so that the next start can resume them. */
import { z } from 'zod'

export const PartNoteSchema = z.object({
  /** Of the source, as its server named it; null: it named none, and the part is worth nothing. */
  version: z.string().nullable().catch(null),
  sizeBytes: z.number().nullable().catch(null),
  /** So many bytes are on the disk for sure. */
  durableBytes: z.int().min(0),
  /** The run of the kernel in which the rest was written. */
  bootId: z.string().nullable().catch(null),
  /** All of it is here, and has this digest; null: not yet. */
  sha256: z.string().nullable().catch(null),
  /** Whether it is to go on by itself after a restart. */
  isWanted: z.boolean().catch(false),
})

export type PartNote = Readonly<z.infer<typeof PartNoteSchema>>
