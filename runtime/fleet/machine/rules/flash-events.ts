/** The events that machines of every release line record: disks that were reported, and ends of a flash. */
import type { Inventory } from '../../../engine/inventory/rules/machine.ts'

/** The server adds subject, actor, address and time. */
export interface MachineEvent {
  readonly kind: string
  readonly summary: string
  readonly details: Readonly<Record<string, unknown>> | null
}

type Details = Readonly<Record<string, unknown>>
type MachineSubject = { readonly mac: string }

/**
 * Makes the event for disks that a machine reported. `details` holds what else a line records of
 * them.
 */
export function describeDisks(
  { mac }: MachineSubject,
  { disks, disksLeftOut, isShortened = false, isHardwareLeftOut }: Inventory,
  details: Details = {},
): MachineEvent {
  const count = disks.length + disksLeftOut
  const kept = disksLeftOut === 0 ? '' : `, of which the first ${disks.length} were kept`
  const short = isShortened ? SHORTENED : ''
  const tree = isHardwareLeftOut ? '; its hardware tree was left out: it is too large' : ''
  return {
    kind: 'machine.inventory',
    summary: `${mac} reported ${count} ${count === 1 ? 'disk' : 'disks'}${kept}${short}${tree}`,
    details: { count, ...(disksLeftOut === 0 ? {} : { kept: disks.length }), ...details },
  }
}

const SHORTENED =
  ': machines without an image have too many disks together. Give it an image, and its next report is kept whole'

/** Makes the event for a machine that reported the end of its flash. */
export const describeFlashed = ({ mac }: MachineSubject, details: Details): MachineEvent => ({
  kind: 'machine.flashed',
  summary: `${mac} reported that its flash is done`,
  details,
})

/**
 * Makes the event for a machine that reported that its flash failed; `reason` is null where it gave
 * none.
 */
export const describeFlashFailed = (
  { mac }: MachineSubject,
  reason: string | null,
): MachineEvent => ({
  kind: 'machine.flash_failed',
  summary: `${mac} reported that its flash failed${reason === null ? '' : `: ${reason}`}`,
  details: reason === null ? null : { reason },
})
