/** The part of a machine that both release lines share, and the disks that it reports. */
import type { Mac } from '#kit/net/rules/mac.ts'
import { z } from 'zod'
import type { FirmwareFacts } from '#engine/inventory/rules/firmware-facts.ts'
import { plainWords, printable } from '#kit/foundation/printable.ts'
import { renderDiskSize } from '#kit/foundation/size.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

/** The same in both specifications. Timestamps are ISO 8601 with `Z`. */
export interface MachineBase {
  readonly mac: Mac
  readonly discovered_at: string | null
  readonly last_seen_at: string | null
  readonly last_seen_ip: string | null
  readonly last_flashed_at: string | null
  readonly created_at: string
  readonly updated_at: string
}

/** "InventoryDisk"; every text comes from the machine itself and is hostile. */
export interface InventoryDisk {
  readonly path: string
  readonly size: string | null
  readonly vendor: string | null
  readonly model: string | null
  readonly serial: string | null
  readonly tran: string | null
  readonly removable: boolean
  readonly readonly: boolean
  /** Not in the specification: for disks without a serial. */
  readonly wwn?: string | null | undefined
  readonly by_path?: string | null | undefined
  readonly size_bytes?: number | null | undefined
}

/** A larger hardware tree is left out; the disks are stored anyway. */
export const MAX_HARDWARE_BYTES = 8 * 2 ** 20

/** Body of `POST /pxe/{mac}/inventory`, checked. */
export interface Inventory {
  readonly disks: readonly InventoryDisk[]
  readonly disksLeftOut: number
  /** Machines that nobody has set up have too many disks together (`list-budget.ts`). */
  readonly isShortened?: boolean
  /** JSON as it came; null: absent, or left out. */
  readonly hardware: Uint8Array | null
  /** Null: the tree was not read for them. */
  readonly ownSerials: readonly string[] | null
  readonly isHardwareLeftOut: boolean
  /** Firmware enforced it; null: unknown. */
  readonly secureBoot: boolean | null
  /** IPv4, as the machine reported; null: it did not. Nobody has checked it. */
  readonly bmcAddress: string | null
  /** Null: it did not report it. */
  readonly firmware?: FirmwareFacts | null
}

/**
 * A place among machines that flash: `offered`: sent to flash; `passed`: sent elsewhere; `planned`:
 * its plan is to flash; `released`: it no longer flashes.
 */
export type FlashSlot = 'queued' | 'offered' | 'passed' | 'planned' | 'released'

// What disks are picked by: their serial numbers, else names that do tell them apart (docs/decisions/0033).

type NamedDisk = Pick<InventoryDisk, 'serial' | 'wwn' | 'by_path'>

const text = z.string().max(128).nullable()

/** The disk when it was picked by another name than its serial number. */
export const PickedDiskSchema = z.object({
  size: text,
  size_bytes: z.int().min(0).nullable(),
  model: text,
  serial: text,
})
export type PickedDisk = Readonly<z.output<typeof PickedDiskSchema>>

export interface DiskPick {
  /** As `target_disk_serial` spells it. */
  readonly name: string
  /** Null: picked by its serial number, or nobody knew what it was. */
  readonly seen: PickedDisk | null
}

type PickKind = 'serial' | 'wwn' | 'eui' | 'path'

/** A serial number may have such a prefix too: serials are always compared as well. */
export const kindOf = (name: string): PickKind =>
  name.includes(':')
    ? ((['wwn', 'eui', 'path'] as const).find((kind) => name.startsWith(`${kind}:`)) ?? 'serial')
    : 'serial'

/**
 * The best first: serial number, `wwn:…` (of NVMe namespaces `eui:…`, EUI-64 or NGUID), `path:…`
 * (of /dev/disk/by-path).
 */
function listNames({ serial, wwn, by_path }: NamedDisk): readonly string[] {
  const path = trim(by_path)
  const names = [trim(serial), nameWorldwide(trim(wwn)), path && `path:${path}`]
  return names.filter((name) => name !== '')
}

const trim = (value: string | null | undefined) => value?.trim() ?? ''

function nameWorldwide(wwn: string): string {
  if (isPlaceholder(wwn)) return ''
  const eui = /^eui\.([0-9a-f]+)$/i.exec(wwn)?.[1]
  return eui === undefined ? `wwn:${wwn}` : `eui:${eui}`
}

/** Empty, or firmware's stand-in: digits that are all 0, or all f. */
const isPlaceholder = (wwn: string) => /^(?:(?:0x|eui\.|naa\.|uuid\.)?(?:[0-]*|[f-]*))$/i.test(wwn)

export const identifyDisk = (disk: NamedDisk): string | null => listNames(disk)[0] ?? null

/** The first name that only this disk of the machine has; null: none. */
export function nameAmong(disk: NamedDisk, all: readonly NamedDisk[]): string | null {
  const counts = countNames(all)
  return listNames(disk).find((name) => (counts.get(name) ?? 0) < 2) ?? null
}

/** Disks of the machine with this serial number, itself included; 0: it has none. */
export const countTwins = (disk: NamedDisk, all: readonly NamedDisk[]): number =>
  countNames(all).get(trim(disk.serial)) ?? 0

