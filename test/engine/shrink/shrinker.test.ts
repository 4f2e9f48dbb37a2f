import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFile,
  mkdir,
  mkdtempDisposable,
  open,
  readdir,
  readFile,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import type { ReadBytes } from '#engine/shrink/content-comparison.ts'
import { compareExt } from '#engine/shrink/ext-comparison.ts'
import { compareNtfs } from '#engine/shrink/ntfs-comparison.ts'
import { shrinkImage } from '#engine/shrink/shrinker.ts'
import { faultOf } from '#test/support/collect.ts'
import {
  BASIC,
  BIOS_BOOT,
  digestOf,
  ESP,
  LINUX,
  makeDisk,
  makeLivedExt,
  makeLivedNtfs,
  makeSpreadExt,
  type MadePart,
  RECOVERY,
  RESERVED,
  SWAP,
} from '#test/support/disk/shrink-images.ts'

const test = suite('pack --shrink')
const run = $({ quiet: true })
const MIB = 1 << 20
const FLASHER = fileURLToPath(new URL('../../../runtime/bin/flasher.mjs', import.meta.url))
const never = new AbortController().signal

async function openScratch() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'flasher-shrink-test-'))
  await mkdir(join(folder.path, 'tmp'))
  return folder
}

async function shrink(folder: string, image: string, more: { reservePercent?: number } = {}) {
  const output = join(folder, 'small.img.zst')
  const stages: string[] = []
  const shrunk = await shrinkImage(
    { env: { ...process.env, TMPDIR: join(folder, 'tmp') } },
    { image, output, format: null, sha256: null, level: 1, reservePercent: 10, ...more },
    { signal: never, onStage: ({ stage }) => stages.push(stage), onProgress: () => undefined },
  )
  assert.equal(await readdir(join(folder, 'tmp')), [], 'nothing is left')
  const small = join(folder, 'small.img')
  execFileSync('zstd', ['-qdf', '--sparse', output, '-o', small])
  return { ...shrunk, small, stages }
}

/** Where each partition lies, in sectors, and all else that its table says. */
function readTable(path: string) {
  const text = execFileSync('sfdisk', ['--dump', path], { encoding: 'utf8' })
  const rows = [...text.matchAll(/img(\d+) : start= *(\d+), size= *(\d+), (.*)/g)]
  return new Map(
    rows.map(([, number, start, size, rest]) => [
      Number(number),
      { start: Number(start), size: Number(size), rest },
    ]),
  )
}

const readDiskId = (path: string) =>
  execFileSync('sfdisk', ['--disk-id', path], { encoding: 'utf8' })

/** All that a file system shows where it is mounted, by other programs than ours. */
async function show(image: string, number: number, folder: string): Promise<string> {
  const { start = 0, size = 0 } = readTable(image).get(number) ?? {}
  const part = join(folder, `shown-${number}`)
  await run`rm -f ${part}`
  await run`dd if=${image} of=${part} bs=512 skip=${start} count=${size} conv=sparse status=none`
  const first = Buffer.alloc(2048)
  {
    await using file = await open(part)
    await file.read(first, 0, first.length, 0)
  }
  const at = join(folder, 'mounted')
  await mkdir(at, { recursive: true })
  const isNtfs = first.toString('latin1', 3, 7) === 'NTFS'
  if (isNtfs) {
    await run`ntfsresize --check --force --force ${part}`
    await run`ntfs-3g -o ro,streams_interface=windows ${part} ${at}`
  } else {
    await run`e2fsck -f -n ${part}`
    await run`mount -o loop,ro,noload ${part} ${at}`
  }
  try {
    const list = await run`cd ${at} && find . -printf ${'%P|%y|%m|%U|%G|%T@|%n|%l|%C@\n'} | sort`
    const sums = await run`cd ${at} && find . -type f -print0 | sort -z | xargs -0 sha256sum`
    const streams = isNtfs
      ? [await readFile(join(at, 'big:stream')), await readFile(join(at, 'Users', 'file 2:note'))]
      : []
    return [list.stdout, sums.stdout, ...streams.map(digestOf)].join('\n')
  } finally {
    await run`umount ${at}`
  }
}

const ext = (
  number: number,
  megabytes: number,
  flags: readonly string[] = [],
  seed = 1,
): MadePart => ({
  number,
  megabytes,
  type: LINUX,
  make: (file) => makeLivedExt(file, flags, seed),
})
const fat = (number: number, type = ESP): MadePart => ({
  number,
  megabytes: 34,
  type,
  make: async (file) => {
    await run`mkfs.fat -F 32 -h 2048 ${file}`
    await run`echo hello | mcopy -i ${file} - ::/hello`
  },
})

