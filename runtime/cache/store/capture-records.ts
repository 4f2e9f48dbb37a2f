/** Records of captured images until somebody has accepted them, and of the orders that were used up. */
import type { Storage } from 'unstorage'
import { z } from 'zod'
import {
  CaptureEndSchema,
  CaptureNameSchema,
  CaptureSourceSchema,
} from '../../engine/capture/rules/capture-upload.ts'
import { selectRecords } from '../../kit/host/records.ts'

export const CaptureRecordSchema = z.object({
  name: CaptureNameSchema,
  source: CaptureSourceSchema,
  /** Of its token: the order, when it was issued, and the SHA-256 of its text. */
  order: z.string(),
  issuedAt: z.number(),
  tokenDigest: z.string(),
  /** So many bytes are on the disk for sure. */
  durableBytes: z.int().min(0),
  /** ISO times. */
  createdAt: z.string(),
  touchedAt: z.string(),
  /** What was announced and is being verified; null: nothing, or it was verified. */
  announced: CaptureEndSchema.nullable().catch(null),
  /** What was verified; null: it is not complete. */
  end: CaptureEndSchema.nullable(),
  /** Whether its frames were decoded for that; earlier releases did not. */
  isDecoded: z.boolean().catch(false),
})

export type CaptureRecord = Readonly<z.infer<typeof CaptureRecordSchema>>

/** Far more than there are tokens that hold at any time. */
const MAX_ORDERS = 1000

/** Orders of which no token begins another capture. */
export async function createUsedOrders(records: Storage, now: () => Date) {
  // One that is damaged was used up at some time, too.
  const OrderSchema = z.object({ usedAt: z.number() }).catch(() => ({ usedAt: now().getTime() }))
  const stored = selectRecords(records, 'order', OrderSchema)
  const listed = await stored.list()
  const byAge = listed.toSorted(([, a], [, b]) => a.usedAt - b.usedAt)
  const orders = new Set(byAge.map(([order]) => order))
  return {
    has: (order: string) => orders.has(order),
    async add(order: string) {
      const usedAt = now().getTime()
      orders.add(order)
      await stored.write(order, { usedAt })
    },
    /** Forgets by number: the time at which one was used up may be that of a wrong clock. */
    async sweep() {
      for (const order of [...orders].slice(0, -MAX_ORDERS)) {
        orders.delete(order)
        await stored.remove(order)
      }
    },
  }
}
