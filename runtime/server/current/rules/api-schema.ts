/** Current line: its resources as JSON Schema for the API document, generated from the validators. */
import { z } from 'zod'
import { CaptureOrderSchema } from '../../../engine/capture/rules/order.ts'
import { PickedDiskSchema } from '../../../engine/inventory/rules/disk-pick.ts'
import { InventorySchema } from '../../../engine/inventory/rules/inventory.ts'
import { BOOT_MODES } from './machine.ts'
import { NameSchema } from './label.ts'
import { PLAN_MODES } from './plan.ts'
import { MachineUpsertSchema } from './upsert.ts'

const asked = MachineUpsertSchema.shape
const maybeText = z.string().nullable()
const time = z.iso.datetime()

const DiskSchema = z.object({
  path: z.string(),
  size: maybeText,
  vendor: maybeText,
  model: maybeText,
  serial: maybeText,
  tran: maybeText,
  removable: z.boolean(),
  readonly: z.boolean(),
  wwn: maybeText.optional(),
  by_path: maybeText.optional(),
  size_bytes: z.int().nullable().optional(),
})

const MachineSchema = z.object({
  mac: z.string(),
  bty_image_ref: asked.bty_image_ref.unwrap(),
  name: NameSchema,
  labels: asked.labels.unwrap(),
  discovered_at: time.nullable(),
  last_seen_at: time.nullable(),
  last_seen_ip: maybeText,
  boot_mode: z.enum(BOOT_MODES),
  sanboot_drive: asked.sanboot_drive.unwrap(),
  last_flashed_at: time.nullable(),
  known_disks: z.array(DiskSchema).nullable(),
  known_disks_at: time.nullable(),
  target_disk_serial: asked.target_disk_serial.unwrap(),
  created_at: time,
  updated_at: time,
  first_boot: asked.first_boot.unwrap(),
  capture: CaptureOrderSchema.nullable(),
})

const FlatPlanSchema = z.object({
  mode: z.enum(PLAN_MODES),
  image: z.string().optional(),
  target_disk_serial: z.string().optional(),
  target_disk: PickedDiskSchema.optional(),
  name: z.string().optional(),
  disk_image_sha: z.string().optional(),
  format: z.string().optional(),
  size_bytes: z.int().optional(),
  register_uefi_boot: z.boolean().optional(),
  first_boot: z.object({ url: z.url(), token: z.string() }).optional(),
  source_disk_serial: z.string().optional(),
  source_disk: PickedDiskSchema.optional(),
  generalize: z.boolean().optional(),
  upload: z.object({ url: z.url(), token: z.string() }).optional(),
  catalog: z.string().optional(),
  reason: z.string().optional(),
})

const render = (schema: z.ZodType): Readonly<Record<string, unknown>> =>
  z.toJSONSchema(schema, { io: 'input' })

export const SCHEMAS = {
  Machine: render(MachineSchema),
  MachineUpsert: render(MachineUpsertSchema),
  Inventory: render(InventorySchema),
  Plan: render(FlatPlanSchema.extend({ plan: FlatPlanSchema })),
} as const satisfies Readonly<Record<string, Readonly<Record<string, unknown>>>>
