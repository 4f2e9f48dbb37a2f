/** The events that machines of every release line record: disks that were reported, and ends of a flash. */
import type { Inventory } from '#engine/inventory/rules/machine.ts'
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'

/** The server adds subject, actor, address and time. */
export interface MachineEvent {
  readonly kind: string
  readonly summary: string
  readonly details: Readonly<Record<string, unknown>> | null
}

type Details = Readonly<Record<string, unknown>>
type MachineSubject = { readonly mac: string }

export function describeDisks(
  { mac }: MachineSubject,
  { disks, disksLeftOut, isShortened = false, isHardwareLeftOut }: Inventory,
  details: Details = {},
): MachineEvent {
  const count = disks.length + disksLeftOut
  const kept = disksLeftOut === 0 ? '' : `, of which the first ${disks.length} were kept`
  const short = isShortened ? SHORTENED : ''
  const tree = isHardwareLeftOut ? '; its hardware tree was too large to store' : ''
  return {
    kind: 'machine.inventory',
    summary: `${mac} reported ${count} ${count === 1 ? 'disk' : 'disks'}${kept}${short}${tree}`,
    details: { count, ...(disksLeftOut === 0 ? {} : { kept: disks.length }), ...details },
  }
}

const SHORTENED =
  ': machines without an image have too many disks in total. Assign an image to keep its next report completely'

export const describeFlashed = ({ mac }: MachineSubject, details: Details): MachineEvent => ({
  kind: 'machine.flashed',
  summary: `${mac} reported that its flash is done`,
  details,
})

/** `reason` null: none was given. */
export const describeFlashFailed = (
  { mac }: MachineSubject,
  reason: string | null,
): MachineEvent => ({
  kind: 'machine.flash_failed',
  summary: `${mac} reported that its flash failed${reason === null ? '' : `: ${reason}`}`,
  details: reason === null ? null : { reason },
})

/** `replaced`: the machine got another order; `disarmed`: it has none any more. */
export type RecordedOutcome = 'flashed' | 'failed' | 'deleted' | 'disarmed' | 'replaced'

/** Decodes a row of the deployed server's machine table: its spelling of times and objects becomes ours. */
const time = z.iso.datetime({ offset: true })

export const decodeDeployedRow = (
  row: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, decode(name, value)]))

/** Its times have an offset and microseconds, and it keeps an object as text. */
function decode(name: string, value: unknown): unknown {
  if (typeof value !== 'string') return value
  if (name === 'last_known_good') return parseJson(value)
  if (!name.endsWith('_at') || !time.safeParse(value).success) return value
  return Temporal.Instant.from(value).toString({ fractionalSecondDigits: 3 })
}