test('Debian cloud: the root shrinks where it lies, and the source stays as it was', async () => {
  await using folder = await openScratch()
  const bios = { number: 14, megabytes: 3, type: BIOS_BOOT }
  const image = await makeDisk(folder.path, {
    label: 'gpt',
    parts: [bios, fat(15), ext(1, 120, ['-O', 'orphan_file'])],
  })
  const before = digestOf(await readFile(image))
  const { small, oldBytes, stages } = await shrink(folder.path, image)
  assert.is(digestOf(await readFile(image)), before)
  assert.is(oldBytes, (await stat(image)).size)
  assert.ok((await stat(small)).size < 80 * MIB)
  assert.equal(stages, ['unpacking', 'shrinking', 'comparing', 'packing'])
  execFileSync('sfdisk', ['--verify', small])
  const [was, is] = [readTable(image), readTable(small)]
  for (const number of [14, 15]) assert.equal(is.get(number), was.get(number))
  assert.is(is.get(1)?.start, was.get(1)?.start)
  assert.is(is.get(1)?.rest, was.get(1)?.rest)
  assert.is(await show(small, 1, folder.path), await show(image, 1, folder.path))
})

test('Raspberry Pi OS on an MBR, ext3 with small blocks: PARTUUID stays, a qcow2 is as good', async () => {
  await using folder = await openScratch()
  const image = await makeDisk(folder.path, {
    label: 'dos',
    parts: [
      { ...fat(1, 'c'), more: ', bootable' },
      { ...ext(2, 100, ['-b', '1024', '-O', '^extent,^64bit,^metadata_csum'], 3), type: '83' },
    ],
    behind: 0,
  })
  const qcow2 = join(folder.path, 'disk.qcow2')
  await run`qemu-img convert -O qcow2 ${image} ${qcow2}`
  const { small } = await shrink(folder.path, qcow2, { reservePercent: 50 })
  assert.is(readDiskId(small), readDiskId(image))
  assert.ok((await stat(small)).size < 90 * MIB)
  const [was, is] = [readTable(image), readTable(small)]
  assert.equal(is.get(1), was.get(1))
  assert.equal([is.get(2)?.start, is.get(2)?.rest], [was.get(2)?.start, was.get(2)?.rest])
  assert.is(await show(small, 2, folder.path), await show(image, 2, folder.path))
})

test('files far behind the new end get other numbers, and keep their times', async () => {
  await using folder = await openScratch()
  const image = await makeDisk(folder.path, {
    label: 'gpt',
    parts: [
      {
        number: 1,
        megabytes: 1000,
        type: LINUX,
        make: (file) => makeSpreadExt(file, join(folder.path, 'mounted')),
      },
    ],
  })
  const { small } = await shrink(folder.path, image)
  assert.ok((await stat(small)).size < 200 * MIB)
  assert.is(await show(small, 1, folder.path), await show(image, 1, folder.path))
})

test('what lies behind moves in front, with its hidden sectors, so that the largest ends last', async () => {
  await using folder = await openScratch()
  const swap = { number: 4, megabytes: 8, type: SWAP, make: (file: string) => run`mkswap ${file}` }
  const image = await makeDisk(folder.path, {
    label: 'gpt',
    parts: [ext(1, 40), ext(2, 100, [], 2), fat(3, BASIC), swap],
  })
  const { small, places, notes } = await shrink(folder.path, image)
  assert.equal(
    places.map(({ number }) => number),
    [3, 4, 1, 2],
  )
  assert.equal(notes.length, 1)
  assert.match(notes[0] ?? '', 'Partition 1 (ext4) is not the last one')
  for (const number of [1, 2]) {
    assert.is(await show(small, number, folder.path), await show(image, number, folder.path))
  }
  const at = (readTable(small).get(3)?.start ?? 0) * 512
  const bytes = await readFile(small)
  assert.is(bytes.readUInt32LE(at + 28), at / 512)
  assert.is(bytes.readUInt32LE(at + 6 * 512 + 28), at / 512)
  const hello = await run`mtype -i ${`${small}@@${at}`} ::/hello`
  assert.is(hello.stdout, 'hello\n')
  const source =
    await run`blkid -p --offset ${(readTable(image).get(4)?.start ?? 0) * 512} ${image} -s UUID -o value`
  const moved =
    await run`blkid -p --offset ${(readTable(small).get(4)?.start ?? 0) * 512} ${small} -s UUID -o value`
  assert.is(moved.stdout, source.stdout)
})

