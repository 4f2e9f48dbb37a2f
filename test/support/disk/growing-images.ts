/** Images with one real file system in a real table, and what other programs say of it on a disk. */
import { copyFile, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { $ } from 'zx'
import { readDisk } from './writer.ts'

const run = $({ quiet: true })
const MIB = 1 << 20

export const KINDS = ['ext4', 'xfs', 'btrfs', 'ntfs'] as const
export type Kind = (typeof KINDS)[number]

/** The least that mkfs takes, and a little. */
const MEGABYTES: Readonly<Record<Kind, number>> = { ext4: 8, xfs: 304, btrfs: 112, ntfs: 8 }

export interface GrowingImage extends AsyncDisposable {
  readonly path: string
  readonly bytes: number
}

interface ImageOptions {
  readonly label?: 'gpt' | 'dos'
  /** A line of sfdisk for a partition before or behind that of the file system. */
  readonly before?: string
  readonly after?: string
}

/** Makes an image of a disk with one file system, whose partition begins at `PART_OFFSET`. */
export async function makeGrowingImage(
  kind: Kind,
  options: ImageOptions = {},
): Promise<GrowingImage> {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-grow-'))
  const file = join(folder, 'fs')
  const path = join(folder, 'disk.img')
  const megabytes = MEGABYTES[kind]
  await writeFile(file, '')
  await truncate(file, megabytes * MIB)
  await MAKE[kind](file)
  await copyFile('/dev/null', path)
  const bytes = (megabytes + 4) * MIB
  await truncate(path, bytes)
  const { label = 'gpt', before, after } = options
  const lines = [
    `label: ${label}`,
    ...(before === undefined ? [] : [before]),
    `start=4096, size=${megabytes * 2048}`,
    ...(after === undefined ? [] : [after]),
  ]
  await run({ input: `${lines.join('\n')}\n` })`sfdisk --quiet ${path}`
  await run`dd if=${file} of=${path} bs=1M seek=2 conv=notrunc,sparse`
  return {
    path,
    bytes,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

/** Where the file system's partition begins. */
export const PART_OFFSET: number = 2 * MIB

const MAKE: Readonly<Record<Kind, (file: string) => Promise<unknown>>> = {
  ext4: (file) => run`mkfs.ext4 -q ${file}`,
  xfs: (file) => run`mkfs.xfs -q ${file}`,
  btrfs: (file) => run`mkfs.btrfs -q ${file}`,
  ntfs: (file) => run`mkntfs --quiet --force --fast ${file}`,
}

/** How many bytes the file system says that it has. */
export async function readSize(device: string, kind: Kind): Promise<number> {
  const first = await readDisk(device, PART_OFFSET, 128 * 1024)
  return SIZES[kind](first)
}

const SIZES: Readonly<Record<Kind, (first: Buffer) => number>> = {
  ext4: (first) => first.readUInt32LE(1028) * (1024 << first.readUInt32LE(1048)),
  xfs: (first) => Number(first.readBigUInt64BE(8)) * first.readUInt32BE(4),
  btrfs: (first) => Number(first.readBigUInt64LE(0x1_0070)),
  ntfs: (first) => Number(first.readBigUInt64LE(0x28)) * 512,
}

/** Throws where the file system's own checker finds anything. */
export async function checkFileSystem(device: string, kind: Kind): Promise<void> {
  const flags = [`--offset=${PART_OFFSET}`, '--read-only']
  const node = (await run`losetup --find --show ${flags} ${device}`).stdout.trim()
  try {
    await CHECK[kind](node)
  } finally {
    await run`losetup --detach ${node}`
  }
}

const CHECK: Readonly<Record<Kind, (node: string) => Promise<unknown>>> = {
  ext4: (node) => run`e2fsck -f -n ${node}`,
  xfs: (node) => run`xfs_repair -n ${node}`,
  btrfs: (node) => run`btrfs check --readonly ${node}`,
  ntfs: (node) => run`ntfsresize --info --force ${node}`,
}

/** The size of the table's last partition, in bytes. */
export async function readLastPartition(device: string): Promise<number> {
  const { stdout } = await run`sfdisk --json ${device}`
  const sizes = [...stdout.matchAll(/"size": ?(\d+)/g)].map(([, size]) => Number(size) * 512)
  return sizes.at(-1) ?? 0
}

/** The loop devices that lie on this one. */
export async function listLoopsOn(device: string): Promise<readonly string[]> {
  const { stdout } = await run`losetup --associated ${device} --noheadings --output NAME`
  return stdout.split('\n').filter(Boolean)
}
