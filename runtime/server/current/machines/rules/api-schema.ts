/** Current line: its resources as JSON Schema for the API document, generated from the validators. */
import { z } from 'zod'
import { PickedDiskSchema } from '#engine/inventory/rules/machine.ts'
import { InventorySchema } from '#engine/inventory/rules/inventory.ts'
import { MACHINE_FIELDS, OnceWireSchema, SENT_FIELDS, type FieldRow } from './machine.ts'
import { PLAN_MODES } from './plan.ts'
import { MachineUpsertSchema } from './upsert.ts'

const MachineSchema = z.object({
  ...Object.fromEntries(
    SENT_FIELDS.map((name) => {
      const { schema, sent }: FieldRow = MACHINE_FIELDS[name]
      return [name, sent === true ? schema : (sent ?? schema)]
    }),
  ),
  channel: z
    .string()
    .optional()
    .describe('The channel that its image was assigned by; absent: none'),
  once: OnceWireSchema.optional().describe(
    'What it boots once, or, with used_at, has booted and not asked for anything since; absent: nothing',
  ),
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
  sources: z.array(z.object({ url: z.url() })).optional(),
  first_boot: z.object({ url: z.url(), token: z.string() }).optional(),
  source_disk_serial: z.string().optional(),
  source_disk: PickedDiskSchema.optional(),
  generalize: z.boolean().optional(),
  upload: z.object({ url: z.url(), token: z.string() }).optional(),
  catalog: z.string().optional(),
  reason: z.string().optional(),
})

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
  Inventory: render(InventorySchema),
  Plan: render(FlatPlanSchema.extend({ plan: FlatPlanSchema })),
} as const satisfies Readonly<Record<string, Readonly<Record<string, unknown>>>>

const digest = z.string().regex(/^[0-9a-f]{64}$/)
const ref = digest.describe('sha256 of the canonical source: the bty_image_ref of a machine')

const ImageEntrySchema = z.object({
  name: z.string(),
  format: z.string().describe('img.zst, qcow2…; empty: not known'),
  size_bytes: z.int().min(0).describe('0: not known'),
  url: z.string().describe('The source'),
  ref,
  sha_short: z
    .string()
    .regex(/^[0-9a-f]{12}$/)
    .nullable(),
  arch: z.string().nullable(),
})

export const ImagesSchema = z.array(ImageEntrySchema)

export const ManifestSchema = z.object({
  version: z.literal(1),
  images: z.array(
    z.object({
      name: z.string(),
      src: z.string().describe('Where a machine gets the bytes: the cache, or the source'),
      ref: ref.optional().describe('Only where src itself makes it'),
      bty_image_ref: ref,
      sha256: digest.optional(),
      format: z.string().optional(),
      size_bytes: z.int().min(0).optional(),
      arch: z.string().optional(),
      description: z.string().optional(),
    }),
  ),
})
