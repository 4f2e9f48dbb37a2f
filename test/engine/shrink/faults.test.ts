/** What must not be cut or moved is left, or nothing is; what fails on the way says why. */
import {
  chmod,
  copyFile,
  mkdir,
  mkdtempDisposable,
  open,
  readdir,
  readFile,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { compareExt } from '#engine/shrink/ext-comparison.ts'
import { shrinkImage } from '#engine/shrink/shrinker.ts'
import { createSparseFile } from '#engine/shrink/sparse-file.ts'
import { faultOf } from '#test/support/collect.ts'
import { BASIC, LINUX, makeDisk, type MadePart, SWAP } from '#test/support/disk/shrink-images.ts'

const test = suite('shrink: faults')
const run = $({ quiet: true })
const MIB = 1 << 20
const signal = new AbortController().signal

async function openScratch() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'flasher-shrink-test-'))
  await mkdir(join(folder.path, 'tmp'))
  return folder
}

function shrink(folder: string, image: string, more: Record<string, string> = {}) {
  const env = { ...process.env, TMPDIR: join(folder, 'tmp'), ...more }
  const output = join(folder, 'small.img.zst')
  const order = { image, output, format: null, sha256: null, level: 1, reservePercent: 10 }
  return shrinkImage({ env }, order, {
    signal,
    onStage: () => undefined,
    onProgress: () => undefined,
  })
}

/** A file system of 24 MiB in a partition of 40. */
const short = (number: number): MadePart => ({
  number,
  megabytes: 40,
  type: LINUX,
  make: (file) => run`mke2fs -q -F -t ext4 ${file} 24M`,
})
const ntfs: MadePart = {
  number: 1,
  megabytes: 40,
  type: BASIC,
  make: (file) => run`mkntfs --quiet --force --fast ${file}`,
}
const swap: MadePart = {
  number: 2,
  megabytes: 8,
  type: SWAP,
  make: (file) => run`mkswap ${file}`,
}

async function patch(path: string, at: number, bytes: Buffer) {
  await using file = await open(path, 'r+')
  await file.write(bytes, 0, bytes.length, at)
}

/** The superblock of md 1.0, 8 KiB before the end of a partition of 40 MiB. */
function makeMember() {
  const block = Buffer.alloc(256)
  block.writeUInt32LE(0xa92b4efc, 0)
  block.writeUInt32LE(1, 4)
  block.fill(7, 16, 32)
  block.writeBigUInt64LE(BigInt((40 * MIB - 8192) / 512), 144)
  return block
}

type Spoiled = readonly [RegExp, readonly MadePart[], (image: string) => Promise<unknown>]

const SPOILED: Readonly<Record<string, Spoiled>> = {
  'a member of a RAID': [
    /something else \(linux_raid_member\)/,
    [short(1)],
    (image) => patch(image, 41 * MIB - 8192, makeMember()),
  ],
  'hashes behind a file system': [
    /data lies behind its file system, inside the partition/,
    [short(1)],
    (image) => patch(image, 26 * MIB, Buffer.from('hashes')),
  ],
  'data behind an NTFS': [
    /data lies behind its file system, inside the partition/,
    [{ ...ntfs, make: (file) => run`mkntfs --quiet --force --fast ${file} 60000` }],
    (image) => patch(image, 38 * MIB, Buffer.from('x')),
  ],
  'shadow copies': [
    /delete its shadow copies first/,
    [ntfs],
    async (image) => {
      await patch(image, MIB + 0x1e00, Buffer.from('6b87083876c1484eb7ae04046e6cc752', 'hex'))
      await patch(image, MIB + 0x1e31, Buffer.from([0x40]))
    },
  ],
  'SYSLINUX on NTFS': [
    /a boot loader in it is found by block numbers/,
    [ntfs],
    (image) => patch(image, MIB + 0x54, Buffer.alloc(0x1aa, 0x90)),
  ],
  'hibernated swap': [
    /a Linux is hibernated in partition 2/,
    [short(1), swap],
    (image) => patch(image, 41 * MIB + 65_536 - 10, Buffer.from('S1SUSPEND\0')),
  ],
  'GRUB Legacy': [
    /a GRUB of this image loads what is not known here/,
    [short(1)],
    async (image) => {
      await patch(image, 0x3e, Buffer.from([3, 2, 0xff, 0, 0, 0x80, 1, 0, 0, 0, 0, 8]))
      await patch(
        image,
        0x4a,
        Buffer.from('faeb07f6c2807502b280ea597c000031c08ed88ed0bc0020', 'hex'),
      )
      await patch(image, 0x17d, Buffer.from('GRUB '))
    },
  ],
}

