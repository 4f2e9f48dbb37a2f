/** Current line: the actions of operators on one machine or on many, apart from replacing its record. */
import { BOOT_MODES } from './boot-mode.ts'
import { z } from 'zod'
import {
  isForEach,
  NAME_FOR_EACH,
  nameCapture,
  CaptureNameSchema,
} from '#engine/capture/rules/order.ts'
import { fieldError, listFieldErrors, type FieldError } from '#kit/foundation/field-error.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import {
  allowDisk,
  applyUpsert,
  cancelCapture,
  flashAgain,
  orderCapture,
  refreshInventory,
} from './operator-edits.ts'
import { disarmByHand } from './disarming.ts'
import { ChannelNameSchema } from '#fleet/channel/rules/channel.ts'
import { LabelSchema } from '#fleet/machine/rules/label.ts'
import {
  LabelsSchema,
  MACHINE_FIELDS,
  MAX_LABELS,
  NameSchema,
  sortLabels,
  isSameIdentity,
  namesWith,
  type Column,
  type Machine,
} from './machine.ts'
import { MachineUpsertSchema } from './upsert.ts'
import { EntryNameSchema } from '#fleet/once/rules/boot-entry.ts'
import { cancelOnce, orderOnce } from './once.ts'

export interface MachineAction {
  readonly past: string
  readonly scope: 'machines' | 'flash'
  readonly schema: z.ZodType
  /** `machines` absent: for one. Null: valid. */
  check(parameters: unknown, machines?: number): readonly FieldError[] | null
  /** The parameters are valid. The refusal gives the reason in words. */
  apply(machine: Machine, parameters: unknown, now: string): Result<Machine, string>
  /** Why a machine cannot go along with those before it in the request; absent: any can. */
  conflicts?(): (after: Machine) => string | null
}

const asked = MachineUpsertSchema.shape
const nothing = z.strictObject({}).nullish()
const labels = z.array(LabelSchema).max(MAX_LABELS).default([])

const FieldsSchema = z.strictObject({
  bty_image_ref: asked.bty_image_ref.unwrap().optional(),
  /** The server sets the image before it is applied. */
  channel: ChannelNameSchema.optional(),
  boot_mode: z.enum(BOOT_MODES).optional(),
  target_disk_serial: asked.target_disk_serial.unwrap().optional(),
})

const IdentitySchema = z.strictObject({
  name: NameSchema.optional(),
  labels: LabelsSchema.optional(),
  /** What the machine must still have, so that nobody else's change is overwritten. */
  before: z.strictObject({ name: z.string().nullable(), labels: z.array(z.string()) }).optional(),
})

export const CaptureFieldsSchema = z.strictObject({
  name: CaptureNameSchema,
  /** Absent: the selected disk, or the only one. */
  disk_serial: asked.target_disk_serial.unwrap().default(null),
  generalize: z.boolean().default(false),
})

const OnceFieldsSchema = z.strictObject({ entry: EntryNameSchema })

type FieldAction = Column<'setBy'>[keyof Column<'setBy'>]['action']

