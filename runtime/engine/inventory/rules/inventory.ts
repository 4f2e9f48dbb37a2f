/** The body of `POST /pxe/{mac}/inventory` ("InventoryDisk", "Inventory post body"), and what it says of the hardware. */
import { z } from 'zod'
import {
  DIGEST_DIGITS,
  type FirmwareFacts,
  MAX_CERTIFICATES,
  MAX_DIGESTS,
  PROCESSORS,
} from './firmware-facts.ts'
import { type FieldError, parseFields } from '#kit/foundation/field-error.ts'
import { outlineJson, parseJson } from '#kit/foundation/json-reader.ts'
import { plainWords, printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { type Inventory, MAX_HARDWARE_BYTES } from './machine.ts'

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

const KeyListSchema = z.object({
  certificates: z
    .array(
      z.object({
        fingerprint: z.string().regex(/^[0-9a-f]{64}$/),
        name: z.string().max(100),
        subject: z.string().max(300),
      }),
    )
    .max(MAX_CERTIFICATES),
  digests: z
    .string()
    .max(DIGEST_DIGITS * MAX_DIGESTS)
    .regex(/^(?:[0-9a-f]{8})*$/),
  others: z.int().min(0),
})

const MAX_SBAT = 100

export const FirmwareSchema: z.ZodType<FirmwareFacts> = z.object({
  kind: z.enum(['bios', 'uefi']),
  processor: z.enum(PROCESSORS).nullable(),
  secure_boot: z.boolean().nullable(),
  allowed: KeyListSchema.nullable(),
  revoked: KeyListSchema.nullable(),
  sbat_level: z
    .record(z.string().max(64), z.int().min(0))
    .refine((level) => Object.keys(level).length <= MAX_SBAT)
    .nullable(),
})

export const InventorySchema = z.strictObject({
  disks: z.array(InventoryDiskSchema),
  lshw: HardwareSchema.nullish(),
  /** Not in the specification: firmware enforced Secure Boot. */
  secure_boot: z.boolean().nullish().catch(null),
  /** Not in the specification: the address of its BMC; invalid ones are dropped. */
  bmc_address: z.ipv4().nullish().catch(null),
  /** Not in the specification: what the firmware starts; invalid ones are dropped. */
  firmware: FirmwareSchema.nullish().catch(null),
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
  const { disks, secure_boot, bmc_address, firmware = null } = parsed.value
  const known = { secureBoot: secure_boot ?? null, bmcAddress: bmc_address ?? null, firmware }
  return accept({ disks, disksLeftOut, ...known })
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

export interface Hardware {
  readonly vendor: string | null
  readonly model: string | null
  readonly serial: string | null
  readonly processors: readonly string[]
  readonly cores: number | null
  readonly memoryBytes: number | null
  /** Product, with name and MAC where known. */
  readonly networks: readonly string[]
  readonly firmware: string | null
}

/** Trees are small; what goes on and on is cut. */
const MAX_NODES = 5000
const MAX_CHARACTERS = 120
const MAX_OF_A_KIND = 8

const Text = z
  .string()
  .transform((text) => printable(text.trim().slice(0, MAX_CHARACTERS)) || null)
  .nullable()
  .catch(null)
const HardwareNode = z.object({
  id: z.string().catch(''),
  class: z.string().catch(''),
  disabled: z.boolean().catch(false),
  vendor: Text,
  product: Text,
  serial: Text,
  version: Text,
  date: Text,
  description: Text,
  size: z.number().positive().nullable().catch(null),
  logicalname: z.preprocess((names) => (Array.isArray(names) ? names[0] : names), Text),
  configuration: z
    .object({ cores: z.string().transform(Number).pipe(z.int().positive()) })
    .nullable()
    .catch(null),
  children: z.array(z.unknown()).catch([]),
})
type HardwareNode = z.infer<typeof HardwareNode>

/** Of `lshw -json`; sizes in bytes. Null: no such tree. */
export function parseHardware(json: string): Hardware | null {
  const nodes = flatten(parseJson(json))
  const system = nodes[0]
  if (system === undefined) return null
  const processors = nodes.filter((node) => node.class === 'processor' && !node.disabled)
  const memory = nodes.find((node) => isNamed(node, 'memory') && node.class === 'memory')
  const firmware = nodes.find((node) => isNamed(node, 'firmware'))
  const cores = processors.flatMap((node) => node.configuration?.cores ?? [])
  return {
    vendor: system.vendor,
    model: system.product,
    serial: system.serial,
    processors: listTexts(processors.map(({ product }) => product)),
    cores: cores.length === 0 ? null : cores.reduce((sum, count) => sum + count, 0),
    memoryBytes: memory?.size ?? null,
    networks: listTexts(nodes.filter((node) => node.class === 'network').map(renderNetwork)),
    firmware:
      firmware === undefined ? null : join(firmware.vendor, firmware.version, firmware.date),
  }
}

const MAX_OWN_SERIALS = 4

/** Firmware's stand-ins for a serial number, equal on many machines. */
const PLACEHOLDER =
  /^(?:(.)\1*|[x*.-]+|n\/?a|none|null|unknown|invalid|empty|oem|o\.e\.m\.|default string|to be filled by .*|not (?:specified|available|applicable|set|present)|(?:system|base ?board|board|chassis) serial number|(?:serial|number|0?123456789.*))$/i

/** Of the system, then of its boards; without parts and firmware's stand-ins. */
export function listOwnSerials(tree: unknown): readonly string[] {
  const top = HardwareNode.safeParse(Array.isArray(tree) ? tree[0] : tree)
  if (!top.success) return []
  // Of thousands of children one or two are boards.
  const named = top.data.children.filter((child) => {
    const { id }: { readonly id?: unknown } = Object(child)
    return typeof id === 'string' && isNamed({ id }, 'core')
  })
  const boards = named.slice(0, MAX_OWN_SERIALS).flatMap((child) => {
    const node = HardwareNode.safeParse(child)
    return node.success ? [node.data] : []
  })
  const serials = [top.data, ...boards].flatMap(({ serial }) => serial ?? [])
  const real = serials.filter((serial) => !PLACEHOLDER.test(serial))
  return [...new Set(real)].slice(0, MAX_OWN_SERIALS)
}

function flatten(top: unknown): readonly HardwareNode[] {
  const found: HardwareNode[] = []
  const queue: unknown[] = Array.isArray(top) ? top.slice(0, MAX_NODES) : [top]
  for (const item of queue) {
    if (found.length >= MAX_NODES) break
    const node = HardwareNode.safeParse(item)
    if (!node.success) continue
    found.push(node.data)
    queue.push(...node.data.children.slice(0, MAX_NODES))
  }
  return found
}

/** `cpu:1` is the second `cpu`. */
const isNamed = ({ id }: Pick<HardwareNode, 'id'>, name: string) => id.split(':', 1)[0] === name

function renderNetwork({ logicalname, serial, product, description }: HardwareNode): string | null {
  const address = join(logicalname, serial)
  const name = product ?? description
  return name === null || address === null ? (name ?? address) : `${name} (${address})`
}

const join = (...texts: readonly (string | null)[]) =>
  texts.filter((text) => text !== null).join(' ') || null

const listTexts = (texts: readonly (string | null)[]): readonly string[] =>
  texts.filter((text) => text !== null).slice(0, MAX_OF_A_KIND)

/** IPv4; `printed`: by `ipmitool lan print` with `LC_ALL=C`. Null: none. */
export function parseBmcAddress(printed: string): string | null {
  const [, address = ''] = /^IP Address +: (\d{1,3}(?:\.\d{1,3}){3})$/m.exec(printed) ?? []
  return address === '' || address === '0.0.0.0' ? null : address
}

/** Says how long a boot has taken, as a request for a plan carries it. */
interface BootClocks {
  /** `/proc/uptime`. */
  readonly up: string
  /** Nanoseconds from the reset until the kernel took over; empty: unknown. */
  readonly firmware: string
  /** Microseconds of the kernel's clock when systemd began. */
  readonly micros: string
}

/** `&up=73.25&system=41.8`, perhaps with `&firmware=9.1`, in seconds; empty: unknown. */
export function renderBootTimes({ up, firmware, micros }: BootClocks): string {
  const [, seconds] = /^(\d+\.\d{1,3}) /.exec(up) ?? []
  const system = readCount(micros, 1e6)
  if (seconds === undefined || system === null) return ''
  const reset = readCount(firmware, 1e9)
  return `&up=${seconds}&system=${system}${reset === null ? '' : `&firmware=${reset}`}`
}

/** Seconds with at most three decimals; null: no count. */
function readCount(text: string, unit: number): string | null {
  const [digits] = /^\d+/.exec(text.trim()) ?? []
  const count = Number(digits ?? 0)
  return count === 0 ? null : String(Math.round((count / unit) * 1000) / 1000)
}
