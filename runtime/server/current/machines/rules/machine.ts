/** Current line: the machine record ("Machine"): a table of its fields, and the cycle, which separates intent from state. */
import { FirmwareSchema } from '#engine/inventory/rules/inventory.ts'
import { CaptureOrderSchema } from '#engine/capture/rules/order.ts'
import { TemplateNameSchema } from '#engine/first-boot/rules/template.ts'
import { InventoryDiskSchema, MAX_SERIAL_CHARACTERS } from '#engine/inventory/rules/inventory.ts'
import {
  PickedDiskSchema,
  type DiskPick,
  type InventoryDisk,
} from '#engine/inventory/rules/machine.ts'
import { RunSchema } from '#engine/inventory/rules/run.ts'
import { SERIAL_CONSOLES } from '#fleet/boot/rules/boot-decision.ts'
import { ChannelNameSchema } from '#fleet/channel/rules/channel.ts'
import { OnceOrderSchema } from '#fleet/once/rules/once-order.ts'
import { MacSchema, type Mac } from '#kit/net/rules/mac.ts'
import { z } from 'zod'
import { BOOT_MODES, DEFAULT_MODE, isFlashMode, type BootMode } from './boot-mode.ts'
import { LabelSchema, nameCharacter } from '#fleet/machine/rules/label.ts'
import { printable } from '#kit/foundation/printable.ts'

// What people call machines ("Limits").

export const MAX_LABELS = 16

/** At most 16, counted before duplicates are dropped. */
export const LabelsSchema: z.ZodType<readonly string[]> = z
  .array(LabelSchema)
  .max(MAX_LABELS, `a machine has at most ${MAX_LABELS} labels`)

/** In the order of code points. */
export const sortLabels = (labels: readonly string[]): readonly string[] =>
  [...new Set(labels)].toSorted()

/** Drops blanks, empty labels, and duplicates whatever their case. */
export function splitLabels(text: string): readonly string[] {
  const found = new Map<string, string>()
  for (const part of text.split(',')) {
    const label = part.trim()
    const key = label.toLowerCase()
    if (label !== '' && !found.has(key)) found.set(key, label)
  }
  return [...found.values()]
}

export const MAX_NAME_CHARACTERS = 64

/** Composed and without blanks around it, so that equal names are equal texts. */
const compose = (text: string): string => text.normalize('NFC').trim()

/** A joiner between emojis, or letters of scripts that join; elsewhere it only imitates a name. */
const JOINER =
  /(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})|(?<=[\p{Script=Arabic}\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca])\u200d/gu

/** Null and the empty name clear it. The limit counts characters, not UTF-16 units. */
export const NameSchema = z
  .string()
  .overwrite(compose)
  .superRefine((name, context) => {
    const hidden = [...name.replaceAll(JOINER, '')].find(
      (character) => printable(character) !== character,
    )
    if (hidden !== undefined) {
      context.addIssue(`a name cannot hold ${nameCharacter(hidden)}, which is invisible`)
    }
    const length = [...name].length
    if (length > MAX_NAME_CHARACTERS) {
      context.addIssue(`a name has at most ${MAX_NAME_CHARACTERS} characters, not ${length}`)
    }
  })
  .nullable()
  .meta({ maxLength: MAX_NAME_CHARACTERS })

/** DHCP's name is the machine's own word: only a valid host name is believed. */
export const parseHostname = (text: string): string | null =>
  /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/.test(text) ? text : null

// The cycle: the machine's way through one flash or inventory; never on the wire. A new intent starts a new one.

/** `restored`: the state of the server was replaced by an older one; `expired`: `[pxe] armed_hours`. */
const DISARM_CAUSES = ['restored', 'operator', 'expired'] as const
export type DisarmCause = (typeof DISARM_CAUSES)[number]

const time = z.iso.datetime({ offset: true })
const maybeTime = time.nullable()
const lenientTime = maybeTime.catch(null)
const text = z.string().nullable()
const flag = z.boolean()

