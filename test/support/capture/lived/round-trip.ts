/** A file system that has lived is captured as a partition of a disk, and all that was in it is looked for in the image. */
import { mkdir, mkdtempDisposable, open, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLoop } from '#test/support/disk/loop.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'
import { liveFat } from './fat-life.ts'
import type { Life } from './life.ts'
import { liveMounted } from './mounted-life.ts'
import { attach, canMount, isSound, listAll, makeVolume, run } from './volume.ts'

const MIB = 1024 * 1024
const OFFSET = MIB

export interface RoundTrip {
  /** What was there and is not in the image, as lines of a listing. */
  readonly lost: readonly string[]
  readonly files: number
  /** Whether the file system's own tool finds damage in the image that was not there before. */
  readonly isDamaged: boolean
  /** Why all of it was read; null: by its map. */
  readonly whole: string | null
  readonly usedBytes: number
}

export async function roundTrip(life: Life): Promise<RoundTrip> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-lived-'))
  const disk = join(folder.path, 'disk')
  const bytes = life.megabytes * MIB
  await makeDisk(disk, bytes)
  const before = await live(life, disk, folder.path)
  const image = join(folder.path, 'a.img.zst')
  const part = await capture(disk, image)
  const raw = join(folder.path, 'raw')
  await run`zstd -qd ${image} -o ${raw}`
  await using copy = await attach(raw, OFFSET, bytes)
  const after = await listAll(life.kind, copy.node).catch(() => new Set<string>())
  return {
    lost: [...before.lines].filter((line) => !after.has(line)),
    files: before.lines.size,
    isDamaged: before.isSound && !(await isSound(life.kind, copy.node)),
    ...part,
  }
}

async function makeDisk(path: string, bytes: number) {
  await using file = await open(path, 'wx')
  await file.truncate(bytes + 2 * OFFSET)
  const lines = `label: gpt\nstart=${OFFSET / 512}, size=${bytes / 512}\n`
  await run({ input: lines })`sfdisk --quiet ${path}`
}

async function live(life: Life, disk: string, folder: string) {
  await using volume = await attach(disk, OFFSET, life.megabytes * MIB)
  const { node } = volume
  await makeVolume(life.kind, life.mkfs, node)
  const at = join(folder, 'at')
  await mkdir(at)
  await writeFile(join(folder, 'life.json'), JSON.stringify(life))
  await (canMount(life.kind) ? liveMounted(life, node, at) : liveFat(life, node, folder))
  return { lines: await listAll(life.kind, node), isSound: await isSound(life.kind, node) }
}

async function capture(disk: string, image: string) {
  await using source = await createLoop({ backing: disk })
  const argv = ['capture', '--source', source.device, '--output', image, '--json']
  const { code, stdout, stderr } = await runFlasher(argv)
  if (code !== 0) throw new Error(`capture ended with ${code}: ${stderr}`)
  const [part] = JSON.parse(stdout).parts
  return { whole: part.whole, usedBytes: part.used_bytes }
}
