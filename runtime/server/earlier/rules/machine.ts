/** Earlier line: the machine record ("Machine"), what of it is never on the wire, and its order to be flashed. */
import { type Mac, MacSchema } from '#kit/net/rules/mac.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import { type RecordedOutcome, decodeDeployedRow } from '#fleet/machine/rules/flash-events.ts'
import {
  MACHINE_PROVISIONING,
  type MachineProvisioning,
} from '#fleet/workflow/rules/online-workflow.ts'
import type { Armer } from '#engine/inventory/rules/run.ts'
import { z } from 'zod'
import { isBareFileName } from '#kit/foundation/file-name.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

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

// Earlier line: the body of `PUT /machines/{mac}` ("MachineUpsert"), and what it makes of a record.

/** Forms and clients send empty texts for none. */
const maybe = (text: z.ZodType<string, string>) =>
  z
    .string()
    .transform((given) => given.trim() || null)
    .pipe(text.nullable())
    .nullable()
    .default(null)

/** Drops unknown keys, as this line always did. Absent fields have defaults, whatever was there. */
export const MachineUpsertSchema = z.object({
  image: maybe(z.string().refine(isBareFileName, 'the name of a file in the image folder')),
  provisioning_mode: z.enum(MACHINE_PROVISIONING).default('none'),
  hostname: maybe(
    z
      .string()
      .max(253)
      .regex(/^[a-z0-9][\w.:-]*$/i, 'a host name or an address'),
  ),
  // An argument of a program: never an option.
  cijoe_workflow_ref: maybe(
    z
      .string()
      .max(1024)
      .regex(/^[^-\p{Cc}][^\p{Cc}]*$/u, 'the path of a workflow on the server'),
  ),
  boot_policy: z.enum(BOOT_POLICIES).default('local'),
})

type MachineUpsert = Readonly<z.infer<typeof MachineUpsertSchema>>

/** `before` null: a new machine. */
export function applyUpsert(
  before: Machine | null,
  mac: Mac,
  upsert: MachineUpsert,
  by: Armer,
): Machine {
  const machine = before ?? createMachine(mac, upsert.boot_policy, by.at)
  const next = { ...machine, ...upsert, updated_at: by.at }
  return before !== null && isSameIntent(machine, next) ? next : arm(next, by)
}

/** A new cycle makes the tokens of the one before void. */
const arm = (machine: Machine, by: Armer): Machine => ({
  ...machine,
  armed_at: by.at,
  armed_by: by,
  offered_at: null,
  failure: null,
  disarmed_at: null,
})

const isSameIntent = (before: Machine, after: Machine): boolean =>
  before.boot_policy === after.boot_policy &&
  before.image === after.image &&
  before.provisioning_mode === after.provisioning_mode

const time = z.iso.datetime({ offset: true })
const maybeTime = time.nullable().catch(null)
const maybeText = z.string().nullable().catch(null)

const ArmerSchema = z
  .object({ actor: z.string(), ip: z.string().nullable(), at: time })
  .nullable()
  .catch(null)

/** What must be right is the MAC, and the policy; all else has a value that does no harm. */
const RecordSchema = z.object({
  mac: MacSchema,
  boot_policy: z.enum(BOOT_POLICIES),
  image: maybeText,
  provisioning_mode: z.enum(MACHINE_PROVISIONING).catch('none'),
  hostname: maybeText,
  cijoe_workflow_ref: maybeText,
  last_known_good: z.record(z.string(), z.unknown()).nullable().catch(null),
  discovered_at: maybeTime,
  last_seen_at: maybeTime,
  last_seen_ip: maybeText,
  last_flashed_at: maybeTime,
  last_workflow_run_at: maybeTime,
  last_workflow_status: z.enum(WORKFLOW_STATUSES).nullable().catch(null),
  last_workflow_output_path: maybeText,
  created_at: time,
  updated_at: time,
  armed_at: maybeTime,
  armed_by: ArmerSchema,
  offered_at: maybeTime,
  failure: z.object({ at: time, reason: z.string().nullable() }).nullable().catch(null),
  disk_boot: z.object({ at: time, ip: z.string() }).nullable().catch(null),
  disarmed_at: maybeTime,
  sent: z.object({ image: z.string(), at: time, armed_by: ArmerSchema }).nullable().catch(null),
})

export function parseRecord(stored: unknown): Machine | null {
  const parsed = RecordSchema.safeParse(stored)
  if (!parsed.success) return null
  const { armed_at, ...fields } = parsed.data
  return {
    ...createMachine(fields.mac, fields.boot_policy, fields.created_at),
    ...fields,
    armed_at: armed_at ?? fields.updated_at,
  }
}

/** Null where it cannot be a machine. */
export const parseDeployedRow = (row: Readonly<Record<string, unknown>>): Machine | null =>
  parseRecord(decodeDeployedRow(row))

export const NoParameters = z.strictObject({}).nullish()

export const POLICY_PASTS: Readonly<Record<BootPolicy, string>> = {
  local: 'was set to boot its own disk',
  flash: 'was set to be flashed at every network boot',
  tui: 'was set to ask at the machine',
}

/** The same policy again begins a new cycle. */
export const applyPolicy = (
  machine: Machine,
  policy: BootPolicy,
  by: Armer,
): Result<Machine, string> =>
  policy === 'flash' && machine.image === null
    ? refuse('No image is assigned.')
    : accept(arm({ ...machine, boot_policy: policy, updated_at: by.at }, by))