const CycleSchema = z.object({
  started_at: time,
  /** Live boots that were offered in this cycle and did not finish. */
  offers: z.int().min(0),
  /** When the newest flashing live boot was offered; null: none was. */
  offered_at: lenientTime,
  /** Whether a flash plan was handed out: from then on the disk may be half written. */
  planned: flag,
  /** Whether a flash of the cycle before was under way when this one started. */
  carried: flag.catch(false),
  /** The cycle whose flash may still be under way: news of it are not news of this cycle. */
  before: z.object({ started_at: time, finished_at: maybeTime }).nullable().catch(null),
  /** When done arrived or, in inventory mode, the disks. */
  finished_at: maybeTime,
  /** Something ended, and the machine has not booted its disk since. */
  owes_disk_boot: flag.catch(false),
  loop_suspected_at: lenientTime,
  failure: z.object({ at: time, reason: text }).nullable().catch(null),
  /** Since when it waits for its turn (ISO); null: it does not wait. */
  queued_at: lenientTime,
  /** When an operator allowed its disk after a flash without an end; null: nobody did. */
  disk_allowed_at: lenientTime,
  /** When its order was taken away, which holds a half-written disk back; null: it was not. */
  disarmed_at: lenientTime,
  disarmed_by: z.enum(DISARM_CAUSES).nullable().catch(null),
  batch: z.string().max(40).nullable().catch(null),
  /** When its batch was paused: it boots its disk unless it has a plan; null: not paused. */
  paused_at: lenientTime,
  /** When its order ends if no boot was offered by then (ISO); null: never. */
  expires_at: lenientTime,
  /** When its machine first asked or reported a run in this cycle; null: never. */
  begun_at: maybeTime,
})
export type Cycle = Readonly<z.output<typeof CycleSchema>>

const NEW_CYCLE: Cycle = CycleSchema.parse({
  started_at: '1970-01-01T00:00:00Z',
  offers: 0,
  planned: false,
  finished_at: null,
  begun_at: null,
})

export const createCycle = (now: string): Cycle => ({ ...NEW_CYCLE, started_at: now })

// The fields. What is stored, sent, taken and recorded of a machine follows from this table.

export interface FieldRow {
  readonly schema: z.ZodType
  readonly stored: z.ZodType
  /** In a new record. */
  readonly initial?: unknown
  /** In answers of the API, by its schema. */
  readonly sent?: true | z.ZodType
  /** In the body of `PUT /machines/{mac}`, by its schema. Without a default, an absent one stays. */
  readonly put?: z.ZodType
  /** In the journal and its events. */
  readonly title?: string
  /** The action that sets it, and what its event says of the machine. */
  readonly setBy?: { readonly action: string; readonly past: string }
  /** Among the options of its page, saved by that action; `choices` absent: any text. */
  readonly form?: OptionTexts
}

export interface OptionTexts {
  readonly label: string
  readonly hint: string
  readonly choices?: Readonly<Record<string, string>>
}

/** What cannot be read counts as the initial value. */
const field = <T>(schema: z.ZodType<T>, initial: T) => ({
  schema,
  initial,
  stored: schema.catch(() => initial),
})

/** A record without it is no machine. */
const needed = <Schema extends z.ZodType>(schema: Schema) => ({ schema, stored: schema })

const sentTime = z.iso.datetime()
const MOMENT = { ...field(maybeTime, null), sent: sentTime.nullable() }

/** A cycle that cannot be read counts as one in which a flash was under way. */
const UNREADABLE: Cycle = { ...NEW_CYCLE, carried: true }

const RefSchema = z
  .string()
  .regex(/^[0-9a-f]{64}$/, 'the ref of a catalog entry: 64 hexadecimal digits, lower case')
  .nullable()
const DriveSchema = z
  .string()
  .regex(/^0x[0-9a-fA-F]{1,2}$/, 'a drive number such as 0x80')
  .nullable()
const PickSchema = z.string().max(MAX_SERIAL_CHARACTERS).nullable()
const ModeSchema = z.enum(BOOT_MODES)
const TemplateSchema = TemplateNameSchema.nullable()
const DisksSchema: z.ZodType<readonly InventoryDisk[] | null> = z
  .array(InventoryDiskSchema)
  .nullable()
const SerialsSchema: z.ZodType<readonly string[]> = z.array(z.string())
const DiskSchema = z.object({
  path: z.string(),
  size: text,
  vendor: text,
  model: text,
  serial: text,
  tran: text,
  removable: flag,
  readonly: flag,
  wwn: text.optional(),
  by_path: text.optional(),
  size_bytes: z.int().nullable().optional(),
})
const ChannelSchema = z.object({ name: z.string(), ref: z.string() })
const { image, disk, armed_by } = RunSchema.shape
const PlannedSchema = z.object({ order: time, image, disk, armed_by })
const ArmerSchema = z.object({ actor: z.string(), ip: text, at: time })

