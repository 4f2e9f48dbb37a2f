/** The present content of a disk: its partitions, or the file system on the whole disk. */
import type { SysBlock } from './block-graph.ts'
import type { DiskPart } from './disk.ts'
import type { LsblkNode } from './lsblk.ts'
import { lsblkName, type Sightings } from './sightings.ts'

const SECTOR = 512

export function listParts(
  { blocks, rows }: Pick<Sightings, 'blocks' | 'rows'>,
  disk: string,
): readonly DiskPart[] {
  const parts = blocks.filter(({ partition }) => partition?.of === disk)
  if (parts.length === 0) return listWhole(rows.get(lsblkName(disk)))
  return parts
    .toSorted((one, two) => startOf(one) - startOf(two))
    .map((block) => ({
      ...describe(rows.get(lsblkName(block.name)), `/dev/${lsblkName(block.name)}`),
      sizeBytes: block.partition === null ? 0 : (block.partition.end - startOf(block)) * SECTOR,
    }))
}

const startOf = ({ partition }: SysBlock) => partition?.start ?? 0

/** A disk without a table may hold a file system, or be a member of something. */
function listWhole(node: LsblkNode | undefined): readonly DiskPart[] {
  const hasContent = (node?.fstype ?? node?.label ?? null) !== null
  return node === undefined || !hasContent ? [] : [{ ...describe(node, node.path), sizeBytes: 0 }]
}

const describe = (node: LsblkNode | undefined, device: string) => ({
  device: node?.path ?? device,
  fstype: node?.fstype ?? null,
  label: node?.label ?? null,
  partlabel: node?.partlabel ?? null,
})
