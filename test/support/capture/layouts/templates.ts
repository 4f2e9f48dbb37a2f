/** Real file systems in small files whose free blocks hold noise, and which of their sectors were written. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import { run, tryRun } from '../lived/volume.ts'
import { CONTENTS, type Content } from './layout.ts'

const MIB = 1 << 20
export const SECTOR = 512

export interface Template {
  readonly bytes: Buffer
  /** One for each sector; 0: nobody wrote it, so that it is surely free. */
  readonly written: Uint8Array
}

const MEGABYTES: Readonly<Record<Content, number>> = {
  ext4: 24,
  fat16: 16,
  fat32: 40,
  ntfs: 16,
  exfat: 16,
  btrfs: 48,
  xfs: 32,
  swap: 8,
}

/** `files` is a folder, `file` holds noise. */
const MAKE: Readonly<Record<Content, (file: string, files: string) => Promise<unknown>>> = {
  ext4: (file, files) => run`mkfs.ext4 -q -F -E nodiscard -d ${files} ${file}`,
  fat16: (file, files) => makeFat(file, files, 16),
  fat32: (file, files) => makeFat(file, files, 32),
  async ntfs(file, files) {
    await run`mkntfs --quiet --force --fast ${file}`
    for (const name of NAMES) await run`ntfscp --quiet ${file} ${join(files, name)} ${name}`
  },
  exfat: (file) => run`mkfs.exfat ${file}`,
  btrfs: (file, files) => run`mkfs.btrfs -q -f -K --mixed -m single -d single -r ${files} ${file}`,
  xfs: (file) => run`mkfs.xfs -q -f -K --unsupported ${file}`,
  swap: (file) => run`mkswap ${file}`,
}

async function makeFat(file: string, files: string, bits: number) {
  await run`mkfs.fat -F ${bits} ${file}`
  for (const name of NAMES) await run`mcopy -i ${file} ${join(files, name)} ::/`
}

const NAMES = ['first.bin', 'second.bin']

/** Makes one of each kind below the folder. */
export async function makeTemplates(folder: string): Promise<ReadonlyMap<Content, Template>> {
  const files = join(folder, 'files')
  await mkdir(files)
  for (const [at, name] of NAMES.entries()) {
    await writeFile(join(files, name), makeNoise(MIB + 4096 * at, 70 + at))
  }
  const made = new Map<Content, Template>()
  for (const [at, content] of CONTENTS.entries()) {
    const file = join(folder, content)
    const noise = makeNoise(MEGABYTES[content] * MIB, 80 + at)
    await writeFile(file, noise)
    await MAKE[content](file, files)
    const bytes = await readFile(file)
    const written = markWritten(noise, bytes)
    if (content === 'btrfs') await unmarkStale(file, bytes, written)
    made.set(content, { bytes, written })
  }
  return made
}

const BLOCK = 4096
/** Where a node of btrfs has the identifier of its file system, and the superblock too. */
const IDENTIFIER = { from: 32, to: 48, superblock: 64 * 1024 } as const

/** mkfs.btrfs leaves nodes that it used meanwhile: without them, btrfs finds all that it looks for. */
async function unmarkStale(file: string, bytes: Buffer, written: Uint8Array) {
  const { from, to, superblock } = IDENTIFIER
  const identifier = bytes.subarray(superblock + from, superblock + to)
  for (let at = superblock + BLOCK; at < bytes.length; at += BLOCK) {
    if (!bytes.subarray(at + from, at + to).equals(identifier)) continue
    const without = Buffer.from(bytes)
    without.fill(0, at, at + BLOCK)
    await writeFile(file, without)
    const { exitCode } = await tryRun`btrfs check --readonly --check-data-csum ${file}`
    if (exitCode === 0) written.fill(0, at / SECTOR, (at + BLOCK) / SECTOR)
  }
}

function markWritten(before: Buffer, after: Buffer): Uint8Array {
  const written = new Uint8Array(after.length / SECTOR)
  for (let at = 0; at < after.length; at += SECTOR) {
    const isSame = before.compare(after, at, at + SECTOR, at, at + SECTOR) === 0
    written[at / SECTOR] = isSame ? 0 : 1
  }
  return written
}
