/** Disks with one real file system and files on it, to be captured; and what is on a disk that got the image. */
import { mkdir, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { $ } from 'zx'
import { makeNoise } from './disk-images.ts'

const run = $({ quiet: true })
const MIB = 1 << 20

export const CAPTURED = ['ext4', 'xfs', 'btrfs', 'ntfs', 'fat'] as const
export type CapturedKind = (typeof CAPTURED)[number]

/** What is put onto it; and one that is deleted again, so that its blocks are free but not empty. */
const FILES: Readonly<Record<string, Buffer>> = {
  'small.txt': Buffer.from('a small file\n'),
  'large.bin': makeNoise(9 * MIB + 77, 5),
  'more.bin': makeNoise(MIB, 6),
}
export const DELETED: Buffer = Buffer.from(
  'these words were deleted and must not come back. '.repeat(90_000),
)

const MEGABYTES: Readonly<Record<CapturedKind, number>> = {
  ext4: 96,
  xfs: 304,
  btrfs: 128,
  ntfs: 96,
  fat: 96,
}
export const PART_OFFSET: number = 4 * MIB
const SWAP_MIB = 2

export interface CaptureDisk extends AsyncDisposable {
  readonly path: string
  readonly bytes: number
}

interface DiskOptions {
  /** More files, by their paths. */
  readonly files?: Readonly<Record<string, string>>
  /** What is done with the file system while it is mounted; absent: nothing. */
  readonly whileMounted?: (at: string) => Promise<unknown>
  readonly mkfs?: readonly string[]
}

/** A GPT, 2 MiB of swap space, then the partition with the file system, and a gap. */
export async function makeCaptureDisk(
  kind: CapturedKind,
  options: DiskOptions = {},
): Promise<CaptureDisk> {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-capture-'))
  const [file, path] = [join(folder, 'fs'), join(folder, 'disk')]
  await makeFileSystem(kind, folder, file, options)
  const megabytes = MEGABYTES[kind]
  const bytes = (megabytes + SWAP_MIB + 8) * MIB
  await makeTable(path, bytes, megabytes)
  await run`dd if=${file} of=${path} bs=1M seek=${PART_OFFSET / MIB} conv=notrunc,sparse status=none`
  await makeSwap(folder, path)
  await rm(file)
  return {
    path,
    bytes,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

async function makeTable(path: string, bytes: number, megabytes: number) {
  await writeFile(path, '')
  await truncate(path, bytes)
  const lines = [
    'label: gpt',
    `start=4096, size=${SWAP_MIB * 2048}, type=S`,
    `start=${PART_OFFSET / 512}, size=${megabytes * 2048}`,
  ]
  await run({ input: `${lines.join('\n')}\n` })`sfdisk --quiet ${path}`
}

/** Its pages are full of what was swapped out once. */
async function makeSwap(folder: string, path: string) {
  const swap = join(folder, 'swap')
  await writeFile(
    swap,
    Buffer.concat([Buffer.alloc(4096), DELETED.subarray(0, SWAP_MIB * MIB - 4096)]),
  )
  await run`mkswap ${swap}`
  await run`dd if=${swap} of=${path} bs=1M seek=2 conv=notrunc status=none`
  await rm(swap)
}

async function makeFileSystem(
  kind: CapturedKind,
  folder: string,
  file: string,
  { files = {}, whileMounted = async () => undefined, mkfs = [] }: DiskOptions,
) {
  await writeFile(file, '')
  await truncate(file, MEGABYTES[kind] * MIB)
  await MAKE[kind](file, mkfs)
  const all = { ...FILES, ...files, 'deleted.bin': DELETED }
  const from = join(folder, 'files')
  for (const [name, content] of Object.entries(all)) {
    await mkdir(join(from, name, '..'), { recursive: true })
    await writeFile(join(from, name), content)
  }
  if (kind === 'fat') await fillFat(file, from, all)
  else await fillMounted(file, from, whileMounted)
  await rm(from, { recursive: true })
}

async function fillFat(file: string, from: string, all: Readonly<Record<string, unknown>>) {
  await run`mcopy -i ${file} ${Object.keys(all).map((name) => join(from, name))} ::/`
  await run`mdel -i ${file} ::/deleted.bin`
}

async function fillMounted(
  file: string,
  from: string,
  whileMounted: (at: string) => Promise<unknown>,
) {
  await mounted(file, [], async (at) => {
    await run`cp -r ${from}/. ${at}`
    await run`sync --file-system ${at}`
    await rm(join(at, 'deleted.bin'))
    await whileMounted(at)
  })
}

const MAKE: Readonly<
  Record<CapturedKind, (file: string, more: readonly string[]) => Promise<unknown>>
> = {
  ext4: (file, more) => run`mkfs.ext4 -q ${more} ${file}`,
  xfs: (file, more) => run`mkfs.xfs -q ${more} ${file}`,
  btrfs: (file, more) => run`mkfs.btrfs -q ${more} ${file}`,
  ntfs: (file, more) => run`mkntfs --quiet --force --fast ${more} ${file}`,
  fat: (file) => run`mformat -i ${file} -F ::`,
}

/** Mounts a file or device in a place of its own, from its `flags` on. */
export async function mounted<Result>(
  device: string,
  flags: readonly string[],
  act: (at: string) => Promise<Result>,
): Promise<Result> {
  const at = await mkdtemp(join(tmpdir(), 'flasher-mount-'))
  const node = (await run`losetup --find --show ${flags} ${device}`).stdout.trim()
  try {
    await run`mount ${node} ${at}`
    try {
      return await act(at)
    } finally {
      await run`umount ${at}`
    }
  } finally {
    await run`losetup --detach ${node}`
    await rm(at, { recursive: true })
  }
}

/** The flags of losetup for the partition that holds the files. */
export const PART_FLAGS: readonly string[] = [`--offset=${PART_OFFSET}`]

/** Throws where a file of the disk's partition is not as it was. */
export async function checkFiles(device: string, kind: CapturedKind): Promise<void> {
  if (kind !== 'fat') {
    return await mounted(device, PART_FLAGS, (at) => compare((name) => readFile(join(at, name))))
  }
  const folder = await mkdtemp(join(tmpdir(), 'flasher-fat-'))
  try {
    await run`mcopy -i ${`${device}@@${PART_OFFSET}`} -s ::/ ${folder}`
    await compare((name) => readFile(join(folder, name)))
  } finally {
    await rm(folder, { recursive: true })
  }
}

async function compare(read: (name: string) => Promise<Buffer>) {
  for (const [name, content] of Object.entries(FILES)) {
    if (!(await read(name)).equals(content)) throw new Error(`${name} differs`)
  }
}
