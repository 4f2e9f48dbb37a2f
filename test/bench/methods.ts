/** The ways to write an image that are compared: what a user would run otherwise, and flasher. */
import type { DeviceKind } from './devices.ts'
import type { BenchFormat, Inputs } from './inputs.ts'

export interface Method {
  readonly name: string
  /** A shell command line that writes the image to the node. */
  readonly script: (inputs: Inputs, node: string) => string
  /** The figure of this method divided by the first method's must not be above it. */
  readonly bar?: Partial<Readonly<Record<DeviceKind, number>>>
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

const piped = (format: Exclude<BenchFormat, 'qcow2' | 'raw'>, tool: string): Method => ({
  name: `${tool} -dc | dd ${DD.replace(' status=none', '')}`,
  script: ({ file }, node) => `${tool} -dc ${file[format]} | dd of=${node} ${DD}`,
})

const ours = (
  format: BenchFormat,
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

/** At most so much slower than the checkout that is compared with. */
const NOT_SLOWER = { fast: 1.05, throttled: 1.05, memory: 1.05 }

/** The same contests between two checkouts of flasher, the other one first: before and after a change. */
export const contestsAgainst = (checkout: string): readonly Contest[] =>
  CONTESTS.map(({ format, devices, mostRuns }) => ({
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
  }))
