/** Current line: the machine record ("Machine"), and the cycle, which separates intent from state. */
import type { CaptureOrder } from '#engine/capture/rules/order.ts'
import type { SerialConsole } from '#fleet/boot/rules/boot-decision.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { isFlashMode, type BootMode } from './boot-mode.ts'
import type {
  DiskPick,
  PickedDisk,
  InventoryDisk,
  MachineBase,
} from '#engine/inventory/rules/machine.ts'
import type { Armer, RunDisk, RunImage } from '#engine/inventory/rules/run.ts'
import { z } from 'zod'
import { LabelSchema, nameCharacter } from '#fleet/machine/rules/label.ts'
import { printable } from '#kit/foundation/printable.ts'

interface Failure {
  readonly at: string
  readonly reason: string | null
}

/** The cycle whose flash may still be under way: news of it are not news of this cycle. */
interface FormerCycle {
  readonly started_at: string
  readonly finished_at: string | null
}

/** `restored`: the state of the server was replaced by an older one; `expired`: `[pxe] armed_hours`. */
export const DISARM_CAUSES = ['restored', 'operator', 'expired'] as const
export type DisarmCause = (typeof DISARM_CAUSES)[number]

/** The machine's way through one flash or inventory; never on the wire. A new intent starts a new one. */
export interface Cycle {
  readonly started_at: string
  /** Live boots that were offered in this cycle and did not finish. */
  readonly offers: number
  /** When the newest flashing live boot was offered; null: none was. */
  readonly offered_at: string | null
  /** Whether a flash plan was handed out: from then on the disk may be half written. */
  readonly planned: boolean
  /** Whether a flash of the cycle before was under way when this one started. */
  readonly carried: boolean
  readonly before: FormerCycle | null
  /** When done arrived or, in inventory mode, the disks. */
  readonly finished_at: string | null
  /** Something ended, and the machine has not booted its disk since. */
  readonly owes_disk_boot: boolean
  readonly loop_suspected_at: string | null
  readonly failure: Failure | null
  /** Since when it waits for its turn (ISO); null: it does not wait. */
  readonly queued_at: string | null
  /** When an operator allowed its disk after a flash without an end; null: nobody did. */
  readonly disk_allowed_at: string | null
  /** When its order was taken away, which holds a half-written disk back; null: it was not. */
  readonly disarmed_at: string | null
  readonly disarmed_by: DisarmCause | null
  readonly batch: string | null
  /** When its batch was paused: it boots its disk unless it has a plan; null: not paused. */
  readonly paused_at: string | null
  /** When its order ends if no boot was offered by then (ISO); null: never. */
  readonly expires_at: string | null
  /** When its machine first asked or reported a run in this cycle; null: never. */
  readonly begun_at: string | null
}

/** Kept until its end is heard: reports are about this plan. */
export interface PlannedFlash {
  readonly order: string
  readonly image: RunImage | null
  readonly disk: RunDisk | null
  readonly armed_by: Armer | null
}

/** The image it pointed to when the machine was armed. */
export interface MachineChannel {
  readonly name: string
  readonly ref: string
}

export interface Machine extends MachineBase {
  readonly bty_image_ref: string | null
  /** Not in the specification; null: nobody gave one. */
  readonly name: string | null
  readonly labels: readonly string[]
  readonly boot_mode: BootMode
  readonly sanboot_drive: string | null
  readonly known_disks: readonly InventoryDisk[] | null
  readonly known_disks_at: string | null
  readonly target_disk_serial: string | null
  /** From here on not in the specification; `WIRE_FIELDS` names those that are sent. */
  /** The disk when it was picked by another name than its serial number; null: unknown. */
  readonly target_disk_seen: PickedDisk | null
  readonly saw_flasher_boot: boolean
  readonly cycle: Cycle
  /** Of the newest cycle that a person began. */
  readonly armed_by: Armer | null
  /** Of the last plan to flash, or to let a person do so. */
  readonly planned_at: string | null
  /** Null: none was given, or its end was heard. */
  readonly planned_as: PlannedFlash | null
  /** Refuses every flash mode. */
  readonly locked: boolean
  readonly first_boot: string | null
  /** When the newest token was made that fetched its first-boot configuration. */
  readonly first_boot_taken_at: string | null
  readonly serial_console: SerialConsole
  /** The image's last partition and its file system fill the disk. */
  readonly grow: boolean
  /** Ask `channelOf`, which knows about images assigned otherwise since; null: none. */
  readonly channel: MachineChannel | null
  readonly capture: CaptureOrder | null
  /** `buildarch` of the last iPXE contact; null until then. */
  readonly arch: string | null
  /** From DHCP at the last iPXE contact; null until then. */
  readonly hostname: string | null
  /** As its live system last reported; null: it did not say. */
  readonly secure_boot: boolean | null
  /** As its live system last reported, only a suggestion; null: it did not say. */
  readonly bmc_address: string | null
  /** Of its system and boards, as its live system last reported; never on the wire. */
  readonly own_serials: readonly string[]
}

export type Identity = Pick<Machine, 'name' | 'labels'>

export const isSameIdentity = (a: Identity, b: Identity): boolean =>
  a.name === b.name &&
  a.labels.length === b.labels.length &&
  a.labels.every((label, at) => label === b.labels[at])

/** The fields of "Machine" in the specified order, then ours. */
const WIRE_FIELDS = [
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
  'name',
  'first_boot',
  'secure_boot',
  'bmc_address',
  'capture',
] as const satisfies readonly (keyof Machine)[]

/** "Machine (server responses)"; a channel is sent only where there is one. */
export function toWire(machine: Machine): Readonly<Record<string, unknown>> {
  const channel = channelOf(machine)
  return {
    ...Object.fromEntries(WIRE_FIELDS.map((field) => [field, machine[field]])),
    ...(channel === null ? {} : { channel }),
  }
}

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

export function createMachine(mac: Mac, bootMode: BootMode, now: string): Machine {
  return {
    mac,
    bty_image_ref: null,
    name: null,
    labels: [],
    discovered_at: null,
    last_seen_at: null,
    last_seen_ip: null,
    boot_mode: bootMode,
    sanboot_drive: null,
    last_flashed_at: null,
    known_disks: null,
    known_disks_at: null,
    target_disk_serial: null,
    target_disk_seen: null,
    created_at: now,
    updated_at: now,
    saw_flasher_boot: false,
    cycle: createCycle(now),
    armed_by: null,
    planned_at: null,
    planned_as: null,
    locked: false,
    first_boot: null,
    first_boot_taken_at: null,
    serial_console: 'ttyS0',
    grow: false,
    channel: null,
    capture: null,
    arch: null,
    hostname: null,
    secure_boot: null,
    bmc_address: null,
    own_serials: [],
  }
}

export const createCycle = (now: string): Cycle => ({
  started_at: now,
  offers: 0,
  offered_at: null,
  planned: false,
  carried: false,
  before: null,
  finished_at: null,
  owes_disk_boot: false,
  loop_suspected_at: null,
  failure: null,
  queued_at: null,
  disk_allowed_at: null,
  disarmed_at: null,
  disarmed_by: null,
  batch: null,
  paused_at: null,
  expires_at: null,
  begun_at: null,
})

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

// Current line: validates what people call machines: their name, and their labels ("Limits").

export const MAX_LABELS = 16

/** At most 16, counted before duplicates are dropped. */
export const LabelsSchema = z
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
      context.addIssue(`a name cannot hold ${nameCharacter(hidden)}, which cannot be shown`)
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
