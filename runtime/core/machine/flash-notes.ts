/** The events that machines of every release line record: disks that were reported, and ends of a flash. */

/** The server adds subject, actor, address and time. */
export interface MachineNote {
  readonly kind: string
  readonly summary: string
  readonly details: Readonly<Record<string, unknown>> | null
}

type Details = Readonly<Record<string, unknown>>
type Subject = { readonly mac: string }

/** `details`: how many, and what else a line records of them. */
export const noteDisks = ({ mac }: Subject, details: Details & { readonly count: number }) => ({
  kind: 'machine.inventory',
  summary: `${mac} reported ${details.count} ${details.count === 1 ? 'disk' : 'disks'}`,
  details,
})

export const noteFlashed = ({ mac }: Subject, details: Details): MachineNote => ({
  kind: 'machine.flashed',
  summary: `${mac} reported that its flash is done`,
  details,
})

export const noteFlashFailed = ({ mac }: Subject, reason: string | null): MachineNote => ({
  kind: 'machine.flash_failed',
  summary: `${mac} reported that its flash failed${reason === null ? '' : `: ${reason}`}`,
  details: reason === null ? null : { reason },
})
