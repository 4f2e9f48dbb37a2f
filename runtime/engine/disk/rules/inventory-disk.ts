/** A disk as this machine reports it to the server ("InventoryDisk"). */
import type { SurveyedDisk } from './disk.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'

/** The server refuses the whole list for a longer text. */
const MAX = {
  path: 255,
  size: 32,
  vendor: 64,
  model: 128,
  serial: 128,
  tran: 32,
  name: 122,
} as const
/** The server only counts further ones. */
const MAX_DISKS = 1024
export const MAX_FOR_OLDER_SERVERS = 64

/** Flashable ones first, as a server may keep fewer. `byPath`: names of /dev/disk/by-path. */
export const listInventory = (
  disks: readonly SurveyedDisk[],
  byPath: ReadonlyMap<string, string>,
): readonly InventoryDisk[] =>
  disks
    .filter(({ path }) => path.length <= MAX.path)
    .toSorted((a, b) => Number(isKeptBack(a)) - Number(isKeptBack(b)))
    .slice(0, MAX_DISKS)
    .map((disk) => toInventory(disk, byPath.get(disk.device.node) ?? byPath.get(disk.path) ?? null))

const isKeptBack = ({ device: { readonly, identity, uses } }: SurveyedDisk): boolean =>
  readonly || identity.sizeBytes === 0 || uses.length > 0

function toInventory(
  { path, removable, device }: SurveyedDisk,
  name: string | null,
): InventoryDisk {
  const { vendor, model, tran, readonly, identity } = device
  return {
    path,
    size: renderListedSize(identity.sizeBytes),
    vendor: cut(vendor, MAX.vendor),
    model: cut(model, MAX.model),
    // Part of a serial would not find the disk again.
    serial: fitting(identity.serial, MAX.serial),
    tran: cut(tran, MAX.tran),
    removable,
    readonly,
    wwn: fitting(identity.wwn, MAX.name),
    by_path: fitting(name, MAX.name),
    size_bytes: identity.sizeBytes,
  }
}

const UNITS = ['B', 'K', 'M', 'G', 'T', 'P']

/** As lsblk: `465.8G`, `64M`. */
export function renderListedSize(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(5, Math.floor(Math.log2(bytes) / 10))
  const value = bytes / 1024 ** power
  return `${Number(value.toFixed(1))}${UNITS[power] ?? ''}`
}

const cut = (text: string | null, most: number) => text?.slice(0, most) ?? null
const fitting = (text: string | null, most: number) =>
  text !== null && text.length <= most ? text : null

/** By disk; of several links the first by name. */
export function chooseNames(
  links: readonly { readonly name: string; readonly node: string }[],
): ReadonlyMap<string, string> {
  const whole = links.filter(({ name }) => !/-part\d+$/.test(name))
  const sorted = whole.toSorted((a, b) => (a.name < b.name ? 1 : -1))
  return new Map(sorted.map(({ name, node }) => [node, name]))
}
