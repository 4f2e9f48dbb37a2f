/** The body of `POST /pxe/{mac}/inventory` ("InventoryDisk", "Inventory post body"). */
import { listOwnSerials } from './hardware.ts'
import { z } from 'zod'
import { parseFields, type FieldError } from '../../../kit/foundation/field-error.ts'
import {
  createJsonSift,
  type Sifted,
  type Verbatim,
} from '../../../kit/foundation/json/json-sift.ts'
import type { Wanted } from '../../../kit/foundation/json/json-sift-frames.ts'
import type { Inventory } from './machine.ts'
import { parseJson } from '../../../kit/foundation/json-reader.ts'
import { plainWords } from '../../../kit/foundation/printable.ts'
import { accept, type Result } from '../../../kit/foundation/result.ts'

export const MAX_SERIAL_CHARACTERS = 128
/** Further ones are only counted: storage servers have hundreds. */
export const MAX_DISKS = 1024
/** A larger tree is left out; the disks are stored anyway. */
export const MAX_HARDWARE_BYTES = 8 * 2 ** 20
/** The largest servers have some 20,000; each costs memory wherever the tree is read. */
export const MAX_HARDWARE_VALUES = 250_000
/** Levels of the body. */
const MAX_DEPTH = 100

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

const extra = (most: number) => z.string().max(most).nullish().catch(null)
const PREFIX = '+path:'.length

/** Keys that are not in the specification are dropped: clients send what lsblk says. */
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
  disks: z.array(InventoryDiskSchema),
  lshw: HardwareSchema.nullish(),
  /** Not in the specification: firmware enforced Secure Boot. */
  secure_boot: z.boolean().nullish().catch(null),
  /** Not in the specification: the address of its BMC; invalid ones are dropped. */
  bmc_address: z.ipv4().nullish().catch(null),
})

const small = { kind: 'small' } as const
const DISK: Wanted = {
  kind: 'object',
  keys: new Map(Object.keys(InventoryDiskSchema.shape).map((key) => [key, small])),
}
const BODY: Wanted = {
  kind: 'object',
  namesOthers: true,
  keys: new Map<string, Wanted>([
    ['disks', { kind: 'list', of: DISK, most: MAX_DISKS }],
    ['lshw', { kind: 'verbatim', maxBytes: MAX_HARDWARE_BYTES, maxValues: MAX_HARDWARE_VALUES }],
    ['secure_boot', small],
    ['bmc_address', small],
  ]),
}

export const createInventorySift = () => createJsonSift(BODY, MAX_DEPTH)

/** `sifted` undefined: nothing was sent. The refusal lists the wrong fields. */
export function parseInventory(
  sifted: Sifted | undefined,
): Result<Inventory, readonly FieldError[]> {
  const { value, verbatim, leftOut } = sifted ?? NOTHING
  const lshw = verbatim.get('lshw') ?? null
  const parsed = parseFields(InventorySchema, withTree(value, lshw))
  if (!parsed.ok) return parsed
  const { disks, secure_boot: secureBoot = null, bmc_address: bmcAddress = null } = parsed.value
  const hardware = takeTree(lshw)
  const isHardwareLeftOut = lshw !== null && isTree(lshw) && hardware === null
  const ownSerials = readOwnSerials(hardware)
  const told = { hardware, ownSerials, isHardwareLeftOut, secureBoot, bmcAddress }
  return accept({ disks, disksLeftOut: leftOut, ...told })
}

const NOTHING: Sifted = { value: undefined, verbatim: new Map(), leftOut: 0 }

const isTree = ({ opening }: Verbatim) => opening === 0x7b || opening === 0x5b

const takeTree = (lshw: Verbatim | null) =>
  lshw?.bytes && isTree(lshw) && isReadable(lshw.bytes) ? lshw.bytes : null

/** The tree is not checked, only that it is one. */
function withTree(value: unknown, lshw: Verbatim | null): unknown {
  if (lshw === null || typeof value !== 'object') return value
  const isNull = lshw.opening === NULL
  return { ...value, lshw: isTree(lshw) ? {} : isNull ? null : 'a text or number' }
}

const NULL = 0x6e

/** Few trees are half as large; reading one of this size takes some milliseconds. */
const MAX_READ_BYTES = 512 * 1024

function readOwnSerials(hardware: Uint8Array | null): readonly string[] | null {
  if (hardware === null || hardware.length > MAX_READ_BYTES) return null
  return listOwnSerials(Buffer.from(hardware).toString('utf8'))
}

/** What our reader (`json-reader.ts`) refuses later is not kept: an export would have it. */
function isReadable(hardware: Uint8Array): boolean {
  const bytes = Buffer.from(hardware.buffer, hardware.byteOffset, hardware.byteLength)
  const isSuspect = ['__proto__', 'constructor', '\\u00'].some((text) => bytes.includes(text))
  return !isSuspect || parseJson(bytes.toString('utf8')) !== undefined
}