const ntfs = (number: number, megabytes: number, type: string, seed = 1): MadePart => ({
  number,
  megabytes,
  type,
  make: (file) => makeLivedNtfs(file, seed),
})

test('Windows with recovery: streams and all, and reagentc is named', async () => {
  await using folder = await openScratch()
  const image = await makeDisk(folder.path, {
    label: 'gpt',
    parts: [
      fat(1),
      { number: 2, megabytes: 16, type: RESERVED },
      ntfs(3, 80, BASIC),
      { ...ntfs(4, 30, RECOVERY, 5), more: ', attrs="RequiredPartition GUID:63"' },
    ],
  })
  const { small, notes } = await shrink(folder.path, image)
  assert.match(notes.join(), 'reagentc')
  const [was, is] = [readTable(image), readTable(small)]
  for (const number of [1, 2, 3, 4]) assert.is(is.get(number)?.rest, was.get(number)?.rest)
  for (const number of [3, 4]) {
    assert.is(await show(small, number, folder.path), await show(image, number, folder.path))
    const { start = 0, size = 0 } = is.get(number) ?? {}
    const bytes = await readFile(small)
    const [boot, copy] = [start, start + size - 1].map((at) =>
      bytes.subarray(at * 512, at * 512 + 512),
    )
    assert.is(boot?.readUInt32LE(28), start)
    assert.equal(copy, boot)
  }
})

interface Refused {
  readonly words: RegExp
  readonly label?: 'gpt' | 'dos'
  readonly parts: readonly MadePart[]
  readonly spoil?: (image: string) => Promise<unknown>
}

const patch = async (path: string, at: number, bytes: Buffer) => {
  await using file = await open(path, 'r+')
  await file.write(bytes, 0, bytes.length, at)
}
const plain = (flags: readonly string[] = []): MadePart => ({
  number: 1,
  megabytes: 40,
  type: LINUX,
  make: (file) => run`mke2fs -q -F -t ext4 ${flags} ${file}`,
})
const smallNtfs = (number: number, megabytes = 40): MadePart => ({
  number,
  megabytes,
  type: '7',
  make: (file) => run`mkntfs --quiet --force --fast ${file}`,
})
const lvm = { number: 2, megabytes: 4, type: 'E6D6D379-F507-44C2-A23C-238F2A3DF928' }

const REFUSED: Readonly<Record<string, Refused>> = {
  'a damaged one': {
    words: /e2fsck finds errors/,
    parts: [plain()],
    spoil: (image) => patch(image, MIB + 4096 + 8, Buffer.alloc(64, 0xff)),
  },
  'one with bad blocks': {
    words: /it has bad blocks/,
    parts: [
      {
        ...plain(),
        make: async (file) => {
          await writeFile(`${file}.bad`, '9000\n9001\n')
          await run`mke2fs -q -F -t ext4 -l ${file}.bad ${file}`
        },
      },
    ],
  },
  'a full one': {
    words: /it is full/,
    parts: [
      {
        ...plain(),
        make: async (file) => {
          const tree = `${file}.tree`
          await mkdir(tree)
          await writeFile(join(tree, 'all'), Buffer.alloc(36 * MIB, 7))
          await run`mke2fs -q -F -t ext4 -N 64 -O ^has_journal -m 0 -d ${tree} ${file}`
        },
      },
    ],
  },
  'one that was not unmounted': {
    words: /was not unmounted cleanly/,
    parts: [plain()],
    spoil: (image) => run`debugfs -w -R ${'feature needs_recovery'} ${`${image}?offset=${MIB}`}`,
  },
  'one with a boot loader in its first sectors': {
    words: /a boot loader in it is found by block numbers/,
    parts: [plain()],
    spoil: (image) => patch(image, MIB, Buffer.from('EXTLINUX')),
  },
  'one with the code of GRUB': {
    words: /a boot loader in it is found by block numbers/,
    parts: [plain()],
    async spoil(image) {
      await patch(image, 0x180, Buffer.from('GRUB'))
      await patch(image, 0x5c, Buffer.from([0, 9, 0, 0, 0, 0, 0, 0]))
    },
  },
  'any with LILO': {
    words: /LILO finds its files/,
    parts: [plain()],
    spoil: (image) => patch(image, 6, Buffer.from('LILO')),
  },
  'one in front of LVM': {
    words: /partition 2 \(an unknown file system\) lies behind it and cannot move/,
    parts: [plain(), lvm],
  },
  'one in front of data in a gap': {
    words: /data outside all partitions lies behind it/,
    parts: [plain(), { number: 2, megabytes: 1, type: LINUX }, { ...fat(3) }],
    async spoil(image) {
      await run`sfdisk --quiet --no-reread --no-tell-kernel --delete ${image} 2`
      await patch(image, 41 * MIB + 99, Buffer.from('x'))
    },
  },
  'one with data behind the last partition': {
    words: /data behind its last partition/,
    parts: [plain()],
    spoil: (image) => patch(image, 42 * MIB, Buffer.from('x')),
  },
  'Windows on an MBR, if a volume would move': {
    label: 'dos',
    words: /Windows finds its volumes by their places/,
    parts: [smallNtfs(1), { ...fat(2, 'c') }],
  },
  'any with a hibernated NTFS, which would move': {
    words: /Windows is hibernated in partition 2/,
    parts: [
      plain(),
      {
        ...smallNtfs(2),
        type: BASIC,
        make: async (file) => {
          await run`mkntfs --quiet --force --fast ${file}`
          const page = `${file}.hiber`
          await writeFile(page, Buffer.concat([Buffer.from('hibr'), Buffer.alloc(8188)]))
          await run`ntfscp ${file} ${page} hiberfil.sys`
        },
      },
    ],
  },
  'an NTFS that Windows wants to check': {
    label: 'dos',
    words: /Windows wants to check it first/,
    parts: [
      {
        ...smallNtfs(1, 60),
        make: async (file) => {
          await run`mkntfs --quiet --force --fast ${file}`
          await run`ntfsresize --force --force --no-progress-bar --size ${50 * MIB} ${file}`
          // Nothing of it may lie behind its new end.
          await run`truncate -s ${50 * MIB - 512} ${file} && truncate -s 60M ${file}`
        },
      },
    ],
  },
}

