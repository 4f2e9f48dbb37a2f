/** The body of `POST /pxe/{mac}/inventory` ("InventoryDisk", "Inventory post body"). */
import { listOwnSerials } from './hardware.ts'
import { z } from 'zod'
import { parseFields, type FieldError } from '#kit/foundation/field-error.ts'
import { outlineJson } from '#kit/foundation/json-outline.ts'
import { MAX_HARDWARE_BYTES, type Inventory } from './machine.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { plainWords } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

export const MAX_SERIAL_CHARACTERS = 128
/** Further ones are only counted: storage servers have hundreds. */
export const MAX_DISKS = 1024
/** The largest servers have some 20,000; each costs memory wherever the tree is read. */
export const MAX_HARDWARE_VALUES = 250_000
/** Levels of the body. */
const MAX_DEPTH = 100
/** Beside the hardware tree; 1,024 disks with all that lsblk says of them have 50,000. */
const MAX_OTHER_VALUES = 250_000
/** 1,024 disks take less than 2 MiB; keys of 64 MiB would take more memory than the thread has. */
const MAX_OTHER_BYTES = 8 * 1024 * 1024

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

export type InventoryRefusal = 'malformed' | 'too-deep' | 'too-many-values' | readonly FieldError[]

/** Parses the bytes of a body; fields that are wrong are listed. */
export function parseInventory(body: Buffer): Result<Inventory, InventoryRefusal> {
  const { depth, values, member } = outlineJson(body, 'lshw')
  const tree = member !== null && isTree(body[member.from]) ? member : NO_MEMBER
  if (depth > MAX_DEPTH) return refuse('too-deep')
  const others = { bytes: body.length - (tree.to - tree.from), values: values - tree.values }
  if (isTooMuch(others)) return refuse('too-many-values')
  // The tree is taken out first: it keeps its bytes, and is never parsed where it is too large.
  const rest = [body.subarray(0, tree.from), body.subarray(tree.to)].map(String)
  const document = parseJson(rest.join(tree === NO_MEMBER ? '' : '{}'))
  const read =
    tree === NO_MEMBER ? NO_TREE : readTree(body.subarray(tree.from, tree.to), tree.values)
  if (document === undefined || read === null) return refuse('malformed')
  const reported = parseReported(document)
  return reported.ok ? accept({ ...reported.value, ...read }) : reported
}

const isTooMuch = ({ bytes, values }: { readonly bytes: number; readonly values: number }) =>
  bytes > MAX_OTHER_BYTES || values > MAX_OTHER_VALUES

const NO_MEMBER = { from: 0, to: 0, values: 0 }

const isTree = (opening: number | undefined) => opening === 0x7b || opening === 0x5b

/** All but the tree. */
function parseReported(document: unknown) {
  const { disks: listed }: { readonly disks?: unknown } = Object(document)
  const all = Array.isArray(listed) ? listed : []
  const disksLeftOut = Math.max(0, all.length - MAX_DISKS)
  const kept = disksLeftOut > 0 ? { ...Object(document), disks: all.slice(0, MAX_DISKS) } : document
  const parsed = parseFields(InventorySchema, kept)
  if (!parsed.ok) return parsed
  const { disks, secure_boot: secureBoot = null, bmc_address: bmcAddress = null } = parsed.value
  return accept({ disks, disksLeftOut, secureBoot, bmcAddress })
}

type ReadTree = Pick<Inventory, 'hardware' | 'ownSerials' | 'isHardwareLeftOut'>

const NO_TREE: ReadTree = { hardware: null, ownSerials: null, isHardwareLeftOut: false }
const LEFT_OUT: ReadTree = { ...NO_TREE, isHardwareLeftOut: true }

/** Null: it is no JSON. */
function readTree(bytes: Buffer, values: number): ReadTree | null {
  if (bytes.length > MAX_HARDWARE_BYTES || values > MAX_HARDWARE_VALUES) return LEFT_OUT
  const text = bytes.toString('utf8')
  const tree = parseJson(text)
  // What our own reader refuses is not kept: an export would have it.
  if (tree === undefined) return isJson(text) ? LEFT_OUT : null
  const hardware = new Uint8Array(bytes)
  return { hardware, ownSerials: listOwnSerials(tree), isHardwareLeftOut: false }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