test('left as it is, with the reason, and nothing is published', async () => {
  for (const [name, [words, parts, spoil]] of Object.entries(SPOILED)) {
    await using folder = await openScratch()
    const image = await makeDisk(folder.path, { label: 'gpt', parts })
    await spoil(image)
    const { code, message } = await faultOf(() => shrink(folder.path, image))
    assert.is(code, 'plan-refused', `${name}: ${message}`)
    assert.match(message, words, name)
    assert.equal(await readdir(join(folder.path, 'tmp')), [], name)
  }
})

test('a file system that is smaller than its partition shrinks where zeros follow it', async () => {
  await using folder = await openScratch()
  for (const part of [short(1), ntfs]) {
    const image = await makeDisk(folder.path, { label: 'gpt', parts: [part] })
    const { places } = await shrink(folder.path, image)
    assert.is(places.length, 1)
    await run`rm ${image} ${join(folder.path, 'small.img.zst')}`
  }
})

test('an image that is shorter than a sector has no table', async () => {
  await using folder = await openScratch()
  const image = join(folder.path, 'disk.img')
  await writeFile(image, Buffer.alloc(100, 1))
  const { code, message } = await faultOf(() => shrink(folder.path, image))
  assert.equal([code, message.includes('no partition table')], ['plan-refused', true], message)
})

test('a tool that finds no room: that is said, and what killed commands left', async () => {
  await using folder = await openScratch()
  const image = await makeDisk(folder.path, { label: 'gpt', parts: [short(1)] })
  const [bin, tmp] = [join(folder.path, 'bin'), join(folder.path, 'tmp')]
  await mkdir(bin)
  const script = `#!/bin/sh\nfallocate -l 190M ${tmp}/other\necho No space left on device >&2\nexit 1\n`
  await writeFile(join(bin, 'resize2fs'), script)
  await chmod(join(bin, 'resize2fs'), 0o755)
  await run`mount -t tmpfs -o size=200M tmpfs ${tmp}`
  try {
    await mkdir(join(tmp, 'flasher-shrink-older'))
    const PATH = `${bin}:${process.env['PATH'] ?? ''}`
    const { code, hint } = await faultOf(() => shrink(folder.path, image, { PATH }))
    assert.is(code, 'storage-full')
    assert.match(hint ?? '', 'flasher-shrink-older.')
    assert.equal(await readdir(tmp), ['flasher-shrink-older', 'other'])
  } finally {
    await run`umount ${tmp}`
  }
})

test('a patch counts as data, so that the comparison reads it', async () => {
  await using folder = await openScratch()
  await using file = await createSparseFile(join(folder.path, 'file'))
  await file.put(Buffer.alloc(4096, 1), 0)
  await file.patch(Buffer.alloc(4, 1), 60_000)
  assert.equal(file.data, [
    { offset: 0, bytes: 4096 },
    { offset: 60_000, bytes: 4 },
  ])
})

async function openWhole(path = '') {
  const bytes = await readFile(path)
  return async (range: { offset: number; bytes: number }) =>
    bytes.subarray(range.offset, range.offset + range.bytes)
}

test('security.evm signs the number of an inode: it must not change', async () => {
  await using folder = await openScratch()
  const [tree, file, other] = ['tree', 'file', 'other'].map((name) => join(folder.path, name))
  await run`mkdir ${tree} && cd ${tree} && touch -d 2020-01-01 one && cp -p one two`
  await writeFile(file ?? '', '')
  await truncate(file ?? '', 8 * MIB)
  await run`mke2fs -q -F -t ext4 -d ${tree} ${file}`
  const fields = ['crtime', 'ctime', 'atime', 'crtime_extra', 'atime_extra', 'generation']
  const times = fields.flatMap((field) =>
    [`set_inode_field one ${field} @7`, `set_inode_field two ${field} @7`].map((line) =>
      line.replace(/(extra|generation) @/, '$1 '),
    ),
  )
  const signed = ['ea_set one security.evm x', 'ea_set two security.evm x', ...times]
  await run({ input: `${signed.join('\n')}\n` })`debugfs -w -f - ${file}`
  await copyFile(file ?? '', other ?? '')
  const moves = [
    'ln one three',
    'unlink one',
    'ln two one',
    'unlink two',
    'ln three two',
    'unlink three',
  ]
  await run({ input: `${moves.join('\n')}\n` })`debugfs -w -f - ${other}`
  const before = await openWhole(file)
  assert.is(await compareExt(before, before, signal), null)
  const found = await compareExt(before, await openWhole(other), signal, [])
  assert.is(found, 'the inode number, which security.evm signs, of /two')
})

test.run()
