/** Parses and checks the server's plan, `GET /pxe/{mac}/plan` ("Wizard plan modes"). */
import { IMAGE_FORMATS, type ImageFormat } from '#appliance/disk-images.ts'
import { parseHttpTarget, parseLocation } from '#kit/net/rules/image-location.ts'
import {
  findPicked,
  identifyDisk,
  PickedDiskSchema,
  renderPicked,
  type PickedDisk,
  type InventoryDisk,
} from '#engine/inventory/rules/machine.ts'
import { printable } from '#kit/foundation/printable.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Provisioning } from '#engine/flash/rules/provisioning.ts'

const NO_DISK = 'it names no disk'
const WRONG_SEEN = 'its disk is not described correctly'

type PlannedOrder = Order<NamedFlash>

const MAX_ADDRESS = 4096
const MAX_IDENTITY = 256
const MAX_WORDS = 400

/** The refusal is a clause that is safe for a terminal. */
export function parsePlan(document: unknown): Result<PlannedOrder, string> {
  if (!isRecord(document)) return refuse('it is not a JSON object')
  // Deployed servers have `mode` at the top, the specification `plan.mode`.
  const nested = document['plan']
  const fields = document['mode'] === undefined && isRecord(nested) ? nested : document
  const { mode } = fields
  if (typeof mode !== 'string') return refuse('it names no mode')
  const read = READ.get(mode)
  if (read === undefined) return refuse(`it names the unknown mode ${quote(mode)}`)
  return read(fields)
}

type Fields = Readonly<Record<string, unknown>>

const READ: ReadonlyMap<string, (fields: Fields) => Result<PlannedOrder, string>> = new Map([
  ['flash', readFlash],
  ['capture', readCapture],
  ['interactive', readInteractive],
  ['inventory', () => accept({ mode: 'inventory' } as const)],
  ['exit', (fields) => accept({ mode: 'exit', reason: wordsOf(fields['reason']) } as const)],
])

function readFlash(fields: Fields): Result<PlannedOrder, string> {
  const { image, target_disk_serial: disk, disk_image_sha: digest } = fields
  if (!isText(image, MAX_ADDRESS)) return refuse('it names no image')
  if (!isRemote(image))
    return refuse(`its image is not at the address of a server: ${quote(image)}`)
  if (!isText(disk, MAX_IDENTITY)) return refuse(NO_DISK)
  const seen = readSeen(fields['target_disk'])
  if (seen === undefined) return refuse(WRONG_SEEN)
  const sha256 = readDigest(digest)
  if (sha256 === undefined) {
    return refuse(`its digest is not a SHA-256: ${quote(String(digest))}`)
  }
  const firstBoot = readTicket(fields['first_boot'])
  if (firstBoot === undefined)
    return refuse('its first-boot configuration has no address on this server, or no token')
  return accept({
    mode: 'flash',
    image: image.trim(),
    ...readSources(fields),
    disk: disk.trim(),
    ...(seen === null ? {} : { seen }),
    name: wordsOf(fields['name']),
    format: IMAGE_FORMATS.find((format) => format === fields['format']) ?? null,
    sha256,
    registerUefiBoot: fields['register_uefi_boot'] === true,
    grow: fields['grow'] === true,
    delta: fields['delta'] === true,
    ...readMark(fields),
    ...readSize(fields),
    // An invalid one only costs the entry by frames.
    indexSha256: readDigest(fields['index_sha256']) ?? null,
    firstBoot,
  })
}

/** A server with more names picks some of its caches for each machine. */
const MAX_SOURCES = 8

/** Skips invalid ones: `image` alone is enough. */
function readSources({ sources }: Fields): Pick<NamedFlash, 'sources'> {
  if (!Array.isArray(sources)) return {}
  const urls = sources.slice(0, MAX_SOURCES).flatMap((source: unknown) => {
    const url = isRecord(source) ? source['url'] : undefined
    return isText(url, MAX_ADDRESS) && isRemote(url) ? [url.trim()] : []
  })
  return urls.length === 0 ? {} : { sources: urls }
}

