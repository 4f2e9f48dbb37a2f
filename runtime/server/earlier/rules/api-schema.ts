/** Earlier line: its resources as JSON Schema for the API document, generated from the validators. */
import { z } from 'zod'
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import { InventorySchema } from '#engine/inventory/rules/inventory.ts'
import { MACHINE_PROVISIONING } from '#fleet/workflow/rules/online-workflow.ts'
import { BOOT_POLICIES, WORKFLOW_STATUSES, MachineUpsertSchema } from './machine.ts'
import { PLAN_MODES } from './boot.ts'

const maybeText = z.string().nullable()
const time = z.iso.datetime()
const maybeTime = time.nullable()

const MachineSchema = z.object({
  mac: z.string(),
  image: maybeText,
  provisioning_mode: z.enum(MACHINE_PROVISIONING),
  hostname: maybeText,
  cijoe_workflow_ref: maybeText,
  last_known_good: z.record(z.string(), z.unknown()).nullable(),
  discovered_at: maybeTime,
  last_seen_at: maybeTime,
  last_seen_ip: maybeText,
  boot_policy: z.enum(BOOT_POLICIES),
  last_flashed_at: maybeTime,
  last_workflow_run_at: maybeTime,
  last_workflow_status: z.enum(WORKFLOW_STATUSES).nullable(),
  last_workflow_output_path: maybeText,
  created_at: time,
  updated_at: time,
})

const ImageEntrySchema = z.object({
  name: z.string(),
  path: z.string(),
  format: z.enum(IMAGE_FORMATS),
  size_bytes: z.int().min(0),
})

const FlatPlanSchema = z.object({ mode: z.enum(PLAN_MODES), reason: z.string().optional() })

const render = (schema: z.ZodType): Readonly<Record<string, unknown>> => ({
  toJSON() {
    // The dialect is said once, by the document.
    const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input' })
    return rest
  },
})

export const SCHEMAS = {
  Machine: render(MachineSchema),
  MachineUpsert: render(MachineUpsertSchema),
  ImageEntry: render(ImageEntrySchema),
  Inventory: render(InventorySchema),
  Plan: render(FlatPlanSchema.extend({ plan: FlatPlanSchema })),
} as const satisfies Readonly<Record<string, Readonly<Record<string, unknown>>>>
