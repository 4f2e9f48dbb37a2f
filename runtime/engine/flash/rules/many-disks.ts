/** Finds out that two targets of one flash are, or lie on, the same disk. Pure. */
import type { TargetFacts } from '../../disk/rules/disk.ts'
import type { FlashRefusal } from './flash.ts'

/** `others`: the targets that were named before it. */
export function findSameDisk(
  { path, device }: TargetFacts,
  others: readonly TargetFacts[],
): FlashRefusal | null {
  if (device === null) return null
  const same = others.find(
    (other) =>
      other.device !== null &&
      (other.device.node === device.node ||
        isPartOf(device.node, other.device.node) ||
        isPartOf(other.device.node, device.node)),
  )
  return same === undefined ? null : { why: 'same-disk', target: path, as: same.path }
}

/** `/dev/sda1` of `/dev/sda`, `/dev/nvme0n1p2` of `/dev/nvme0n1`; a disk's name ends in a digit or not. */
function isPartOf(part: string, disk: string): boolean {
  if (!part.startsWith(disk)) return false
  const rest = part.slice(disk.length)
  return /\d$/.test(disk) ? /^p\d+$/.test(rest) : /^\d+$/.test(rest)
}
