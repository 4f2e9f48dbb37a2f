/** Records of captured images until somebody has accepted them, and of the orders that were used up. */
import type { Storage } from 'unstorage'
import { z } from 'zod'
import { CaptureEndSchema, CaptureSchema } from '../../core/capture/capture-upload.ts'
import { listRecords } from '../host/records.ts'

const RecordSchema = CaptureSchema.extend({
  /** Of its token: the order, when it was issued, and the SHA-256 of its text. */
  order: z.string(),
  issuedAt: z.number(),
  tokenDigest: z.string(),
  /** So many bytes are on the disk for sure. */
  durableBytes: z.int().min(0),
  /** ISO times. */
  createdAt: z.string(),
  touchedAt: z.string(),
  /** What was verified; null: it is not complete. */
  end: CaptureEndSchema.nullable(),
})

export type CaptureRecord = Readonly<z.infer<typeof RecordSchema>>

export type CaptureRecords = ReturnType<typeof createCaptureRecords>

const CAPTURE = 'capture:'

export const createCaptureRecords = (records: Storage) => ({
  /** By their ids. */
  list: () => listRecords(records, CAPTURE, parseRecord),
  write: (id: string, record: CaptureRecord) =>
    records.setItem(`${CAPTURE}${id}`, JSON.stringify(record)),
  remove: (id: string) => records.removeItem(`${CAPTURE}${id}`),
})

const parseRecord = (stored: unknown): CaptureRecord | null =>
  RecordSchema.safeParse(stored).data ?? null

const ORDER = 'order:'
/** Longer than any token of theirs is good. */
const KEPT_MS = 7 * 24 * 3_600_000

const OrderSchema = z.object({ usedAt: z.number() })

/** Orders of which no token begins another capture. */
export async function createUsedOrders(records: Storage, now: () => Date) {
  const readTime = (stored: unknown) =>
    OrderSchema.safeParse(stored).data?.usedAt ?? now().getTime()
  const orders = new Map(await listRecords(records, ORDER, readTime))
  return {
    has: (order: string) => orders.has(order),
    async add(order: string) {
      const usedAt = now().getTime()
      orders.set(order, usedAt)
      await records.setItem(`${ORDER}${order}`, JSON.stringify({ usedAt }))
    },
    /** Forgets those whose tokens have expired. */
    async sweep() {
      for (const [order, usedAt] of orders) {
        if (Math.abs(now().getTime() - usedAt) <= KEPT_MS) continue
        orders.delete(order)
        await records.removeItem(`${ORDER}${order}`)
      }
    },
  }
}
