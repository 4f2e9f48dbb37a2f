/** Current line: stores and parses a machine's record. */
import { BOOT_MODES } from './boot-mode.ts'
import { z } from 'zod'
import { SERIAL_CONSOLES } from '#fleet/boot/rules/boot-decision.ts'
import { CaptureOrderSchema } from '#engine/capture/rules/order.ts'
import { MacSchema } from '#kit/net/rules/mac.ts'
import { PickedDiskSchema } from '#engine/inventory/rules/machine.ts'
import { RunSchema } from '#engine/inventory/rules/run.ts'
import { InventoryDiskSchema } from '#engine/inventory/rules/inventory.ts'
import { createCycle, DISARM_CAUSES, type Machine, NameSchema } from './machine.ts'
import { MachineUpsertSchema } from './upsert.ts'

const time = z.iso.datetime({ offset: true })
const maybeTime = time.nullable().catch(null)
const flag = z.boolean().catch(false)

/** A cycle that cannot be read counts as one in which a flash was under way. */
const CycleSchema = z.object({
  started_at: time,
  offers: z.int().min(0),
  offered_at: maybeTime,
  planned: z.boolean(),
  carried: flag,
  before: z.object({ started_at: time, finished_at: time.nullable() }).nullable().catch(null),
  finished_at: time.nullable(),
  owes_disk_boot: flag,
  loop_suspected_at: maybeTime,
  failure: z.object({ at: time, reason: z.string().nullable() }).nullable().catch(null),
  queued_at: maybeTime,
  disk_allowed_at: maybeTime,
  disarmed_at: maybeTime,
  disarmed_by: z.enum(DISARM_CAUSES).nullable().catch(null),
  batch: z.string().max(40).nullable().catch(null),
  paused_at: maybeTime,
  expires_at: maybeTime,
  begun_at: time.nullable(),
})

const { image, disk, armed_by } = RunSchema.shape
const PlannedSchema = z.object({ order: time, image, disk, armed_by })

const asked = MachineUpsertSchema.shape

/** What must be right is the MAC, and the mode; all else has a value that does no harm. */
const RecordSchema = z.object({
  mac: MacSchema,
  boot_mode: z.enum(BOOT_MODES),
  bty_image_ref: asked.bty_image_ref.catch(null),
  name: NameSchema.catch(null),
  labels: asked.labels.catch([]),
  sanboot_drive: asked.sanboot_drive.catch(null),
  target_disk_serial: asked.target_disk_serial.catch(null),
  target_disk_seen: PickedDiskSchema.nullable().catch(null),
  discovered_at: maybeTime,
  last_seen_at: maybeTime,
  last_seen_ip: z.string().nullable().catch(null),
  last_flashed_at: maybeTime,
  known_disks: z.array(InventoryDiskSchema).nullable().catch(null),
  known_disks_at: maybeTime,
  created_at: time,
  updated_at: time,
  saw_flasher_boot: flag,
  cycle: CycleSchema.nullable().catch(null),
  armed_by: z
    .object({ actor: z.string(), ip: z.string().nullable(), at: time })
    .nullable()
    .catch(null),
  planned_at: maybeTime,
  planned_as: PlannedSchema.nullable().catch(null),
  locked: flag,
  first_boot: asked.first_boot.unwrap().catch(null),
  first_boot_taken_at: maybeTime,
  serial_console: z.enum(SERIAL_CONSOLES).catch('ttyS0'),
  grow: flag,
  channel: z.object({ name: z.string(), ref: z.string() }).nullable().catch(null),
  capture: CaptureOrderSchema.nullable().catch(null),
  arch: z.string().nullable().catch(null),
  hostname: z.string().nullable().catch(null),
  secure_boot: z.boolean().nullable().catch(null),
  bmc_address: z.string().nullable().catch(null),
  own_serials: z.array(z.string()).catch([]),
})

/** Null where it cannot be a machine. */
export function parseRecord(stored: unknown): Machine | null {
  const parsed = RecordSchema.safeParse(stored)
  if (!parsed.success) return null
  const { cycle, ...fields } = parsed.data
  return {
    ...fields,
    cycle: cycle ?? { ...createCycle(fields.updated_at), carried: true },
  }
}