/** In the order of records and events. */
export const MACHINE_FIELDS = {
  mac: { ...needed(MacSchema), sent: z.string() },
  bty_image_ref: {
    ...field(RefSchema, null),
    sent: true,
    put: RefSchema.default(null),
    title: 'Image',
  },
  /**
   * The image it pointed to when the machine was armed. Ask `channelOf`, which knows about images
   * assigned otherwise since; null: none.
   */
  channel: {
    ...field(ChannelSchema.nullable(), null),
    /** In place of an image, or beside the one that it is expected to point to. */
    put: ChannelNameSchema.nullable().optional(),
    title: 'Channel',
  },
  boot_mode: {
    ...needed(ModeSchema),
    sent: true,
    put: ModeSchema.default(DEFAULT_MODE),
    title: 'On network boot',
  },
  sanboot_drive: {
    ...field(DriveSchema, null),
    sent: true,
    put: DriveSchema.default(null),
    title: 'BIOS boot drive',
  },
  /** Not in the specification; null: nobody gave one. */
  name: { ...field(NameSchema, null), sent: true, put: NameSchema.exactOptional(), title: 'Name' },
  labels: {
    ...field(LabelsSchema, []),
    sent: true,
    put: LabelsSchema.default([]),
    title: 'Labels',
  },
  target_disk_serial: {
    ...field(PickSchema, null),
    sent: true,
    put: PickSchema.default(null),
    title: 'Target disk',
  },
  /** The disk when it was picked by another name than its serial number; null: unknown. */
  target_disk_seen: field(PickedDiskSchema.nullable(), null),
  discovered_at: MOMENT,
  last_seen_at: MOMENT,
  last_seen_ip: { ...field(text, null), sent: true },
  last_flashed_at: MOMENT,
  known_disks: { ...field(DisksSchema, null), sent: z.array(DiskSchema).nullable() },
  known_disks_at: MOMENT,
  created_at: { ...needed(time), sent: sentTime },
  updated_at: { ...needed(time), sent: sentTime },
  saw_flasher_boot: field(flag, false),
  cycle: field<Cycle>(CycleSchema, UNREADABLE),
  /** Of the newest cycle that a person began. */
  armed_by: field(ArmerSchema.nullable(), null),
  /** Of the last plan to flash, or to let a person do so. */
  planned_at: field(maybeTime, null),
  /** Kept until its end is heard: reports are about this plan. Null: none was given, or that was. */
  planned_as: field(PlannedSchema.nullable(), null),
  /** Refuses every flash mode. */
  locked: { ...field(flag, false), title: 'Locked' },
  first_boot: {
    ...field(TemplateSchema, null),
    sent: true,
    put: TemplateSchema.exactOptional(),
    title: 'First-boot template',
    setBy: { action: 'first-boot', past: 'has a new first-boot template' },
  },
  /** When the newest token was made that fetched its first-boot configuration. */
  first_boot_taken_at: field(maybeTime, null),
  serial_console: {
    ...field(z.enum(SERIAL_CONSOLES), 'ttyS0'),
    title: 'Serial console',
    setBy: { action: 'console', past: 'has a new serial console' },
    form: {
      label: 'Serial console',
      hint: 'The port for the console of the live system.',
      choices: {
        ttyS0: 'ttyS0, the first port',
        ttyS1: 'ttyS1, for some management controllers',
      },
    },
  },
  /** The image's last partition and its file system fill the disk. */
  grow: {
    ...field(flag, false),
    title: 'Grows to fill the disk',
    setBy: { action: 'grow', past: 'has a new setting for its last partition' },
    form: {
      label: 'Last partition',
      hint: 'ext4, XFS, btrfs and NTFS can be grown while the disk is flashed.',
      choices: { false: 'As in the image', true: 'Grow to fill the disk' },
    },
  },
  /** As its live system last reported; null: it did not say. */
  secure_boot: { ...field(flag.nullable(), null), sent: true },
  /** As its live system last reported, only a suggestion; null: it did not say. */
  bmc_address: { ...field(text, null), sent: true },
  /** As its live system last reported; null: it did not say. */
  firmware: field(FirmwareSchema.nullable(), null),
  capture: { ...field(CaptureOrderSchema.nullable(), null), sent: true, title: 'Capture' },
  /** What it is booted into once, before whatever its mode says; null: nothing. */
  once: { ...field(OnceOrderSchema.nullable(), null), title: 'Boots once' },
  /** `buildarch` of the last iPXE contact; null until then. */
  arch: field(text, null),
  /** From DHCP at the last iPXE contact; null until then. */
  hostname: field(text, null),
  /** Of its system and boards, as its live system last reported; never on the wire. */
  own_serials: field(SerialsSchema, []),
} as const satisfies Readonly<Record<string, FieldRow>>

