/** A file system that has lived is captured as a partition of a disk, and all that was in it is looked for in the image. */
import {
  link,
  mkdir,
  mkdtempDisposable,
  open,
  readdir,
  rename as renameFat,
  rm,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { systemCodeOf } from '#kit/foundation/fault.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'
import type { Deed, Event, Life } from './life.ts'
import {
  attach,
  canMount,
  isSound,
  listAll,
  makeVolume,
  mount,
  run,
  tryRun,
  unmount,
} from './volume.ts'

const KIB = 1024
const MEBIBYTE = 1024 * KIB

/** Where it lives. */
interface Scene {
  readonly life: Life
  readonly node: string
  readonly at: string
  readonly options: readonly string[]
}

/** What a full file system, a quota or a limit of names answers: life goes on. */
const REFUSED = new Set(['ENOSPC', 'EDQUOT', 'EMLINK', 'EFBIG', 'ENOENT', 'EROFS', 'EEXIST'])

const MOUNT_OPTIONS: readonly (readonly string[])[] = [
  [],
  ['compress=zstd'],
  ['nodatacow'],
  ['max_inline=0'],
  ['autodefrag'],
]

/** Ends with the file system unmounted. */
async function liveMounted(life: Life, node: string, at: string): Promise<void> {
  const choice = MOUNT_OPTIONS[life.seed % MOUNT_OPTIONS.length] ?? []
  const scene = { life, node, at, options: life.kind === 'btrfs' ? choice : [] }
  await mount(life.kind, node, at, scene.options)
  try {
    for (let number = 0; number < life.files; number += 1)
      await writeFat(scene, number, number % 997)
    for (const event of life.events) await carryOutFat(scene, event)
    await run`sync --file-system ${at}`
  } finally {
    await unmount(node, at)
  }
}

async function carryOutFat(scene: Scene, { does, number }: Event) {
  try {
    await DOES[does](scene, number)
  } catch (thrown) {
    if (!REFUSED.has(systemCodeOf(thrown) ?? '')) throw thrown
  }
}

const DOES: Readonly<Record<Deed, (scene: Scene, number: number) => Promise<unknown>>> = {
  write: (scene, number) => writeFat(scene, number, number % 300),
  async 'write-many'(scene, number) {
    for (let index = 0; index < 60; index += 1) {
      await writeFat(scene, number + index, ((number + index * 37) % 64) / 8)
    }
  },
  'write-large': (scene, number) => writeFat(scene, number, 1024 + (number % 4096)),
  async delete(scene, number) {
    const files = await listFiles(scene)
    for (const [index, file] of files.entries()) {
      if ((index * 7 + number) % 4 === 0) await rm(file, { force: true })
    }
  },
  overwrite: (scene, number) => change(scene, number, (size) => number % Math.max(1, size)),
  append: (scene, number) => change(scene, number, (size) => size),
  async rename(scene, number) {
    const file = await pickFile(scene, number)
    await renameFat(file, join(dirname(file), `renamed-${number}`))
  },
  async truncate(scene, number) {
    await truncate(await pickFile(scene, number), number % (3 * MEBIBYTE))
  },
  fill,
  async link(scene, number) {
    const file = await pickFile(scene, number)
    await link(file, `${file}-linked-${number}`)
    await symlink(`to/${'x'.repeat(number % 200)}`, `${file}-symbolic-${number}`)
  },
  remount: (scene) => whileUnmounted(scene, async () => undefined),
  async punch(scene, number) {
    const file = await pickFile(scene, number)
    const [offset, length] = [(number % 64) * 4096, ((number >> 6) % 64) * 4096 + 4096]
    await tryRun`fallocate --punch-hole --offset ${offset} --length ${length} ${file}`
  },
  async reserve(scene, number) {
    const file = `${await placeOf(scene, number)}-reserved`
    const keep = number % 2 === 0 ? ['--keep-size'] : []
    await tryRun`fallocate ${keep} --length ${((number % 4096) + 1) * KIB} ${file}`
  },
  async holes(scene, number) {
    await using file = await open(`${await placeOf(scene, number)}-holes`, 'w')
    for (let index = 0; index < 20; index += 1) {
      const block = makeNoise(4096 * (1 + (index % 3)), number + index)
      await file.write(block, 0, block.length, index * 64 * KIB)
      if (index % 5 === 0) await file.sync()
    }
  },
  async subvolume(scene, number) {
    await tryRun`btrfs subvolume create ${join(scene.at, `volume-${number}`)}`
  },
  async snapshot(scene, number) {
    const volumes = [scene.at, ...(await listVolumes(scene))]
    const from = volumes[number % volumes.length] ?? scene.at
    const kind = number % 3 === 0 ? ['-r'] : []
    await tryRun`btrfs subvolume snapshot ${kind} ${from} ${join(scene.at, `snapshot-${number}`)}`
    const files = await listFiles(scene)
    for (const file of files.slice(0, files.length >> 3)) await rm(file, { force: true })
    await run`sync --file-system ${scene.at}`
  },
  async 'delete-snapshot'(scene, number) {
    const volumes = await listVolumes(scene)
    const volume = volumes[number % Math.max(1, volumes.length)]
    if (volume === undefined) return
    await tryRun`btrfs subvolume delete ${volume}`
    if (number % 2 === 0) await tryRun`timeout 20 btrfs subvolume sync ${scene.at}`
  },
  async balance({ at }, number) {
    const how = [['--full-balance'], ['-m'], ['-dusage=50', '-musage=50'], ['-d']][number % 4] ?? []
    await tryRun`btrfs balance start ${how} --force ${at}`
  },
  async defragment({ at }) {
    await tryRun`btrfs filesystem defragment -r ${at}`
  },
  async reflink(scene, number) {
    const file = await pickFile(scene, number)
    await tryRun`cp --reflink=always ${file} ${`${file}-again-${number}`}`
  },
  async quota({ at }, number) {
    await tryRun`btrfs quota ${number % 2 === 0 ? 'enable' : 'disable'} ${at}`
  },
  shrink: (scene, number) =>
    resize(scene, `${Math.ceil((scene.life.megabytes * (80 + (number % 15))) / 100)}M`),
  grow: (scene) => resize(scene, null),
}

async function writeFat(scene: Scene, number: number, kilobytes: number) {
  const bytes = Math.ceil(kilobytes * KIB) + (number % 777)
  try {
    await writeFile(await placeOf(scene, number), makeNoise(bytes, number))
  } catch (thrown) {
    if (!REFUSED.has(systemCodeOf(thrown) ?? '')) throw thrown
  }
}

/** Writes files until nothing fits any more, then removes some of them. */
async function fill(scene: Scene, number: number) {
  const folder = join(scene.at, `full-${number}`)
  await mkdir(folder)
  const kept: string[] = []
  try {
    for (let index = 0; index < 400; index += 1) {
      const file = join(folder, String(index))
      kept.push(file)
      await writeFile(file, makeNoise(((number + index) % 4) * MEBIBYTE + 50 * KIB, number + index))
    }
  } finally {
    await run`sync --file-system ${scene.at}`
    const stays = number % 4
    if (stays > 0)
      for (const [index, file] of kept.entries()) {
        if (index % 4 >= stays - 1) await rm(file, { force: true })
      }
  }
}

async function change(scene: Scene, number: number, placeIn: (size: number) => number) {
  await using file = await open(await pickFile(scene, number), 'r+')
  const { size } = await file.stat()
  const content = makeNoise((number % (256 * KIB)) + 1, number)
  await file.write(content, 0, content.length, placeIn(size))
}

async function resize(scene: Scene, size: string | null) {
  await whileUnmounted(scene, async ({ node }) => {
    await tryRun`e2fsck -f -y ${node}`
    await tryRun`resize2fs ${node} ${size === null ? [] : [size]}`
  })
}

async function whileUnmounted(scene: Scene, act: (scene: Scene) => Promise<unknown>) {
  const { life, node, at, options } = scene
  await unmount(node, at)
  await act(scene).finally(() => mount(life.kind, node, at, options))
}

const listVolumes = async ({ at }: Scene): Promise<readonly string[]> =>
  (await readdir(at))
    .filter((name) => /^(?:volume|snapshot)-/.test(name))
    .toSorted()
    .map((name) => join(at, name))

/** A place for a new file, in one of the folders or subvolumes. */
async function placeOf(scene: Scene, number: number): Promise<string> {
  const roots = [scene.at, ...(await listVolumes(scene))]
  const root = roots[(number >> 3) % roots.length] ?? scene.at
  const folder = join(root, `folder-${number % 5}`, ...(number % 3 === 0 ? ['deeper'] : []))
  await mkdir(folder, { recursive: true })
  return join(folder, `file-${number}`)
}

async function listFiles({ at }: Scene): Promise<readonly string[]> {
  const entries = await readdir(at, { recursive: true, withFileTypes: true })
  return entries
    .flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : []))
    .toSorted()
}

