/** What is known of each unfinished download, so that the next start can go on with it. */
import type { Storage } from 'unstorage'
import { z } from 'zod'

const Text = z.string().nullable().catch(null)
const PartNote = z.object({
  /** Of the source, as its server gave it; null: it gave none, and the part is worth nothing. */
  version: Text,
  sizeBytes: z.number().nullable().catch(null),
  /** So many bytes are on the disk for sure. */
  durableBytes: z.int().nonnegative(),
  /** The run of the kernel in which the rest was written. */
  bootId: Text,
  /** Whether it is to go on by itself after a restart. */
  isWanted: z.boolean().catch(false),
})
export type PartNote = Readonly<z.infer<typeof PartNote>>

export interface PartNotes {
  read(key: string): Promise<PartNote | null>
  write(key: string, note: PartNote): Promise<void>
  remove(key: string): Promise<void>
}

export function createPartNotes(records: Storage): PartNotes {
  return {
    read: async (key) => PartNote.safeParse(await records.getItem(`part:${key}`)).data ?? null,
    write: (key, note) => records.setItem(`part:${key}`, JSON.stringify(note)),
    remove: (key) => records.removeItem(`part:${key}`),
  }
}
