/** The body of `POST /pxe/{mac}/inventory` ("InventoryDisk", "Inventory post body"). */
import { z } from 'zod'
import { parseFields, type FieldError } from '../foundation/field-error.ts'
import type { Inventory } from './machine.ts'
import { plainWords } from '../foundation/printable.ts'
import { accept, type Result } from '../foundation/result.ts'

export const MAX_SERIAL_CHARACTERS = 128
export const MAX_DISKS = 64
/** A larger hardware tree is dropped; the disks are stored anyway. */
export const MAX_HARDWARE_BYTES = 8 * 2 ** 20

const exactly = (most: number) => z.string().max(most).nullable().default(null)
/** For people, on terminals as well. */
const words = (most: number) => z.string().max(most).overwrite(plainWords).nullable().default(null)

const WORDS = ['true', 'false', 'yes', 'no', 'on', 'off', 'y', 'n', 't', 'f', '1', '0'] as const
const TRUE: readonly unknown[] = [true, 1, 'true', 'yes', 'on', 'y', 't', '1']

/** lsblk's JSON has had true, 1 and "1" for the same. */
const lax = z
  .union([
    z.boolean(),
    z.literal(0),
    z.literal(1),
    z.null(),
    z.string().toLowerCase().pipe(z.enum(WORDS)),
  ])
  .default(false)
  .transform((value) => TRUE.includes(value))

/** What clients of ours add; one that is not as it must be is as good as none. */
const extra = (most: number) => z.string().max(most).nullish().catch(null)
const PREFIX = '+path:'.length

/** Keys that are not in the specification are dropped, not refused: clients send what lsblk says. */
export const InventoryDiskSchema = z.object({
  path: z.string().min(1).max(255),
  size: words(32),
  vendor: words(64),
  model: words(128),
  serial: exactly(MAX_SERIAL_CHARACTERS),
  tran: words(32),
  removable: lax,
  readonly: lax,
  wwn: extra(MAX_SERIAL_CHARACTERS - PREFIX),
  by_path: extra(MAX_SERIAL_CHARACTERS - PREFIX),
  size_bytes: z.int().min(0).nullish().catch(null),
})

const HardwareSchema = z.union([z.record(z.string(), z.unknown()), z.array(z.unknown())])

export const InventorySchema = z.strictObject({
  disks: z.array(InventoryDiskSchema).max(MAX_DISKS),
  lshw: HardwareSchema.nullish(),
  /** Not in the specification: clients of ours say whether firmware enforced Secure Boot. */
  secure_boot: z.boolean().nullish().catch(null),
})

export function parseInventory(body: unknown): Result<Inventory, readonly FieldError[]> {
  const parsed = parseFields(InventorySchema, body)
  if (!parsed.ok) return parsed
  const { disks, lshw, secure_boot: secureBoot = null } = parsed.value
  const hardware = lshw === undefined || lshw === null ? null : JSON.stringify(lshw)
  const fits = hardware !== null && Buffer.byteLength(hardware) <= MAX_HARDWARE_BYTES
  return accept({ disks, hardware: fits ? hardware : null, secureBoot })
}
