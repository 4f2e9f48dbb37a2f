/** Finds out how many bytes an image holds once decoded, and whether its headers are sound. */
import { measureBzip2 } from './bzip2.ts'
import { measureGzip } from './gzip.ts'
import { type ImageFormat } from './image.ts'
import { parseQcow2Header, renderQcow2Refusal } from './qcow2.ts'
import { known, refused, type RangeStep, UNKNOWN_SIZE } from './range.ts'
import { measureXz } from './xz.ts'
import { measureZstd } from './zstd-size.ts'

interface MeasureInput {
  /** The file's first bytes: MEASURE_HEAD_BYTES, or all where it is shorter. */
  readonly head: Buffer
  /** Null where the source does not say. */
  readonly fileBytes: number | null
  /** Whether many small reads cost little: a file does not mind, a server does. */
  readonly isNear: boolean
}

export const MEASURE_HEAD_BYTES = 512

type Sized = MeasureInput & { readonly fileBytes: number }

const MEASURES: Readonly<Record<Exclude<ImageFormat, 'qcow2'>, (input: Sized) => RangeStep>> = {
  img: ({ fileBytes }) => known({ kind: 'exact', bytes: fileBytes }),
  'img.zst': ({ fileBytes, isNear }) => measureZstd(fileBytes, isNear ? 'walk' : 'glance'),
  'img.xz': ({ head, fileBytes }) => measureXz(head, fileBytes),
  'img.gz': ({ head, fileBytes }) => measureGzip(head, fileBytes),
  'img.bz2': ({ head }) => measureBzip2(head),
}

/** The first step towards an image's virtual size; its content is known to be of this format. */
export function measureImage(format: ImageFormat, input: MeasureInput): RangeStep {
  const { head, fileBytes } = input
  if (format === 'qcow2') return measureQcow2(head, fileBytes)
  return fileBytes === null ? known(UNKNOWN_SIZE) : MEASURES[format]({ ...input, fileBytes })
}

function measureQcow2(head: Buffer, fileBytes: number | null): RangeStep {
  const header = parseQcow2Header(head, fileBytes)
  return header.ok
    ? known({ kind: 'exact', bytes: header.value.virtualBytes })
    : refused(renderQcow2Refusal(header.refusal))
}
