/** The ways to write an image that are compared: what a user would run otherwise, and flasher. */
import type { DeviceKind } from './devices.ts'
import type { BenchFormat, FileFormat, Inputs } from './inputs.ts'

/** The image itself, or with one of 20 frames changed. */
export type DiskContent = 'image' | 'changed'

export interface Method {
  readonly name: string
  /** A shell command line that writes the image to the node. */
  readonly script: (inputs: Inputs, node: string) => string
  /** The figure of this method divided by the first method's must not be above it. */
  readonly bar?: Partial<Readonly<Record<DeviceKind, number>>>
  /** What the disk holds before; absent: an earlier owner's data. */
  readonly holds?: DiskContent
  /** Leaves what it does not write as it was: not comparable byte for byte. */
  readonly leavesStale?: boolean
}

export interface Contest {
  readonly format: BenchFormat
  readonly devices: readonly DeviceKind[]
  /** At most so many runs: these take minutes, and hardly vary. */
  readonly mostRuns?: number
  /** The first is the 1.0 of the others. */
  readonly methods: readonly Method[]
}

const DD = 'bs=4M oflag=direct conv=fsync status=none'
const flasher = (file: string, node: string, more = '', checkout = '.') =>
  `${process.execPath} ${checkout}/runtime/bin/flasher.mjs flash --image ${file} --target ${node} --yes --progress none ${more}`

const piped = (format: Exclude<FileFormat, 'qcow2' | 'raw' | 'frames'>, tool: string): Method => ({
  name: `${tool} -dc | dd ${DD.replace(' status=none', '')}`,
  script: ({ file }, node) => `${tool} -dc ${file[format]} | dd of=${node} ${DD}`,
})

const ours = (
  format: FileFormat,
  bar: NonNullable<Method['bar']>,
  verifiedBar: NonNullable<Method['bar']> = {},
): readonly Method[] => [
  {
    name: 'flasher --no-verify',
    script: ({ file }, node) => flasher(file[format], node, '--no-verify'),
    bar,
  },
  {
    name: 'flasher (read back)',
    script: ({ file }, node) => flasher(file[format], node),
    bar: verifiedBar,
  },
]

const ALL: readonly DeviceKind[] = ['fast', 'throttled', 'memory']

export const CONTESTS: readonly Contest[] = [
  {
    format: 'zst',
    devices: ALL,
    methods: [
      piped('zst', 'zstd'),
      ...ours('zst', { fast: 0.85, throttled: 0.55 }, { fast: 1.1, throttled: 1 }),
      {
        name: 'bmaptool copy --nobmap',
        script: ({ file }, node) => `bmaptool -q copy --nobmap ${file.zst} ${node}`,
      },
      {
        name: 'bmaptool copy --bmap',
        script: ({ file, bmap }, node) => `bmaptool -q copy --bmap ${bmap} ${file.zst} ${node}`,
        leavesStale: true,
      },
    ],
  },
  {
    format: 'gz',
    devices: ALL,
    methods: [piped('gz', 'gzip'), ...ours('gz', { fast: 0.45, throttled: 0.5 })],
  },
  {
    format: 'xz',
    devices: ['fast'],
    mostRuns: 1,
    methods: [piped('xz', 'xz'), ...ours('xz', { fast: 0.8 })],
  },
  {
    format: 'bz2',
    devices: ['fast'],
    mostRuns: 1,
    methods: [piped('bz2', 'bzip2'), ...ours('bz2', { fast: 0.8 })],
  },
  {
    format: 'qcow2',
    devices: ALL,
    methods: [
      {
        name: 'qemu-img convert -O raw && sync',
        script: ({ file }, node) => `qemu-img convert -O raw ${file.qcow2} ${node} && sync ${node}`,
      },
      ...ours('qcow2', { fast: 0.35, throttled: 0.45 }),
      {
        name: 'qemu-img convert -n -W -m8 -t none -O host_device',
        script: ({ file }, node) =>
          `qemu-img convert -n -W -m8 -t none -O host_device ${file.qcow2} ${node} && sync ${node}`,
      },
    ],
  },
  {
    format: 'raw',
    devices: ['fast', 'memory'],
    methods: [
      {
        name: `dd ${DD.replace(' status=none', '')}`,
        script: ({ file }, node) => `dd if=${file.raw} of=${node} ${DD}`,
      },
      ...ours('raw', { fast: 1 }),
    ],
  },
]

/** A changed byte in one of 20 frames that hold data. */
export const changedFrames = ({ dataFrames }: Inputs): readonly number[] =>
  dataFrames.filter((_, n) => n % 20 === 10)

