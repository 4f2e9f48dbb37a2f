/** What is done with each image format: how it is opened, measured, and checked to its end. */
import type { ImageFormat } from '#appliance/disk-images.ts'
import type { Shell } from '#kit/host/shell.ts'
import type { Blocks } from './stream-blocks.ts'
import { FORMATS } from './rules/format.ts'
import { known, UNKNOWN_SIZE, type RangeStep } from './rules/image.ts'
import type { SeekableSource, Source } from './sources/source.ts'

interface MeasureInput {
  /** MEASURE_HEAD_BYTES, or all where the file is shorter. */
  readonly head: Buffer
  /** Null: the source does not say. */
  readonly fileBytes: number | null
  /** Many small reads cost little: true of a file, not of a server. */
  readonly isNear: boolean
}

export const MEASURE_HEAD_BYTES = 512

interface Format {
  /** Faults come from `next`, but for a missing tool. */
  readonly open: (source: Source, shell: Shell) => Promise<Blocks>
  /** The first step towards the virtual size; the format is verified already. */
  readonly measure: (input: MeasureInput) => Promise<RangeStep>
  /** A Fault for a wrong end of a file that could be measured; null: measuring finds it. */
  readonly checkEnd: ((source: SeekableSource) => Promise<void>) | null
}

// Lazy: a flash loads only the decoder of its image.
const ROWS: Readonly<Record<ImageFormat, Format>> = {
  'img.zst': {
    open: async (source) => (await import('./zstd-decoder.ts')).openZstd(source),
    measure: ofLength(async (fileBytes, { isNear }) =>
      (await import('./rules/zstd.ts')).measureZstd(fileBytes, isNear ? 'walk' : 'glance'),
    ),
    checkEnd: null,
  },
  'img.xz': {
    open: async (source, shell) => (await loadTools()).openWithTool(source, 'img.xz', shell),
    measure: ofLength(async (fileBytes, { head }) =>
      (await import('./rules/xz.ts')).measureXz(head, fileBytes),
    ),
    checkEnd: null,
  },
  'img.gz': {
    open: openGzip,
    measure: ofLength(async (fileBytes, { head }) =>
      (await import('./rules/gzip.ts')).measureGzip(head, fileBytes),
    ),
    checkEnd: async (source) => await decodeAll(await openGzip(source)),
  },
  'img.bz2': {
    open: async (source, shell) => {
      const { openWithTool, scanBzip2 } = await loadTools()
      return await openWithTool(source, 'img.bz2', shell, scanBzip2(source))
    },
    measure: ofLength(async (_fileBytes, { head }) =>
      (await import('./rules/bzip2.ts')).measureBzip2(head),
    ),
    checkEnd: async (source) => await (await loadTools()).checkBzip2End(source),
  },
  qcow2: {
    open: async (source) => (await import('./qcow2-blocks.ts')).openQcow2(source),
    measure: async ({ head, fileBytes }) =>
      (await import('./rules/qcow2.ts')).measureQcow2(head, fileBytes),
    checkEnd: async (source) => await (await import('./qcow2-blocks.ts')).checkClusters(source),
  },
  img: {
    open: async (source) => (await import('./stream-blocks.ts')).openRaw(source),
    measure: ofLength((fileBytes) => Promise.resolve(known({ kind: 'exact', bytes: fileBytes }))),
    checkEnd: null,
  },
}

const loadTools = () => import('./stream-blocks.ts')

async function openGzip(source: Source): Promise<Blocks> {
  return (await import('./stream-blocks.ts')).openGzip(source)
}

function ofLength(
  measure: (fileBytes: number, input: MeasureInput) => Promise<RangeStep>,
): Format['measure'] {
  return async (input) =>
    input.fileBytes === null ? known(UNKNOWN_SIZE) : await measure(input.fileBytes, input)
}

async function decodeAll(decoded: Blocks): Promise<void> {
  await using blocks = decoded
  const scratch = Buffer.allocUnsafe(1024 * 1024)
  while ((await blocks.next(scratch)) !== null);
}

export const measureImage = (format: ImageFormat, input: MeasureInput): Promise<RangeStep> =>
  ROWS[format].measure(input)

/** Rejects with a Fault `image-broken`. */
export async function checkFormatEnd(format: ImageFormat, source: SeekableSource): Promise<void> {
  await ROWS[format].checkEnd?.(source)
}

export type Decoders = ReturnType<typeof createDecoders>

export const createDecoders = ({ shell }: { readonly shell: Shell }) => ({
  /** A Fault `tool-missing` where the decoder is not installed. */
  async check(format: ImageFormat): Promise<void> {
    const { tools } = FORMATS[format]
    if (tools.length > 0) await (await loadTools()).findDecoder(shell, format)
  },
  open: async (source: Source, format: ImageFormat): Promise<Blocks> =>
    await ROWS[format].open(source, shell),
})