test('left as it is, with the reason, and nothing is published', async () => {
  for (const [name, { words, parts, label = 'gpt', spoil }] of Object.entries(REFUSED)) {
    await using folder = await openScratch()
    const typed = parts.map((part) =>
      label === 'dos' && part.type === LINUX ? { ...part, type: '83' } : part,
    )
    const image = await makeDisk(folder.path, { label, parts: typed })
    await spoil?.(image)
    const before = digestOf(await readFile(image))
    const { code, message } = await faultOf(() => shrink(folder.path, image))
    assert.is(code, 'plan-refused', `${name}: ${message}`)
    assert.match(message, words, name)
    assert.is(digestOf(await readFile(image)), before, name)
    const left = await readdir(folder.path)
    assert.not(
      left.some((file) => file.includes('small')),
      name,
    )
    assert.equal(await readdir(join(folder.path, 'tmp')), [], name)
  }
})

test('without room nothing is begun, and what it needs is said', async () => {
  await using folder = await openScratch()
  const image = await makeDisk(folder.path, { label: 'gpt', parts: [ext(1, 40)] })
  const small = join(folder.path, 'tmp')
  await run`mount -t tmpfs -o size=24M tmpfs ${small}`
  try {
    const { code, message } = await faultOf(() => shrink(folder.path, image))
    assert.is(code, 'storage-full')
    assert.match(message, /shrinking needs \d.* in .*, 25\.2 MB are free/)
    assert.equal(await readdir(small), [])
  } finally {
    await run`umount ${small}`
  }
})

test('without a partition table there is nothing to shrink', async () => {
  await using folder = await openScratch()
  const image = join(folder.path, 'disk.img')
  await writeFile(image, '')
  await truncate(image, 20 * MIB)
  await run`mke2fs -q -F -t ext4 ${image}`
  const { code, message } = await faultOf(() => shrink(folder.path, image))
  assert.equal([code, message.includes('no partition table')], ['plan-refused', true], message)
})

const readerOf =
  (bytes: Buffer): ReadBytes =>
  async ({ offset, bytes: length }) => {
    if (offset + length > bytes.length) throw new RangeError()
    return bytes.subarray(offset, offset + length)
  }

