/** Records of unfinished uploads, so that they can be resumed after a restart. */
import type { Storage } from 'unstorage'
import { z } from 'zod'
import { listRecords } from '../host/records.ts'

const UploadRecordSchema = z.object({
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
})

export type UploadRecord = Readonly<z.infer<typeof UploadRecordSchema>>

export type UploadRecords = ReturnType<typeof createUploadRecords>

const PREFIX = 'upload:'

export const createUploadRecords = (records: Storage) => ({
  /** By their ids. */
  list: () =>
    listRecords<UploadRecord>(
      records,
      PREFIX,
      (stored) => UploadRecordSchema.safeParse(stored).data ?? null,
    ),
  write: (id: string, record: UploadRecord) =>
    records.setItem(`${PREFIX}${id}`, JSON.stringify(record)),
  remove: (id: string) => records.removeItem(`${PREFIX}${id}`),
})