async function pickFile(scene: Scene, number: number): Promise<string> {
  const files = await listFiles(scene)
  const file = files[number % Math.max(1, files.length)]
  if (file !== undefined) return file
  await writeFat(scene, number, 10)
  return await placeOf(scene, number)
}

const CHANGES: readonly Deed[] = ['overwrite', 'append']

/** `folder`: for what is to be copied. */
async function liveFat(life: Life, node: string, folder: string): Promise<void> {
  const content = join(folder, 'content')
  const names: string[] = []

  async function write(number: number, kilobytes: number) {
    const name = `FILE${number}.BIN`
    await writeFile(content, makeNoise(Math.ceil(kilobytes * KIB) + (number % 777), number))
    const { exitCode } = await tryRun`mcopy -o -i ${node} ${content} ::/${name}`
    if (exitCode === 0 && !names.includes(name)) names.push(name)
  }

  async function remove(name: string) {
    await tryRun`mdel -i ${node} ::/${name}`
    names.splice(names.indexOf(name), 1)
  }

  async function removeSome(number: number) {
    for (const [index, name] of names.slice().entries()) {
      if ((index + number) % 4 === 0) await remove(name)
    }
  }

  async function rename(from: string, to: string) {
    await tryRun`mren -i ${node} ::/${from} ::/${to}`
    names.splice(names.indexOf(from), 1, to)
  }

  async function carryOut({ does, number }: Event) {
    const name = names[number % Math.max(1, names.length)]
    if (does === 'delete') return await removeSome(number)
    if (does === 'rename' && name !== undefined) return await rename(name, `R${number}.BIN`)
    if (does === 'write-many') return await writeMany(number)
    if (CHANGES.includes(does) && name !== undefined) await remove(name)
    await write(number, does === 'write-large' ? 1024 + (number % 8192) : number % 300)
  }

  async function writeMany(number: number) {
    for (let index = 0; index < 30; index += 1) await write(number + index, (index * 7) % 13)
  }

  for (let number = 0; number < life.files >> 1; number += 1) await write(number, number % 97)
  for (const event of life.events) await carryOut(event)
}

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
