/** Current line: the body of `PUT /machines/{mac}` ("MachineUpsert"). */
import { BOOT_MODES, DEFAULT_MODE, isFlashMode } from './boot-mode.ts'
import { z } from 'zod'
import { parseFields, type FieldError } from '#kit/foundation/field-error.ts'
import { accept, type Result } from '#kit/foundation/result.ts'
import { MAX_SERIAL_CHARACTERS } from '#engine/inventory/rules/inventory.ts'
import { TemplateNameSchema } from '#engine/first-boot/rules/template.ts'
import { ChannelNameSchema } from '#fleet/channel/rules/channel.ts'
import { LabelsSchema, NameSchema, sortLabels } from './machine.ts'

/**
 * Unknown keys are refused; absent fields have defaults, whatever was there before. Only name,
 * template and channel stay: clients of the specification do not know them.
 */
export const MachineUpsertSchema = z.strictObject({
  bty_image_ref: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'the ref of a catalog entry: 64 hexadecimal digits, lower case')
    .nullable()
    .default(null),
  /** In place of an image, or beside the one that it is expected to point to. */
  channel: ChannelNameSchema.nullable().optional(),
  name: NameSchema.optional(),
  first_boot: TemplateNameSchema.nullable().optional(),
  labels: LabelsSchema.default([]),
  boot_mode: z.enum(BOOT_MODES).default(DEFAULT_MODE),
  sanboot_drive: z
    .string()
    .regex(/^0x[0-9a-fA-F]{1,2}$/, 'a drive number such as 0x80')
    .nullable()
    .default(null),
  target_disk_serial: z.string().max(MAX_SERIAL_CHARACTERS).nullable().default(null),
})

export type UpsertRequest = Readonly<z.infer<typeof MachineUpsertSchema>>

export type MachineUpsert = Omit<UpsertRequest, 'channel'>

/** An empty name or serial becomes null. The refusal names each wrong field. */
export function parseUpsert(body: unknown): Result<UpsertRequest, readonly FieldError[]> {
  const parsed = parseFields(MachineUpsertSchema, body)
  if (!parsed.ok) return parsed
  const { name, labels, target_disk_serial, ...fields } = parsed.value
  return accept({
    ...fields,
    ...(name === undefined ? {} : { name: name || null }),
    labels: [...sortLabels(labels)],
    target_disk_serial: target_disk_serial?.trim() || null,
  })
}

/** The form refuses that; the API does not, because its scripts fall back ("UI form post…"). */
export const lacksTarget = (upsert: UpsertRequest): boolean =>
  isFlashMode(upsert.boot_mode) && upsert.target_disk_serial === null
