/** What of a disk is other than in an image, counted by partition. */
import type { Partition } from '#engine/disk/rules/partition-tables.ts'
import type { ImageFacts } from '#engine/image/rules/image.ts'

export interface ComparedArea {
  /** Null: outside of all partitions, such as the table. */
  readonly number: number | null
  readonly offset: number
  readonly bytes: number
  readonly differing: number
  /** Of the disk; null: all of it is equal. */
  readonly firstDifference: number | null
  /** A format that no system writes to; null: others, or unknown. */
  readonly readOnly: string | null
}

export interface Verified {
  readonly image: ImageFacts
  readonly disk: { readonly path: string; readonly sizeBytes: number }
  /** What was compared: all of the image. What the disk has behind it was not. */
  readonly bytes: number
  readonly areas: readonly ComparedArea[]
  readonly seconds: number
}

interface Counted {
  readonly number: number | null
  readonly offset: number
  readonly end: number
  differing: number
  first: number | null
  readOnly: string | null
}

export type Tally = ReturnType<typeof createTally>

/** `partitions` of the image; those that overlap count for the first of them. */
export function createTally(partitions: readonly Pick<Partition, 'number' | 'offset' | 'bytes'>[]) {
  const areas = listAreas(partitions)
  return {
    /** Both hold the same number of bytes, from the same place. */
    compare(image: Buffer, disk: Buffer, offset: number): void {
      const isSame = image.equals(disk)
      const end = offset + image.length
      for (const area of areas) {
        if (area.end <= offset || area.offset >= end) continue
        const from = Math.max(area.offset, offset)
        const to = Math.min(area.end, end) - offset
        const part = image.subarray(from - offset, to)
        if (from === area.offset) area.readOnly = readOnlyKind(part)
        if (!isSame) countDifferences(area, part, disk.subarray(from - offset, to), from)
      }
    },
    /** `imageBytes`: where the image has ended. */
    finish: (imageBytes: number): readonly ComparedArea[] =>
      areas.flatMap(({ number, offset, end, differing, first, readOnly }) =>
        offset >= imageBytes
          ? []
          : [
              {
                number,
                offset,
                bytes: Math.min(end, imageBytes) - offset,
                differing,
                firstDifference: first,
                readOnly: number === null ? null : readOnly,
              },
            ],
      ),
  }
}

function listAreas(
  partitions: readonly Pick<Partition, 'number' | 'offset' | 'bytes'>[],
): readonly Counted[] {
  const areas: Counted[] = []
  let at = 0
  const add = (number: number | null, end: number) => {
    if (end > at) {
      areas.push({ number, offset: at, end, differing: 0, first: null, readOnly: null })
      at = end
    }
  }
  for (const { number, offset, bytes } of partitions.toSorted((a, b) => a.offset - b.offset)) {
    add(null, offset)
    add(number, offset + bytes)
  }
  add(null, Infinity)
  return areas
}

const STEP_BYTES = 4096

function countDifferences(area: Counted, image: Buffer, disk: Buffer, offset: number): void {
  for (let step = 0; step < image.length; step += STEP_BYTES) {
    const end = Math.min(step + STEP_BYTES, image.length)
    if (image.compare(disk, step, end, step, end) === 0) continue
    for (let at = step; at < end; at += 1) {
      if (image[at] === disk[at]) continue
      area.first ??= offset + at
      area.differing += 1
    }
  }
}

const EROFS_AT = 1024
const EROFS = 0xe0f5_e1e2

/** By the first bytes of a partition. */
function readOnlyKind(start: Buffer): string | null {
  const head = start.toString('latin1', 0, 8)
  if (head.startsWith('hsqs')) return 'squashfs'
  if (head === 'verity\0\0') return 'verity'
  const hasErofs = start.length >= EROFS_AT + 4 && start.readUInt32LE(EROFS_AT) === EROFS
  return hasErofs ? 'erofs' : null
}
