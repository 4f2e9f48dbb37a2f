/** Earlier line: the machine record ("Machine"), what of it is never on the wire, and its order to be flashed. */
import type { Mac } from '#kit/net/rules/mac.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import type { RecordedOutcome } from '#fleet/machine/rules/flash-outcome.ts'
import type { MachineProvisioning } from '#fleet/workflow/rules/provisioning.ts'
import type { Armer } from '#engine/inventory/rules/run.ts'

export const BOOT_POLICIES = ['local', 'flash', 'tui'] as const
export type BootPolicy = (typeof BOOT_POLICIES)[number]

export const WORKFLOW_STATUSES = ['running', 'success', 'failed'] as const
export type WorkflowStatus = (typeof WORKFLOW_STATUSES)[number]

interface Failure {
  readonly at: string
  readonly reason: string | null
}

export interface Machine extends MachineBase {
  /** A file in the image folder; null: discovered, nothing is assigned. */
  readonly image: string | null
  readonly provisioning_mode: MachineProvisioning
  readonly hostname: string | null
  readonly cijoe_workflow_ref: string | null
  /** Image, provisioning and time of the last workflow run that succeeded. */
  readonly last_known_good: Readonly<Record<string, unknown>> | null
  readonly boot_policy: BootPolicy
  readonly last_workflow_run_at: string | null
  readonly last_workflow_status: WorkflowStatus | null
  readonly last_workflow_output_path: string | null
  /** Internal from here on. The cycle begins with each order and each `done` (ISO time). */
  readonly armed_at: string
  readonly armed_by: Armer | null
  /** Of the newest flash in this cycle; null: none. */
  readonly offered_at: string | null
  readonly failure: Failure | null
  /** The flash whose end is still to come; null: none. */
  readonly sent: SentFlash | null
  /** Since a workflow run began: the boot from its own disk, with its address then. */
  readonly disk_boot: DiskBoot | null
  /** When an older state was restored, which arms nothing; null: never. */
  readonly disarmed_at: string | null
}

interface SentFlash {
  readonly image: string
  readonly at: string
  readonly armed_by: Armer | null
}

interface DiskBoot {
  readonly at: string
  readonly ip: string
}

/** The fields of "Machine" in the specified order. */
const WIRE_FIELDS = [
  'mac',
  'image',
  'provisioning_mode',
  'hostname',
  'cijoe_workflow_ref',
  'last_known_good',
  'discovered_at',
  'last_seen_at',
  'last_seen_ip',
  'boot_policy',
  'last_flashed_at',
  'last_workflow_run_at',
  'last_workflow_status',
  'last_workflow_output_path',
  'created_at',
  'updated_at',
] as const satisfies readonly (keyof Machine)[]

/** "Machine (server responses)". */
export const toWire = (machine: Machine): Readonly<Record<string, unknown>> =>
  Object.fromEntries(WIRE_FIELDS.map((field) => [field, machine[field]]))

export const createMachine = (mac: Mac, policy: BootPolicy, now: string): Machine => ({
  mac,
  image: null,
  provisioning_mode: 'none',
  hostname: null,
  cijoe_workflow_ref: null,
  last_known_good: null,
  discovered_at: null,
  last_seen_at: null,
  last_seen_ip: null,
  boot_policy: policy,
  last_flashed_at: null,
  last_workflow_run_at: null,
  last_workflow_status: null,
  last_workflow_output_path: null,
  created_at: now,
  updated_at: now,
  armed_at: now,
  armed_by: null,
  offered_at: null,
  failure: null,
  sent: null,
  disk_boot: null,
  disarmed_at: null,
})

export const isUnassigned = ({ image }: Machine): boolean => image === null

export const isArmed = ({ boot_policy, image, disarmed_at }: Machine): boolean =>
  boot_policy === 'flash' && image !== null && disarmed_at === null

/** An open flash before an older state was restored: the disk may be half written. */
export const isHeldBack = ({ disarmed_at, offered_at }: Machine): boolean =>
  disarmed_at !== null && offered_at !== null

/** Policy and image stay; setting the policy again arms it. Without an order, the same record. */
export const disarm = (machine: Machine, now: string): Machine =>
  isArmed(machine) ? { ...machine, disarmed_at: now, updated_at: now } : machine

/**
 * Whose disk may be half written by what is known now. `restored` null: that state has no such
 * machine. Null: nothing is to be stored.
 */
export function keepHeldBack(
  restored: Machine | null,
  present: Machine,
  now: string,
): Machine | null {
  const { offered_at } = present
  if (offered_at === null || !(isArmed(present) || isHeldBack(present))) return null
  if (restored !== null && isHeldBack(restored)) return null
  const held = restored ?? present
  return { ...held, offered_at, disarmed_at: held.disarmed_at ?? now, updated_at: now }
}

export const nameMachine = ({ hostname }: Machine): string | null => hostname

/** Null: the order is open. */
export function decideOutcome(machine: Machine, order: string): RecordedOutcome | null {
  const { armed_at, last_flashed_at, failure } = machine
  if (armed_at === order) {
    if (!isArmed(machine)) return 'disarmed'
    return failure !== null && machine.offered_at !== null ? 'failed' : null
  }
  // The end of a flash begins the next cycle.
  if (armed_at === last_flashed_at) return 'flashed'
  return isArmed(machine) ? 'replaced' : 'disarmed'
}

/** To be flashed at each boot, where it was not before, or with another image. */
export const decideArming = (before: Machine | null, after: Machine): boolean =>
  after.boot_policy === 'flash' &&
  after.image !== null &&
  !(before !== null && isArmed(before) && before.image === after.image)
