/** An operator's order to capture a disk of a machine, and how far it is (docs/decisions/0022). */
import { z } from 'zod'
import { epochOf } from '#kit/foundation/instants.ts'
import { PickedDiskSchema } from '#engine/inventory/rules/disk-pick.ts'
import { renderHyphens, type Mac } from '#kit/net/rules/mac.ts'
import { CaptureNameSchema } from './capture-upload.ts'

const RESULTS = ['done', 'failed', 'cancelled'] as const
export type CaptureResult = (typeof RESULTS)[number]

const time = z.iso.datetime({ offset: true })

export const CaptureOrderSchema = z.object({
  name: CaptureNameSchema,
  /** As `target_disk_serial` spells it. */
  disk_serial: z.string().min(1),
  /** What the disk was when picked by another name than its serial number. */
  disk_seen: PickedDiskSchema.optional(),
  generalize: z.boolean(),
  ordered_at: time,
  /** Live boots that were offered for it and did not end it. */
  offers: z.int().min(0),
  /** When its newest plan was made; null: never. */
  planned_at: time.nullable(),
  /** Null: still to be done. */
  result: z.enum(RESULTS).nullable(),
  ended_at: time.nullable(),
  reason: z.string().nullable(),
})
export type CaptureOrder = Readonly<z.output<typeof CaptureOrderSchema>>

type OrderedCapture = Pick<CaptureOrder, 'name' | 'disk_serial' | 'disk_seen' | 'generalize'>

/** `now`: ISO 8601. */
export const createOrder = (ordered: OrderedCapture, now: string): CaptureOrder => ({
  ...ordered,
  ordered_at: now,
  offers: 0,
  planned_at: null,
  result: null,
  ended_at: null,
  reason: null,
})

export const isPending = (order: CaptureOrder | null): order is CaptureOrder =>
  order !== null && order.result === null

/** `now`: ISO 8601. */
export const endOrder = (
  order: CaptureOrder,
  result: CaptureResult,
  reason: string | null,
  now: string,
): CaptureOrder => ({ ...order, result, reason, ended_at: now })

const AGAIN_MS = 1000

/** The upload token is issued then, later than any before, whatever the clock says. */
export function planOrder(order: CaptureOrder, now: string): CaptureOrder {
  if (order.planned_at === null) return { ...order, planned_at: now }
  const [last, present] = [epochOf(order.planned_at), epochOf(now)]
  if (present >= last && present - last < AGAIN_MS) return order
  const next = Temporal.Instant.fromEpochMilliseconds(Math.max(present, last + 1))
  return { ...order, planned_at: next.toString({ fractionalSecondDigits: 3 }) }
}

/** Tokens mean this order of this machine by this name. */
export const nameOrder = (mac: Mac, { ordered_at }: CaptureOrder): string =>
  `${renderHyphens(mac)}-${epochOf(ordered_at).toString(36)}`
