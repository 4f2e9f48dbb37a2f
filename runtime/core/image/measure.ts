/** Finds out how many bytes an image holds once decoded, and whether its headers are sound. */
import { parseBzip2Header, renderBzip2Refusal } from './bzip2.ts'
import { measureGzip, renderGzipRefusal } from './gzip.ts'
import { type ImageFormat } from './image.ts'
import { parseQcow2Header, renderQcow2Refusal } from './qcow2.ts'
import { known, refused, type RangeStep, UNKNOWN_SIZE } from './range.ts'
import { measureXz, renderXzRefusal } from './xz.ts'
import { measureZstd } from './zstd-size.ts'
import { renderZstdRefusal } from './zstd.ts'

interface MeasureInput {
  /** The file's first bytes: MEASURE_HEAD_BYTES, or all where it is shorter. */
  readonly head: Buffer
  /** Null where the source does not say. */
  readonly fileBytes: number | null
  /** Whether many small reads cost little: a file does not mind, a server does. */
  readonly isNear: boolean
}

/** A refusal is a clause in words, to stand after the image's name. */
export type Measure = RangeStep<string>

export const MEASURE_HEAD_BYTES = 512

type Sized = MeasureInput & { readonly fileBytes: number }

const MEASURES: Readonly<Record<Exclude<ImageFormat, 'qcow2'>, (input: Sized) => Measure>> = {
  img: ({ fileBytes }) => known({ kind: 'exact', bytes: fileBytes }),
  'img.zst': ({ fileBytes, isNear }) =>
    inWords(measureZstd(fileBytes, isNear ? 'walk' : 'glance'), renderZstdRefusal),
  'img.xz': ({ head, fileBytes }) => inWords(measureXz(head, fileBytes), renderXzRefusal),
  'img.gz': ({ head, fileBytes }) => inWords(measureGzip(head, fileBytes), renderGzipRefusal),
  'img.bz2': ({ head }) => measureBzip2(head),
}

/** The first step towards an image's virtual size; its content is known to be of this format. */
export function measureImage(format: ImageFormat, input: MeasureInput): Measure {
  const { head, fileBytes } = input
  if (format === 'qcow2') return measureQcow2(head, fileBytes)
  return fileBytes === null ? known(UNKNOWN_SIZE) : MEASURES[format]({ ...input, fileBytes })
}

function measureBzip2(head: Buffer): Measure {
  const header = parseBzip2Header(head)
  return header.ok ? known(UNKNOWN_SIZE) : refused(renderBzip2Refusal(header.refusal))
}

function measureQcow2(head: Buffer, fileBytes: number | null): Measure {
  const header = parseQcow2Header(head, fileBytes)
  return header.ok
    ? known({ kind: 'exact', bytes: header.value.virtualBytes })
    : refused(renderQcow2Refusal(header.refusal))
}

function inWords<Refusal>(step: RangeStep<Refusal>, render: (refusal: Refusal) => string): Measure {
  if (step.kind === 'known') return step
  if (step.kind === 'refused') return refused(render(step.refusal))
  return { ...step, take: (bytes) => inWords(step.take(bytes), render) }
}
