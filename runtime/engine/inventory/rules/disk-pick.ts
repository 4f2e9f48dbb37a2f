/** What disks are picked by: their serial numbers, else names that do tell them apart (docs/decisions/0033). */
import { z } from 'zod'
import { plainWords, printable } from '../../../kit/foundation/printable.ts'
import { renderDiskSize } from '../../../kit/foundation/size.ts'
import type { InventoryDisk } from './machine.ts'
import { accept, refuse, type Result } from '../../../kit/foundation/result.ts'

type NamedDisk = Pick<InventoryDisk, 'serial' | 'wwn' | 'by_path'>

const text = z.string().max(128).nullable()

/** What a disk was on the day on which it was picked by another name than its serial number. */
export const PickedDiskSchema = z.object({
  size: text,
  size_bytes: z.int().min(0).nullable(),
  model: text,
  serial: text,
})
export type PickedDisk = Readonly<z.output<typeof PickedDiskSchema>>

/** A disk that somebody picked. */
export interface DiskPick {
  /** The name as `target_disk_serial` spells it. */
  readonly name: string
  /** Null: it was picked by its serial number, or nobody knew what it was. */
  readonly seen: PickedDisk | null
}

type PickKind = 'serial' | 'wwn' | 'eui' | 'path'

/**
 * Returns what kind of name this is, by its prefix. A serial number may begin like the other kinds,
 * so a disk is compared by that as well, whatever the kind.
 */
export const kindOf = (name: string): PickKind =>
  name.includes(':')
    ? ((['wwn', 'eui', 'path'] as const).find((kind) => name.startsWith(`${kind}:`)) ?? 'serial')
    : 'serial'

/**
 * All names of a disk, the best first: its serial number, `wwn:…` (of NVMe namespaces `eui:…`, which
 * is their EUI-64 or NGUID), `path:…` (its /dev/disk/by-path name).
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

/** Nothing at all, or what firmware says that was never given one: digits that are all 0, or all f. */
const isPlaceholder = (wwn: string) => /^(?:(?:0x|eui\.|naa\.|uuid\.)?(?:[0-]*|[f-]*))$/i.test(wwn)

/**
 * Returns the name that a disk is picked by where nothing else is said; null when it has no name at
 * all.
 */
export const identifyDisk = (disk: NamedDisk): string | null => listNames(disk)[0] ?? null

/**
 * Returns the first name by which one disk alone is known among all of its machine; null when there
 * is none.
 */
export function nameAmong(disk: NamedDisk, all: readonly NamedDisk[]): string | null {
  const counts = countNames(all)
  return listNames(disk).find((name) => (counts.get(name) ?? 0) < 2) ?? null
}

/**
 * Counts the disks of the machine that are called by the serial number of this one, itself
 * included; 0 when it has none.
 */
export const countTwins = (disk: NamedDisk, all: readonly NamedDisk[]): number =>
  countNames(all).get(trim(disk.serial)) ?? 0

/**
 * The counts of lists that were asked about: pages ask for each disk, and a list may have a
 * thousand.
 */
const counted = new WeakMap<readonly NamedDisk[], ReadonlyMap<string, number>>()

function countNames(all: readonly NamedDisk[]): ReadonlyMap<string, number> {
  const known = counted.get(all)
  if (known !== undefined) return known
  const counts = new Map<string, number>()
  for (const name of all.flatMap(listNames)) counts.set(name, (counts.get(name) ?? 0) + 1)
  counted.set(all, counts)
  return counts
}

/** Each plan asks this of each disk: what has no prefix can only be a serial number. */
const isCalled = (disk: NamedDisk, name: string): boolean =>
  trim(disk.serial) === name ||
  (kindOf(name) !== 'serial' && listNames(disk).includes(toToday(name)))

/** Earlier releases spelled the EUI of a namespace without a serial number `wwn:eui.…`. */
const toToday = (name: string) => (name.startsWith('wwn:eui.') ? `eui:${name.slice(8)}` : name)

/**
 * Whether a pick may mean the disk that is called so. Where nobody knows what was picked, it is a
 * disk that has no better name: earlier releases picked no other ones.
 */
const isMeant = (disk: NamedDisk, { name, seen }: DiskPick): boolean =>
  kindOf(name) === 'serial' || seen !== null || identifyDisk(disk) === toToday(name)

export type PickRefusal =
  | { readonly why: 'disk-missing' }
  | { readonly why: 'disk-ambiguous'; readonly disks: readonly InventoryDisk[] }
  /** Another one is at its place. */
  | { readonly why: 'disk-changed'; readonly was: PickedDisk; readonly is: PickedDisk }

/**
 * Finds the one disk that a pick means. The refusal says whether none or several disks are called
 * so, or whether another disk is at that place now.
 */
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

/**
 * Renders what is known of a picked disk: `4 TB, WDC WD40EFRX, WD-WCC4E0123456`; the text is
 * printable.
 */
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

/** Stands before a place that is picked anew, as it is now. */
export const ANEW = '+'

/**
 * Makes a pick of the name that was asked for, with what `disks` show under it. The pick `before`
 * is kept where its name is asked for again, so that it keeps what was seen then.
 */
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
 * Completes a pick by a new list. A disk that was picked before anybody knew it is known from the
 * first list on. At a place that is only one that has no better name: what else is there may have
 * come since.
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

/** Tells whether a disk is picked by a name of a kind that the client does not report of any disk. */
export const isListBlind = ({ name }: DiskPick, disks: readonly InventoryDisk[] | null): boolean =>
  kindOf(name) !== 'serial' && (disks ?? []).every((disk) => !trim(disk.wwn) && !trim(disk.by_path))

/**
 * Tells whether live systems before `disk-id` would not find this disk by this name, or would not
 * look at what is at its place. `disks` is null while none were reported yet.
 */
export function wantsDiskId(name: string, disks: readonly InventoryDisk[] | null): boolean {
  const kind = kindOf(name)
  if (kind !== 'wwn' || disks === null) return kind === 'path' || kind === 'eui'
  return disks.some(
    (disk) =>
      isCalled(disk, name) && (trim(disk.serial) !== '' || name !== `wwn:${trim(disk.wwn)}`),
  )
}