/** What somebody changes in an ext file system, and the words that find it. */
const CHANGES: readonly (readonly [string, RegExp])[] = [
  ['set_inode_field /big uid 7', /owner, mode, size or times of \/big/],
  ['set_inode_field /big mode 0100644', /owner, mode/],
  ['set_inode_field /big mtime 20200101000000', /the times of \/big/],
  ['set_inode_field /big crtime 20200101000000', /times of \/big/],
  ['set_inode_field /big ctime 20200101000000', /the times of \/big/],
  ['ea_set "/etc/file 2" user.note other', /attributes of \/etc\/file 2/],
  ['ea_rm "/etc/file 6" user.large', /\/etc\/file 6/],
  ['ea_rm "/etc/file 10" system.posix_acl_access', /\/etc\/file 10/],
  ['unlink /soft', /names in \//],
  ['rm /pipe', /names in \//],
  ['punch /big 3 3', /\/big/],
  ['ln /big /more', /names in \//],
]

test('the comparison finds what differs in ext: owner, mode, times, names, links, attributes, content', async () => {
  await using folder = await openScratch()
  const file = join(folder.path, 'fs')
  await writeFile(file, '')
  await truncate(file, 40 * MIB)
  await makeLivedExt(file)
  const before = readerOf(await readFile(file))
  assert.is(await compareExt(before, before, never), null)
  for (const [command, words] of CHANGES) {
    const changed = join(folder.path, 'changed')
    await copyFile(file, changed)
    await run`debugfs -w -R ${command} ${changed}`
    const found = await compareExt(before, readerOf(await readFile(changed)), never)
    assert.match(found ?? 'nothing', words, command)
  }
  const flipped = Buffer.from(await readFile(file))
  const { stdout } = await run`debugfs -R ${'blocks /big'} ${file}`
  const block = Number(stdout.trim().split(/\s+/)[50])
  flipped[block * 1024 + 5] = (flipped[block * 1024 + 5] ?? 0) ^ 1
  const bytes = flipped.readUInt32LE(1024 + 0x18)
  assert.is(bytes, 0, 'blocks of 1024 bytes')
  assert.is(await compareExt(before, readerOf(flipped), never), 'the content of /big')
})

test('the comparison finds what differs in NTFS: content, streams, names, times', async () => {
  await using folder = await openScratch()
  const file = join(folder.path, 'fs')
  await writeFile(file, '')
  await truncate(file, 40 * MIB)
  await makeLivedNtfs(file)
  const bytes = await readFile(file)
  assert.is(await compareNtfs(readerOf(bytes), readerOf(bytes), never), null)
  const at = join(folder.path, 'mounted')
  await mkdir(at)
  const changes = [
    () => run`printf x | dd of=${at}/big bs=1 seek=100000 conv=notrunc status=none`,
    () => writeFile(join(at, 'big:stream'), 'less'),
    () => run`mv ${at}/big ${at}/bag`,
    () => run`touch -d 2020-01-01 ${at}/big`,
    () => run`rm ${at}/hard`,
  ]
  for (const [index, change] of changes.entries()) {
    const changed = join(folder.path, 'changed')
    await copyFile(file, changed)
    await run`ntfs-3g -o streams_interface=windows ${changed} ${at}`
    try {
      await change()
    } finally {
      await run`umount ${at}`
    }
    const found = await compareNtfs(readerOf(bytes), readerOf(await readFile(changed)), never)
    assert.type(found, 'string', `change ${index}`)
  }
})

test('a command killed at each of its steps publishes nothing and leaves the source alone', async () => {
  await using folder = await openScratch()
  const image = await makeDisk(folder.path, { label: 'gpt', parts: [fat(1), ext(2, 80)] })
  const before = digestOf(await readFile(image))
  const output = join(folder.path, 'small.img.zst')
  const argv = [FLASHER, 'pack', image, '--shrink', '--output', output]
  const env = { ...process.env, TMPDIR: join(folder.path, 'tmp') }
  for (const step of ['Making a copy', 'Shrinking', 'Putting', 'Packing']) {
    const child = spawn(process.execPath, argv, { stdio: ['ignore', 'ignore', 'pipe'], env })
    const ended = once(child, 'exit')
    for await (const chunk of child.stderr) if (String(chunk).includes(step)) break
    child.kill('SIGKILL')
    await ended
    assert.is(digestOf(await readFile(image)), before, step)
    assert.not((await readdir(folder.path)).includes('small.img.zst'), step)
  }
  const last = execFileSync(process.execPath, [...argv, '--json'], { env, encoding: 'utf8' })
  const { packed, shrunk } = JSON.parse(last)
  assert.is(packed.path, output)
  assert.is(shrunk.was_size_bytes, (await stat(image)).size)
  assert.equal(
    shrunk.partitions.map(({ number, file_system }: Record<string, unknown>) => [
      number,
      file_system,
    ]),
    [[2, 'ext4']],
  )
  assert.match(shrunk.kept.join(), 'Partition 1 (FAT) keeps its size')
})

test.run()
