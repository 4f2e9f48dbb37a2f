/** The orders of captured images that were used up: no token of theirs begins another capture. */
import type { Storage } from 'unstorage'
import { z } from 'zod'
import { selectRecords } from '#kit/host/records.ts'

/** Far more than tokens that are valid at a time. */
const MAX_ORDERS = 1000

export type UsedOrders = Awaited<ReturnType<typeof createUsedOrders>>

export async function createUsedOrders(records: Storage, now: () => Date) {
  // A damaged record still means that the order was used up.
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
    /** By number, as the recorded times may be of a wrong clock. */
    async sweep() {
      for (const order of [...orders].slice(0, -MAX_ORDERS)) {
        orders.delete(order)
        await stored.remove(order)
      }
    },
  }
}