type Fields = typeof MACHINE_FIELDS
type FieldName = keyof Fields
export type Column<Name extends keyof FieldRow> = {
  readonly [
    Field in FieldName as Fields[Field] extends Readonly<Record<Name, unknown>> ? Field : never
  ]: Fields[Field] extends Readonly<Record<Name, infer Value>> ? Value : never
}

/** Fields that have it. */
export const namesWith = <Name extends keyof FieldRow>(column: Name) =>
  (Object.keys(MACHINE_FIELDS) as readonly FieldName[]).filter(
    (name): name is FieldName & keyof Column<Name> => column in MACHINE_FIELDS[name],
  )

export function columnOf<Name extends keyof FieldRow>(column: Name): Column<Name> {
  const rows: Readonly<Record<FieldName, FieldRow>> = MACHINE_FIELDS
  const values = namesWith(column).map((name) => [name, rows[name][column]])
  // `fromEntries` forgets which names there are.
  return Object.fromEntries(values) as Column<Name>
}

const RecordSchema = z.object(columnOf('stored'))
export type Machine = Readonly<z.output<typeof RecordSchema>>
export type MachineChannel = NonNullable<Machine['channel']>
export type PlannedFlash = NonNullable<Machine['planned_as']>

export function parseRecord(stored: unknown): Machine | null {
  const { data: machine } = RecordSchema.safeParse(stored)
  if (machine?.cycle !== UNREADABLE) return machine ?? null
  return { ...machine, cycle: { ...UNREADABLE, started_at: machine.updated_at } }
}

const INITIAL = columnOf('initial')

export const createMachine = (mac: Mac, boot_mode: BootMode, now: string): Machine => ({
  ...INITIAL,
  mac,
  boot_mode,
  cycle: createCycle(now),
  created_at: now,
  updated_at: now,
})

const SPECIFIED = [
  'mac',
  'bty_image_ref',
  'labels',
  'discovered_at',
  'last_seen_at',
  'last_seen_ip',
  'boot_mode',
  'sanboot_drive',
  'last_flashed_at',
  'known_disks',
  'known_disks_at',
  'target_disk_serial',
  'created_at',
  'updated_at',
] as const satisfies readonly FieldName[]

/** In the specified order, then ours. */
export const SENT_FIELDS: readonly FieldName[] = [...new Set([...SPECIFIED, ...namesWith('sent')])]

export const OnceWireSchema = OnceOrderSchema.pick({
  entry: true,
  ordered_at: true,
  expires_at: true,
  used_at: true,
})

/** "Machine (server responses)"; a channel and what is booted once are sent only where there is one. */
export function toWire(machine: Machine): Readonly<Record<string, unknown>> {
  const channel = channelOf(machine)
  const { once } = machine
  return {
    ...Object.fromEntries(SENT_FIELDS.map((name) => [name, machine[name]])),
    ...(channel === null ? {} : { channel }),
    ...(once === null ? {} : { once: OnceWireSchema.parse(once) }),
  }
}

export type Identity = Pick<Machine, 'name' | 'labels'>

export const isSameIdentity = (a: Identity, b: Identity): boolean =>
  a.name === b.name &&
  a.labels.length === b.labels.length &&
  a.labels.every((label, at) => label === b.labels[at])

/** Null: its image comes by no channel. */
export const channelOf = ({
  channel,
  bty_image_ref: ref,
}: Pick<Machine, 'channel' | 'bty_image_ref'>): string | null =>
  channel !== null && channel.ref === ref ? channel.name : null

export function targetOf({
  target_disk_serial: serial,
  target_disk_seen: seen,
}: Pick<Machine, 'target_disk_serial' | 'target_disk_seen'>): DiskPick | null {
  const name = serial?.trim() ?? ''
  return name === '' ? null : { name, seen }
}

/** Whatever the mode is now. The end of an inventory does not end a carried-over flash. */
export const hasUnfinishedFlash = ({ cycle }: Machine): boolean =>
  cycle.carried || (cycle.planned && cycle.finished_at === null)

/** A mode that does not flash permits the disk, unless the order was taken away. */
export const isHalfWritten = (machine: Machine): boolean =>
  (isFlashMode(machine.boot_mode) || machine.cycle.disarmed_at !== null) &&
  hasUnfinishedFlash(machine)

/** Its order was taken away: it is not flashed by it, and its disk may be half written. */
export const isHeldBack = (machine: Machine): boolean =>
  machine.cycle.disarmed_at !== null && isHalfWritten(machine)

export const isUnassigned = (machine: Machine): boolean => machine.bty_image_ref === null