export const ACTIONS = {
  ...actionsOfFields(),
  flash: action({
    past: 'was armed to be flashed',
    scope: 'flash',
    schema: FieldsSchema.nullish(),
    apply(machine, fields, now) {
      const edited = edit(machine, fields ?? {}, now)
      return edited.ok ? flashAgain(edited.value, now) : edited
    },
  }),
  disarm: action({
    past: 'was disarmed',
    scope: 'machines',
    schema: nothing,
    apply: (machine, _, now) => disarmByHand(machine, now),
  }),
  'boot-disk': action({
    past: 'was set to boot its disk, although a flash never reported its end',
    scope: 'machines',
    schema: nothing,
    apply: (machine, _, now) => allowDisk(machine, now),
  }),
  refresh: action({
    past: 'was set to refresh its inventory',
    scope: 'machines',
    schema: nothing,
    apply: (machine, _, now) => refreshInventory(machine, now),
  }),
  mode: action({
    past: 'has a new boot mode',
    scope: 'machines',
    schema: z.strictObject({ boot_mode: z.enum(BOOT_MODES) }),
    apply: edit,
  }),
  image: action({
    past: 'has a new image',
    scope: 'machines',
    schema: FieldsSchema.pick({ bty_image_ref: true, channel: true }).refine(
      ({ bty_image_ref, channel }) => bty_image_ref !== undefined || channel !== undefined,
      { path: ['bty_image_ref'], message: 'Field required' },
    ),
    apply: edit,
  }),
  label: action({
    past: 'was labelled',
    scope: 'machines',
    schema: z.strictObject({ add: labels, remove: labels }),
    apply(machine, { add, remove }, now) {
      const kept = machine.labels.filter((label) => !remove.includes(label))
      const next = sortLabels([...kept, ...add])
      if (next.length > MAX_LABELS) return refuse(`It would have more than ${MAX_LABELS} labels.`)
      return accept({ ...machine, labels: next, updated_at: now })
    },
  }),
  name: action({
    past: 'has a new name or labels',
    scope: 'machines',
    schema: IdentitySchema,
    checkMany: ({ name }) => (name ? fieldError(['name'], NAME_OF_ONE) : null),
    apply(machine, { name = machine.name, labels: wanted = machine.labels, before }, now) {
      if (before !== undefined && !isSameIdentity(machine, before)) return refuse(CHANGED)
      return accept({ ...machine, name: name || null, labels: sortLabels(wanted), updated_at: now })
    },
  }),
  lock: setting('was locked', nothing, { locked: true }),
  unlock: setting('was unlocked', nothing, { locked: false }),
  capture: action({
    past: 'was set to be captured',
    scope: 'flash',
    schema: CaptureFieldsSchema.extend({ name: CaptureNameSchema.default(NAME_FOR_EACH) }),
    checkMany: ({ name }) => (isForEach(name) ? null : fieldError(['name'], SAME_NAME)),
    apply(machine, fields, now) {
      const name = nameCapture(machine, fields.name)
      return name.ok ? orderCapture(machine, { ...fields, name: name.value }, now) : name
    },
    conflicts() {
      const owners = new Map<string, Mac>()
      return ({ mac, capture }) => {
        if (capture === null) return null
        const owner = owners.get(capture.name) ?? mac
        owners.set(capture.name, owner)
        return owner === mac ? null : SAME_NAME_AS_ANOTHER
      }
    },
  }),
  once: action({
    past: 'was set to boot something else once',
    scope: 'flash',
    schema: OnceFieldsSchema,
    apply: (machine, { entry }, now) => orderOnce(machine, entry, now),
  }),
  'cancel-once': action({
    past: 'is no longer set to boot something else once',
    scope: 'flash',
    schema: nothing,
    apply: (machine, _, now) => cancelOnce(machine, now),
  }),
  'cancel-capture': action({
    past: 'is no longer set to be captured',
    scope: 'flash',
    schema: nothing,
    apply: (machine, _, now) => cancelCapture(machine, now),
  }),
} as const satisfies Readonly<Record<string, MachineAction>>

const CHANGED = 'Its name or labels were changed in the meantime, so it was skipped.'
const NAME_OF_ONE = 'can be used with one machine only'

export const SAME_NAME_AS_ANOTHER =
  'Another machine would use the same image name. Choose another name.'

const SAME_NAME = 'must contain {name} or {mac}, so that each machine gets its own image'

interface ActionRow<Schema extends z.ZodType> extends Pick<
  MachineAction,
  'past' | 'scope' | 'conflicts'
> {
  readonly schema: Schema
  /** Null: valid for several machines, too. */
  checkMany?(parameters: z.output<Schema>): FieldError | null
  apply(machine: Machine, parameters: z.output<Schema>, now: string): Result<Machine, string>
}

function action<Schema extends z.ZodType>(row: ActionRow<Schema>): MachineAction {
  return {
    ...row,
    check(parameters, machines = 1) {
      const parsed = row.schema.safeParse(parameters)
      if (!parsed.success) return listFieldErrors(parsed.error)
      const error = machines > 1 ? row.checkMany?.(parsed.data) : null
      return error ? [error] : null
    },
    apply(machine, parameters, now) {
      const parsed = row.schema.safeParse(parameters)
      return parsed.success
        ? row.apply(machine, parsed.data, now)
        : refuse('The parameters are invalid.')
    },
  }
}

function actionsOfFields() {
  const actions = namesWith('setBy').map((field) => {
    const { schema, setBy } = MACHINE_FIELDS[field]
    return [setBy.action, setting(setBy.past, z.strictObject({ [field]: schema }))]
  })
  return Object.fromEntries(actions) as Readonly<Record<FieldAction, MachineAction>>
}

/** Fields as the schema has them, and as they are `fixed`. */
function setting(
  past: string,
  schema: z.ZodType<object | null | undefined>,
  fixed: Partial<Machine> = {},
): MachineAction {
  return action({
    past,
    scope: 'machines',
    schema,
    apply: (machine, fields, now) => accept({ ...machine, ...fields, ...fixed, updated_at: now }),
  })
}

/** Through the rules of a PUT, so that locks and cycles are the same. */
function edit(
  machine: Machine,
  fields: z.output<typeof FieldsSchema>,
  now: string,
): Result<Machine, string> {
  const { bty_image_ref = machine.bty_image_ref, boot_mode = machine.boot_mode } = fields
  const target_disk_serial =
    fields.target_disk_serial === undefined
      ? machine.target_disk_serial
      : fields.target_disk_serial?.trim() || null
  const { mac, labels: kept, sanboot_drive } = machine
  const upsert = { bty_image_ref, boot_mode, labels: kept, sanboot_drive, target_disk_serial }
  const edited = applyUpsert(machine, mac, upsert, now)
  return edited.ok ? edited : refuse(edited.refusal.map(({ msg }) => msg).join(' '))
}