const readMark = ({ any_content: mark }: Fields) => (mark === true ? { anyContent: true } : {})

/** An invalid size only costs the check by it. */
const readSize = ({ size_bytes: bytes }: Fields) =>
  typeof bytes === 'number' && Number.isSafeInteger(bytes) && bytes > 0 ? { sizeBytes: bytes } : {}

function readCapture(fields: Fields): Result<PlannedOrder, string> {
  const { source_disk_serial: disk, name, generalize, upload } = fields
  if (!isText(disk, MAX_IDENTITY)) return refuse(NO_DISK)
  const seen = readSeen(fields['source_disk'])
  if (seen === undefined) return refuse(WRONG_SEEN)
  if (!isText(name, MAX_IDENTITY)) return refuse('it names no image to make')
  const { url, token } = isRecord(upload) ? upload : NO_UPLOAD
  const isUsable = isText(url, MAX_ADDRESS) && parseHttpTarget(url.trim()) !== null
  if (!isUsable || !isText(token, MAX_ADDRESS))
    return refuse('the upload of the captured image has no address, or no token')
  return accept({
    mode: 'capture',
    disk: disk.trim(),
    ...(seen === null ? {} : { seen }),
    name: name.trim(),
    generalize: generalize === true,
    upload: { base: url.trim().replace(/\/+$/, ''), token: token.trim() },
  })
}

const NO_UPLOAD: Fields = {}

/** In place of an invalid catalog the server's own serves. */
function readInteractive({ catalog, reason }: Fields): Result<PlannedOrder, string> {
  const isUsable = isText(catalog, MAX_ADDRESS) && isRemote(catalog)
  return accept({
    mode: 'interactive',
    catalog: isUsable ? catalog.trim() : null,
    reason: wordsOf(reason),
  })
}

/** Null: none; undefined: invalid, which must not pass for none. */
function readDigest(digest: unknown): string | null | undefined {
  if (digest === undefined || digest === null || digest === '') return null
  const hex = /^\s*(?:sha256:)?([0-9a-f]{64})\s*$/i.exec(typeof digest === 'string' ? digest : '')
  return hex?.[1]?.toLowerCase()
}

/** Null: none; undefined: invalid, which must not pass for none. */
function readSeen(seen: unknown): PickedDisk | null | undefined {
  if (seen === undefined || seen === null) return null
  const parsed = PickedDiskSchema.safeParse(seen)
  return parsed.success ? parsed.data : undefined
}

/** Null: none; undefined: invalid, which must not pass for none. */
function readTicket(ticket: unknown): FirstBootTicket | null | undefined {
  if (ticket === undefined || ticket === null) return null
  if (!isRecord(ticket)) return undefined
  const { url, token } = ticket
  return isText(url, MAX_ADDRESS) && isText(token, MAX_IDENTITY) ? { url, token } : undefined
}

/** A server may name other servers, never files of this machine. */
function isRemote(address: string): boolean {
  const location = parseLocation(address.trim())
  return location.ok && (location.value.kind === 'http' || location.value.kind === 'oras')
}

/** Null: a newer plan orders no flash of these bytes, or does not name the file. */
export function findRenewed(
  { sha256 }: Pick<NamedFlash, 'sha256'>,
  newer: PlannedOrder,
  location: string,
): string | null {
  if (newer.mode !== 'flash' || newer.sha256 === null || newer.sha256 !== sha256) return null
  const wanted = nameFile(location)
  const addresses = [...(newer.sources ?? []), newer.image]
  return addresses.find((address) => nameFile(address) === wanted) ?? null
}

/** The address without its signature. */
const nameFile = (address: string): string => address.split('?', 1)[0] ?? ''