/** Pages ask for each disk, and a list may have a thousand. */
const counted = new WeakMap<readonly NamedDisk[], ReadonlyMap<string, number>>()

function countNames(all: readonly NamedDisk[]): ReadonlyMap<string, number> {
  const known = counted.get(all)
  if (known !== undefined) return known
  const counts = new Map<string, number>()
  for (const name of all.flatMap(listNames)) counts.set(name, (counts.get(name) ?? 0) + 1)
  counted.set(all, counts)
  return counts
}

/** Called for each disk of each plan: without a prefix it can only be a serial number. */
const isCalled = (disk: NamedDisk, name: string): boolean =>
  trim(disk.serial) === name || (kindOf(name) !== 'serial' && listNames(disk).includes(name))

/** Where nobody knows what was picked, only a disk without a better name. */
const isMeant = (disk: NamedDisk, { name, seen }: DiskPick): boolean =>
  kindOf(name) === 'serial' || seen !== null || identifyDisk(disk) === name

export type PickRefusal =
  | { readonly why: 'disk-missing' }
  | { readonly why: 'disk-ambiguous'; readonly disks: readonly InventoryDisk[] }
  | { readonly why: 'disk-changed'; readonly was: PickedDisk; readonly is: PickedDisk }

export function findPicked(
  disks: readonly InventoryDisk[],
  pick: DiskPick,
): Result<InventoryDisk, PickRefusal> {
  const [disk, ...others] = disks.filter((each) => isCalled(each, pick.name))
  if (others.length > 0 && disk !== undefined) {
    return refuse({ why: 'disk-ambiguous', disks: [disk, ...others] })
  }
  if (disk === undefined || !isMeant(disk, pick)) return refuse({ why: 'disk-missing' })
  const was = kindOf(pick.name) === 'path' ? pick.seen : null
  if (was === null) return accept(disk)
  const is = pickSeen(disk)
  return isSame(was, is) ? accept(disk) : refuse({ why: 'disk-changed', was, is })
}

function isSame(was: PickedDisk, is: PickedDisk): boolean {
  const isExact = was.size_bytes !== null && is.size_bytes !== null
  const isSameSize = isExact ? was.size_bytes === is.size_bytes : was.size === is.size
  return isSameSize && was.model === is.model && was.serial === is.serial
}

/** `4 TB, WDC WD40EFRX, WD-WCC4E0123456`; printable. */
export const renderPicked = ({ size, size_bytes, model, serial }: PickedDisk): string =>
  [size_bytes === null ? size : renderDiskSize(size_bytes), model, serial]
    .filter((part) => part !== null)
    .map(printable)
    .join(', ') || 'a disk without size, model and serial number'

const pickSeen = (disk: InventoryDisk): PickedDisk => ({
  size: plainWords(trim(disk.size)) || null,
  size_bytes: disk.size_bytes ?? null,
  model: plainWords(trim(disk.model)) || null,
  serial: trim(disk.serial) || null,
})

/** Prefix of a place that is picked anew, as it is now. */
export const ANEW = '+'

/** The pick `before` stays where its name is asked for again, with what was seen then. */
export function pickDisk(
  asked: string | null,
  before: DiskPick | null,
  disks: readonly InventoryDisk[] | null,
): DiskPick | null {
  if (asked === null) return null
  const name = asked.startsWith(`${ANEW}path:`) ? asked.slice(ANEW.length) : asked
  if (name === asked && name === before?.name) return before
  const called = (disks ?? []).filter((each) => isCalled(each, name))
  return { name, seen: pickOnly(name, called) }
}

/**
 * From the first list on it is known what was picked. At a place only a disk without a better name:
 * others may have come since.
 */
export function keepPick(pick: DiskPick, disks: readonly InventoryDisk[]): DiskPick {
  const { name, seen } = pick
  if (seen !== null) return pick
  const isIt = (disk: NamedDisk) =>
    isCalled(disk, name) && (kindOf(name) !== 'path' || isMeant(disk, pick))
  return { name, seen: pickOnly(name, disks.filter(isIt)) }
}

function pickOnly(name: string, [disk, ...others]: readonly InventoryDisk[]): PickedDisk | null {
  const isOne = disk !== undefined && others.length === 0
  return isOne && kindOf(name) !== 'serial' ? pickSeen(disk) : null
}

/** The client reports no name of this kind for any disk. */
export const isListBlind = ({ name }: DiskPick, disks: readonly InventoryDisk[] | null): boolean =>
  kindOf(name) !== 'serial' && (disks ?? []).every((disk) => !trim(disk.wwn) && !trim(disk.by_path))

/** Live systems before `disk-id` would not find it, or not check what is at its place. */
export function wantsDiskId(name: string, disks: readonly InventoryDisk[] | null): boolean {
  const kind = kindOf(name)
  if (kind !== 'wwn' || disks === null) return kind === 'path' || kind === 'eui'
  return disks.some(
    (disk) =>
      isCalled(disk, name) && (trim(disk.serial) !== '' || name !== `wwn:${trim(disk.wwn)}`),
  )
}
