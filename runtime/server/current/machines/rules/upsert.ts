/** Current line: the body of `PUT /machines/{mac}` ("MachineUpsert"). */
import { isFlashMode } from './boot-mode.ts'
import { z } from 'zod'
import { parseFields, type FieldError } from '#kit/foundation/field-error.ts'
import { accept, type Result } from '#kit/foundation/result.ts'
import { columnOf, sortLabels } from './machine.ts'

/**
 * Unknown keys are refused; absent fields have defaults, whatever was there before. Only name,
 * template and channel stay: clients of the specification do not know them.
 */
export const MachineUpsertSchema = z.strictObject(columnOf('put'))

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
    labels: sortLabels(labels),
    target_disk_serial: target_disk_serial?.trim() || null,
  })
}

/** The form refuses that; the API does not, because its scripts fall back ("UI form post…"). */
export const lacksTarget = (upsert: UpsertRequest): boolean =>
  isFlashMode(upsert.boot_mode) && upsert.target_disk_serial === null
