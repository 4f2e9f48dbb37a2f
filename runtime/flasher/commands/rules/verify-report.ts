/** What `flasher verify` says, as text and in its document. */
import type { ComparedArea, Verified } from '#engine/verify/rules/disk-comparison.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDuration, renderExactSize } from '#kit/foundation/size.ts'
import type { DocumentFields } from './exit-codes.ts'

/** In bytes. */
export const countDifferences = ({ areas }: Pick<Verified, 'areas'>): number =>
  areas.reduce((sum, { differing }) => sum + differing, 0)

export const verifiedFields = (verified: Verified): DocumentFields => ({
  disk: verified.disk.path,
  disk_size_bytes: verified.disk.sizeBytes,
  image: verified.image.name,
  format: verified.image.format,
  compared_bytes: verified.bytes,
  differing_bytes: countDifferences(verified),
  areas: verified.areas.map((area) => ({
    partition: area.number,
    offset: area.offset,
    size_bytes: area.bytes,
    differing_bytes: area.differing,
    first_difference: area.firstDifference,
    read_only: area.readOnly,
  })),
  seconds: Math.round(verified.seconds * 1000) / 1000,
})

/** Equal areas outside of partitions are left out. */
export function renderVerified(verified: Verified): string {
  const { disk, image, bytes, areas, seconds } = verified
  const lines = areas
    .filter(({ number, differing }) => number !== null || differing > 0)
    .map((area) => `  ${renderArea(area)}`)
  const rest = disk.sizeBytes - bytes
  return [
    printable(
      `${disk.path}: ${renderExactSize(bytes)} compared with ${image.name}, in ${renderDuration(seconds)}`,
    ),
    ...lines,
    ...(rest > 0 ? [`  behind the image: ${renderExactSize(rest)} of the disk, not compared`] : []),
    '',
  ].join('\n')
}

function renderArea({ number, bytes, offset, differing, firstDifference, readOnly }: ComparedArea) {
  const what =
    number === null
      ? `outside of partitions, from ${offset}`
      : `partition ${number}${readOnly === null ? '' : ` (${readOnly}, read-only)`}`
  const found =
    differing === 0 ? 'equal' : `${renderCount(differing)}, the first at ${firstDifference}`
  return `${what}: ${renderExactSize(bytes)}, ${found}`
}

const renderCount = (bytes: number) => (bytes === 1 ? '1 byte differs' : `${bytes} bytes differ`)
