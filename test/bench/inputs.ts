/** What the benchmark flashes: a file system image, a third of it data, in each format; cached. */
import { existsSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { $ } from 'zx'
import { openFileSource } from '#engine/image/sources/source.ts'
import { readFrameMap } from '#engine/image/zstd-decoder.ts'

export const FILE_FORMATS = ['zst', 'gz', 'xz', 'bz2', 'qcow2', 'raw', 'frames'] as const
export type FileFormat = (typeof FILE_FORMATS)[number]
/**
 * `delta`: the image in frames onto a disk that holds it, or most of it, already; `capture`: from such a disk;
 * `pack`: the raw image into frames.
 */
export const FORMATS = [...FILE_FORMATS, 'delta', 'capture', 'pack'] as const
export type BenchFormat = (typeof FORMATS)[number]

export interface Inputs {
  readonly bytes: number
  readonly nonZeroBytes: number
  readonly raw: string
  readonly bmap: string
  /** As much random data, to fill a disk with. */
  readonly stale: string
  readonly file: Readonly<Record<FileFormat, string>>
  /** The frames that hold data, by number. */
  readonly dataFrames: readonly number[]
}

const MIB = 1024 * 1024

/** Each compressor has its default level; xz writes blocks, as its threads make them. */
const COMPRESS: Readonly<Record<Exclude<FileFormat, 'raw'>, (raw: string, to: string) => string>> =
  {
    zst: (raw, to) => `zstd -q -f -3 ${raw} -o ${to}`,
    gz: (raw, to) => `gzip -c ${raw} > ${to}`,
    xz: (raw, to) => `xz -T2 -c ${raw} > ${to}`,
    bz2: (raw, to) => `lbzip2 -n2 -c ${raw} > ${to}`,
    frames: (raw, to) =>
      `rm -f ${to}.img.zst && ${process.execPath} runtime/bin/flasher.mjs pack ${raw} --output ${to}.img.zst && mv ${to}.img.zst ${to}`,
    qcow2: (raw, to) => `qemu-img convert -f raw -O qcow2 ${raw} ${to}`,
  }

/** These are always made; others only where they are wanted, because xz and bzip2 take minutes. */
const ALWAYS: readonly string[] = ['zst', 'frames'] satisfies FileFormat[]

export async function makeInputs(
  folder: string,
  mib: number,
  wanted: readonly string[],
): Promise<Inputs> {
  const at = join(folder, `bench-${mib}`)
  await mkdir(at, { recursive: true })
  const raw = join(at, 'disk.img')
  // tar is cut short on purpose.
  const $$ = $({ quiet: true, shell: 'bash', prefix: '' })
  if (!existsSync(raw)) {
    const tree = join(at, 'tree')
    await rm(tree, { recursive: true, force: true })
    await mkdir(tree)
    await $$`head -c ${Math.floor(mib / 34) * MIB} /dev/urandom > ${join(tree, 'random')}`
    // Programs, libraries and texts of this machine, in files of a few MiB.
    const left = Math.floor(mib * 0.33)
    await $$`tar -c -C / usr/bin usr/lib usr/share 2>/dev/null | head -c ${left}M | split -b 3M - ${join(tree, 'part-')}`
    const made = `${raw}.part`
    await $$`rm -f ${made} && truncate -s ${mib}M ${made} && mke2fs -q -F -t ext4 -d ${tree} -E offset=${MIB} ${made} ${mib - 2}M`
    await $$`sgdisk -n1:2048:0 ${made}`
    await rm(tree, { recursive: true })
    await rename(made, raw)
  }
  const file: Record<FileFormat, string> = {
    raw,
    zst: `${raw}.zst`,
    gz: `${raw}.gz`,
    xz: `${raw}.xz`,
    bz2: `${raw}.bz2`,
    qcow2: join(at, 'disk.qcow2'),
    frames: join(at, 'frames.img.zst'),
  }
  for (const [format, compress] of Object.entries(COMPRESS)) {
    const to = file[format as keyof typeof COMPRESS]
    const isWanted = ALWAYS.includes(format) || wanted.includes(format)
    if (!isWanted || existsSync(to)) continue
    await $$`sh -c ${compress(raw, `${to}.part`)}`
    await rename(`${to}.part`, to)
  }
  const bmap = `${raw}.bmap`
  if (!existsSync(bmap)) {
    // A copy with holes: bmaptool maps what the file system has allocated.
    const sparse = `${raw}.sparse`
    await $$`cp --sparse=always ${raw} ${sparse}`
    await writeFile(bmap, (await $$`bmaptool create ${sparse}`).stdout)
    await rm(sparse)
  }
  const stale = join(at, 'stale.bin')
  if (!existsSync(stale)) await $$`head -c ${mib * MIB} /dev/urandom > ${stale}`
  const counted =
    await $$`sh -c ${`cp --sparse=always ${raw} ${raw}.holes; du -B1 ${raw}.holes | cut -f1; rm ${raw}.holes`}`
  const nonZeroBytes = Number(counted.stdout)
  const dataFrames = await listDataFrames(file.frames)
  return { bytes: mib * MIB, nonZeroBytes, raw, bmap, stale, file, dataFrames }
}

async function listDataFrames(path: string): Promise<readonly number[]> {
  await using source = await openFileSource(path)
  const { readAt } = source
  const map = readAt === null ? null : await readFrameMap({ ...source, readAt })
  if (map === null) throw new Error(`${path} has no frames`)
  return Array.from({ length: map.count }, (_, index) => index).filter(
    (index) => !map.at(index).isZero,
  )
}
