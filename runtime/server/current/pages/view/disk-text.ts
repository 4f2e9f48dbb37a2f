/** Disks as texts: model, size, transport, and warnings. */
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { countTwins, nameAmong, pickDisk } from '#engine/inventory/rules/disk-pick.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { printable } from '#kit/foundation/printable.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
import { renderDiskBytes } from '#kit/web/ui/elements.ts'
import { fillHtml, type Content } from '#kit/web/ui/html.ts'
import { findDiskMismatch } from '#server/current/rules/target.ts'

const t = PAGES.view.disk

const UNITS = 'BKMGTPE'

/** Null: unknown. lsblk's `465.8G` is in binary units. */
export function bytesOf({ size, size_bytes }: InventoryDisk): number | null {
  if (size_bytes != null) return size_bytes
  const parts = /^(\d+(?:\.\d+)?)([BKMGTPE])?$/.exec(size ?? '')
  if (parts === null) return null
  return Math.round(Number(parts[1]) * 1024 ** UNITS.indexOf(parts[2] ?? 'B'))
}

/** Binary units on hover; the machine's own text if that is no size. */
export function renderDiskSize(disk: InventoryDisk): Content {
  const bytes = bytesOf(disk)
  return bytes === null ? (disk.size ?? t.unknownSize) : renderDiskBytes(bytes)
}

/** `Samsung SSD 980`, else the path. */
export const modelOf = ({ vendor, model, path }: InventoryDisk): string =>
  [vendor, model]
    .map((text) => text?.trim() ?? '')
    .filter((text, at, all) => text !== '' && !(at === 0 && all[1]?.startsWith(text)))
    .join(' ') || printable(path)

const TRANSPORTS: Readonly<Record<string, string>> = t.transports

const transportOf = ({ tran }: InventoryDisk): string =>
  tran === null ? t.unknownTransport : (TRANSPORTS[tran] ?? tran)

/** `500 GB, NVMe`. */
export const aboutDisk = (disk: InventoryDisk): Content =>
  fillHtml(t.about, { size: renderDiskSize(disk), transport: transportOf(disk) })

interface DiskWarning {
  readonly text: string
  readonly isHard: boolean
}

/** `all`: the machine's disks; `image` null: none is assigned. */
export function warnOf(
  disk: InventoryDisk,
  all: readonly InventoryDisk[],
  image: CatalogEntry | null,
): readonly DiskWarning[] {
  const id = nameAmong(disk, all)
  const twins = countTwins(disk, all)
  const warnings: readonly (DiskWarning | false)[] = [
    id === null && twins < 2 && { text: t.warnings.noSerial, isHard: true },
    disk.readonly && { text: t.warnings.readOnly, isHard: true },
    twins > 1 && { text: fill(t.warnings.sharedSerial, { count: twins }), isHard: id === null },
    isTooSmall(disk, id, image) && { text: t.warnings.tooSmall, isHard: true },
    disk.removable && { text: t.warnings.removable, isHard: false },
  ]
  return warnings.filter((warning) => warning !== false)
}

function isTooSmall(disk: InventoryDisk, id: string | null, image: CatalogEntry | null): boolean {
  const sized = { ...disk, size_bytes: bytesOf(disk) }
  const pick = pickDisk(id, null, [sized])
  if (pick === null || image === null) return false
  return findDiskMismatch([sized], pick, image)?.why === 'disk-too-small'
}
