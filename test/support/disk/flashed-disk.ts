/** Disks as a flash leaves them: partitions with real file systems, filled as a test says. */
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { $ } from 'zx'
import { createLoop, type Loop } from './loop.ts'

export interface Part {
  readonly megabytes: number
  /** The words of a command such as `mkfs.ext4 -q`; absent: the partition stays empty. */
  readonly mkfs?: readonly string[]
  /** Fills the file system, which is mounted at `root`. */
  readonly fill?: (root: string) => Promise<unknown>
}

export interface FlashedDisk extends AsyncDisposable {
  readonly device: string
  readonly backing: string
  /** The node of a partition, from 1. */
  part(number: number): string
}

const run = $({ quiet: true, verbose: false })

/** Needs root. */
export async function createFlashedDisk(parts: readonly Part[]): Promise<FlashedDisk> {
  await using undo = new AsyncDisposableStack()
  const megabytes = parts.reduce((sum, part) => sum + part.megabytes, 4)
  const loop = undo.use(await createLoop({ megabytes }))
  const table = parts.map((part) => `size=${part.megabytes}M\n`).join('')
  await run({ input: `label: gpt\n${table}` })`sfdisk --quiet ${loop.device}`
  await run`partx --update ${loop.device}`
  const part = (number: number) => `${loop.device}p${number}`
  for (const [at, { mkfs, fill }] of parts.entries()) {
    if (mkfs !== undefined) await run`${mkfs} ${part(at + 1)}`
    if (fill !== undefined) await withMounted(part(at + 1), fill)
  }
  const held = undo.move()
  return { ...pick(loop), part, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

const pick = ({ device, backing }: Loop) => ({ device, backing })

/** Mounts for the time of `act`; also to look at what was done. */
export async function withMounted<Value>(
  node: string,
  act: (root: string) => Promise<Value>,
  options = 'defaults',
): Promise<Value> {
  const root = await mkdtemp(join(tmpdir(), 'flasher-fill-'))
  try {
    await run`mount -o ${options} ${node} ${root}`
    try {
      return await act(root)
    } finally {
      await run`umount ${root}`
    }
  } finally {
    await rm(root, { recursive: true })
  }
}

/** Folders, by their paths in the tree. */
export const makeFolders =
  (...paths: readonly string[]) =>
  async (root: string): Promise<void> => {
    for (const path of paths) {
      await mkdir(join(root, path), { recursive: true })
    }
  }

/** The names in the top folder of a file system. */
export const listTop = (node: string): Promise<readonly string[]> =>
  withMounted(node, (root) => readdir(root), 'ro')
