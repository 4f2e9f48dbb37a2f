/** Summarises a hardware tree (`lshw -json`) in a few lines; none of its content is trusted. */
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { printable } from '#kit/foundation/printable.ts'

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
