/** Records of captured images until somebody has accepted them, and of the orders that were used up. */
import type { Storage } from 'unstorage'
import { z } from 'zod'
import {
  CaptureEndSchema,
  parseCaptureRequest,
  type CaptureEnd,
  type CaptureSource,
} from '../../core/capture/capture-upload.ts'

export interface CaptureRecord {
  readonly name: string
  readonly source: CaptureSource
  /** Of its token: the order, when it was issued, and the SHA-256 of its text. */
  readonly order: string
  readonly issuedAt: number
  readonly tokenDigest: string
  /** So many bytes are on the disk for sure. */
  readonly durableBytes: number
  /** ISO times. */
  readonly createdAt: string
  readonly touchedAt: string
  /** What was verified; null: it is not complete. */
  readonly end: CaptureEnd | null
}

const RecordSchema = z.object({
  name: z.string(),
  source: z.unknown(),
  order: z.string(),
  issuedAt: z.number(),
  tokenDigest: z.string(),
  durableBytes: z.int().min(0),
  createdAt: z.string(),
  touchedAt: z.string(),
  end: CaptureEndSchema.nullable(),
})

export type CaptureRecords = ReturnType<typeof createCaptureRecords>

const CAPTURE = 'capture:'

export const createCaptureRecords = (records: Storage) => ({
  async list(): Promise<readonly (readonly [id: string, record: CaptureRecord])[]> {
    const keys = (await records.getKeys()).filter((key) => key.startsWith(CAPTURE))
    const found = await Promise.all(
      keys.map(async (key) => {
        const record = parseRecord(await records.getItem(key))
        return record === null ? [] : [[key.slice(CAPTURE.length), record] as const]
      }),
    )
    return found.flat()
  },
  write: (id: string, record: CaptureRecord) =>
    records.setItem(`${CAPTURE}${id}`, JSON.stringify(record)),
  remove: (id: string) => records.removeItem(`${CAPTURE}${id}`),
})

function parseRecord(stored: unknown): CaptureRecord | null {
  const record = RecordSchema.safeParse(stored)
  const request = record.success ? parseCaptureRequest(record.data) : null
  return record.success && request?.ok === true ? { ...record.data, ...request.value } : null
}

const ORDER = 'order:'
/** Longer than any token of theirs is good. */
const KEPT_MS = 7 * 24 * 3_600_000

const OrderSchema = z.object({ usedAt: z.number() })

/** Orders of which no token begins another capture. */
export async function createUsedOrders(records: Storage, now: () => Date) {
  const orders = new Map<string, number>()
  for (const key of await records.getKeys()) {
    if (!key.startsWith(ORDER)) continue
    const found = OrderSchema.safeParse(await records.getItem(key)).data
    orders.set(key.slice(ORDER.length), found?.usedAt ?? now().getTime())
  }
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