/** The refusal lists the disks. */
export function findDisk(
  disks: readonly InventoryDisk[],
  name: string,
  seen: PickedDisk | null = null,
): Result<InventoryDisk, string> {
  const found = findPicked(disks, { name, seen })
  if (found.ok) return found
  const disk = quote(name)
  switch (found.refusal.why) {
    case 'disk-missing':
      return refuse(describeMissing(disks, disk))
    case 'disk-ambiguous': {
      const paths = found.refusal.disks.map(({ path }) => printable(path)).join(', ')
      const count = found.refusal.disks.length
      return refuse(
        count === 1
          ? `${count} disk of this machine is called ${disk}: ${paths}.`
          : `${count} disks of this machine are called ${disk}: ${paths}.`,
      )
    }
    case 'disk-changed': {
      const [was, is] = [renderPicked(found.refusal.was), renderPicked(found.refusal.is)]
      return refuse(`Another disk is at ${disk}: ${is}. The selected disk was ${was}.`)
    }
  }
}

function describeMissing(disks: readonly InventoryDisk[], disk: string): string {
  const known = disks.map(
    (each) => `${printable(each.path)} ${quote(identifyDisk(each) ?? 'unnamed')}`,
  )
  return known.length === 0
    ? `The disk ${disk} is not in this machine: it has no disks.`
    : `The disk ${disk} is not in this machine: it has ${known.slice(0, 8).join(', ')}.`
}

const isText = (value: unknown, most: number): value is string =>
  typeof value === 'string' && value.trim() !== '' && value.length <= most

const quote = (text: string) => printable(text.length > 80 ? `${text.slice(0, 80)}…` : text)

function wordsOf(value: unknown): string | null {
  if (typeof value !== 'string') return null
  return printable(value.trim().slice(0, MAX_WORDS)) || null
}

// What a server orders, however it said so: in a plan (`plan.ts`), or in the kernel's arguments (`kernel-order.ts`).

/** `Flash`: whether it always names its disk, as plans do. */
export type Order<Flash extends OrderedFlash = OrderedFlash> =
  | Flash
  | CaptureByPlan
  | OrderedWizard
  | { readonly mode: 'inventory' }
  | { readonly mode: 'exit'; readonly reason: string | null }

export interface OrderedFlash {
  readonly mode: 'flash'
  /** An http(s) URL or an oras reference. */
  readonly image: string
  /** Asked for the same image first, in this order. */
  readonly sources?: readonly string[]
  /** As `target_disk_serial` spells it; null: the only disk that needs no question. */
  readonly disk: string | null
  /** What the disk was when picked by another name than its serial number. */
  readonly seen?: PickedDisk
  readonly name: string | null
  readonly format: ImageFormat | null
  /** Of the stored bytes, in lower case. */
  readonly sha256: string | null
  /** Bytes as stored, by the server's catalog. */
  readonly sizeBytes?: number
  readonly registerUefiBoot: boolean
  readonly grow: boolean
  readonly delta: boolean
  /** The operator said that it is an image, whatever it looks like. */
  readonly anyContent?: boolean
  /** Lower case. */
  readonly indexSha256: string | null
  readonly firstBoot: FirstBootTicket | null
  readonly provisioning?: ProvisioningMode
}

export interface NamedFlash extends OrderedFlash {
  readonly disk: string
}

export interface CaptureByPlan {
  readonly mode: 'capture'
  readonly disk: string
  readonly seen?: PickedDisk
  readonly name: string
  readonly generalize: boolean
  /** Without a slash at its end. */
  readonly upload: { readonly base: string; readonly token: string }
}

/** `catalog` null: the server's own. */
export interface OrderedWizard {
  readonly mode: 'interactive'
  readonly catalog: string | null
  readonly reason: string | null
}

export type ProvisioningMode = Provisioning['mode']

export interface FirstBootTicket {
  readonly url: string
  readonly token: string
}