/** Runs of frames that follow one another: the best that reading them can do. */
function readFrames({ dataFrames }: Inputs, node: string, to = '/dev/null'): string {
  const starts = dataFrames.filter((frame) => !dataFrames.includes(frame - 1))
  return starts
    .map((start) => {
      let end = start
      while (dataFrames.includes(end)) end += 1
      return `dd if=${node} of=${to} bs=4M iflag=direct skip=${start} count=${end - start} status=none`
    })
    .join(' && ')
}

const framesAgainstPlain = (more: string, words: string): Contest => ({
  format: 'frames',
  devices: ['fast'],
  methods: [
    {
      name: `flasher ${words}, plain .img.zst`,
      script: ({ file }, node) => flasher(file.zst, node, more),
    },
    {
      name: `flasher ${words}, frames`,
      script: ({ file }, node) => flasher(file.frames, node, more),
      bar: { fast: 0.8 },
    },
  ],
})

/** What is captured or packed lies in a file beside the image, and goes with the next run. */
const CAPTURED = '.captured.img.zst'
const PACKED = '.packed.img.zst'

/** The disk that holds the image is captured: its used blocks, beside reading and compressing all of it. */
const CAPTURE_CONTEST: Contest = {
  format: 'capture',
  devices: ['fast', 'throttled'],
  methods: [
    {
      name: 'dd iflag=direct | zstd -3 -T0',
      script: ({ raw }, node) =>
        `dd if=${node} bs=4M iflag=direct status=none | zstd -q -f -3 -T0 -o ${raw}${CAPTURED} && sync ${raw}${CAPTURED}`,
      holds: 'image',
    },
    {
      name: 'flasher capture',
      script: ({ raw }, node) =>
        `rm -f ${raw}${CAPTURED} && ${process.execPath} runtime/bin/flasher.mjs capture --source ${node} --output ${raw}${CAPTURED}`,
      holds: 'image',
      bar: { fast: 1.18, throttled: 1.18 },
    },
  ],
}

/** Onto no disk: the raw image, which is in the page cache, into a file beside it. */
const PACK_CONTEST: Contest = {
  format: 'pack',
  devices: ['memory'],
  methods: [
    {
      name: 'zstd -3 -T0',
      script: ({ raw }) => `zstd -q -f -3 -T0 ${raw} -o ${raw}${PACKED} && sync ${raw}${PACKED}`,
      leavesStale: true,
    },
    {
      name: 'flasher pack',
      script: ({ raw }) =>
        `rm -f ${raw}${PACKED} && ${process.execPath} runtime/bin/flasher.mjs pack ${raw} --output ${raw}${PACKED}`,
      leavesStale: true,
      bar: { memory: 1.25 },
    },
  ],
}

/** Images in frames: beside the same content in one frame, and onto a disk that holds it already. */
export const FRAME_CONTESTS: readonly Contest[] = [
  framesAgainstPlain('--no-verify', '--no-verify'),
  framesAgainstPlain('', '(read back)'),
  {
    format: 'delta',
    devices: ['fast', 'throttled'],
    methods: [
      { name: 'dd iflag=direct of the frames with data', script: readFrames, holds: 'image' },
      {
        name: 'flasher --delta, unchanged',
        script: ({ file }, node) => flasher(file.frames, node, '--delta'),
        holds: 'image',
        bar: { fast: 1.5, throttled: 1.1 },
      },
    ],
  },
  {
    format: 'delta',
    devices: ['fast', 'throttled'],
    methods: [
      {
        name: 'flasher (read back), the whole image',
        script: ({ file }, node) => flasher(file.frames, node),
      },
      {
        name: 'flasher --delta, 5 % of the frames changed',
        script: ({ file }, node) => flasher(file.frames, node, '--delta'),
        holds: 'changed',
        bar: { throttled: 0.55 },
      },
    ],
  },
  CAPTURE_CONTEST,
  PACK_CONTEST,
]

/** The factor by which it may be slower than the checkout that is compared with. */
const NOT_SLOWER = { fast: 1.05, throttled: 1.05, memory: 1.05 }

/** The same contests between two checkouts of flasher, the other one first: before and after a change. */
export const contestsAgainst = (checkout: string): readonly Contest[] =>
  CONTESTS.flatMap(({ format, devices, mostRuns }) =>
    format === 'delta' || format === 'capture' || format === 'pack'
      ? []
      : [
          {
            format,
            devices,
            ...(mostRuns === undefined ? {} : { mostRuns }),
            methods: [
              {
                name: `flasher of ${checkout} (read back)`,
                script: ({ file }, node) => flasher(file[format], node, '', checkout),
              },
              {
                name: 'flasher (read back)',
                script: ({ file }, node) => flasher(file[format], node),
                bar: NOT_SLOWER,
              },
            ],
          },
        ],
  )
