/** Images that are damaged or not what they seem: refused untouched, or stopped and left blank. */
import { createHash } from 'node:crypto'
import { mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { FaultCode } from '#kit/foundation/fault.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import { createRandom, faultOf, makeBytes } from '#test/support/collect.ts'
import { pipeThrough } from '#test/support/disk/compressed.ts'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { ENCODINGS, type Encoding } from '#test/support/disk/encodings.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { createMemorySource } from '#test/support/disk/memory-source.ts'
import { packBuffer } from '#test/support/disk/packed-image.ts'
import { flashRefused } from '#test/support/disk/refused-flash.ts'
import {
  assertSame,
  expectedDisk,
  flash,
  makeStale,
  readDisk,
  type FlashOrder,
} from '#test/support/disk/writer.ts'

const test = suite('damaged and mistaken images')
const MIB = 1 << 20
/** More than one slot of the writer, and the MiB at either end. */
const SIZE = 6
const IMAGE = makeDiskImage(SIZE * MIB - 512)
const sources = createSources({ env: {} })
const digestOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

/** Flashes a file with these bytes; the Fault, and what the disk held before and holds after. */
async function tryFile(name: string, bytes: Buffer, order: Partial<FlashOrder> = {}) {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-damage-'))
  const path = join(folder.path, name)
  writeFileSync(path, bytes)
  await using source = await sources.open(path)
  return await trySource({ source, ...order })
}

const trySource = (order: Omit<FlashOrder, 'device'>) => flashRefused(SIZE, order)

const known = (name: string): Encoding => {
  const encoding = ENCODINGS.find((each) => each.name === name)
  if (encoding === undefined) throw new Error(`no encoding ${name}`)
  return encoding
}
const CHECKED = ['zstd with size and checksum', 'zstd by pzstd', 'xz in blocks', 'gzip', 'bzip2']

for (const name of CHECKED) {
  const { format, encode } = known(name)
  const stored = encode(IMAGE)

  test(`${name}: cut off anywhere, followed by garbage, a bit flipped`, async () => {
    const random = createRandom(3)
    const place = () => 600_000 + Math.floor(random() * (stored.length - 600_000))
    const flipped = Buffer.from(stored)
    flipped.writeUInt8(flipped.readUInt8(600_001) ^ 0x10, 600_001)
    const rows = [
      stored.subarray(0, place()),
      stored.subarray(0, stored.length - 1),
      Buffer.concat([stored, makeBytes(3000)]),
      flipped,
    ]
    for (const [n, bytes] of rows.entries()) {
      const { fault } = await trySource({
        source: createMemorySource(bytes, { name: `disk.${format}` }),
      })
      assert.is(fault.code, 'image-broken', `case ${n}`)
      assert.match(fault.message, `disk.${format} is damaged or cut off: `)
      assert.match(fault.hint ?? '', 'Download or copy the image again')
    }
  })
}

test('a wrong digest is found before anything could boot', async () => {
  for (const name of ['raw', 'zstd in frames', 'xz in one block', 'gzip with padding', 'bzip2']) {
    const { format, encode } = known(name)
    const stored = encode(IMAGE)
    const wrong = 'ab'.repeat(32)
    const { fault, isUntouched } = await tryFile(`disk.${format}`, stored, { sha256: wrong })
    assert.is(fault.code, 'digest-mismatch')
    assert.match(fault.message, new RegExp(`its sha256 is ${digestOf(stored)}, not ${wrong}$`))
    assert.not(isUntouched)
  }
})

test('of an image that is read out of order, even before the disk is touched', async () => {
  const padded = Buffer.concat([IMAGE, Buffer.alloc(512)])
  const stored = known('qcow2, zstd').encode(padded)
  const { fault, isUntouched } = await tryFile('disk.qcow2', stored, { sha256: 'ab'.repeat(32) })
  assert.is(fault.code, 'digest-mismatch')
  assert.ok(isUntouched)
})

test('the right digest passes, whatever way the image is read', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-damage-'))
  const padded = Buffer.concat([IMAGE, Buffer.alloc(512)])
  for (const { format, encode } of [...CHECKED, 'raw', 'qcow2, zlib'].map(known)) {
    const stored = encode(IMAGE)
    const path = join(folder.path, `disk.${format}`)
    writeFileSync(path, stored)
    await using source = await sources.open(path)
    await using loop = await createLoop({ megabytes: SIZE })
    const { device } = loop
    await flash({ source, device, sha256: digestOf(stored), verify: 'none' })
    assertSame(await readDisk(device), padded)
  }
})

const TAR = pipeThrough(['tar', '--create', '--file=-', '/etc/hostname'], Buffer.alloc(0))
const zstd = (bytes: Buffer) => pipeThrough(['zstd', '-qc'], bytes)
const OF_4096 = makeDiskImage(4 * MIB, { sectorBytes: 4096 })
const MISTAKEN: readonly (readonly [string, string, Buffer, FaultCode, RegExp])[] = [
  ['a tarball', 'disk.img', TAR, 'plan-refused', /disk\.img is a tarball: extract first$/],
  ['a tarball inside', 'a.img.zst', zstd(TAR), 'plan-refused', /holds a tarball: extract first$/],
  [
    'zstd named raw',
    'disk.img',
    zstd(IMAGE),
    'plan-refused',
    /holds zst data: name it \.img\.zst$/,
  ],
  [
    'qcow2 named raw',
    'disk.img',
    known('qcow2').encode(IMAGE),
    'plan-refused',
    /is named \.img but holds qcow2 data: name it \.qcow2$/,
  ],
  [
    'raw named gzip',
    'disk.img.gz',
    IMAGE,
    'plan-refused',
    /is named \.img\.gz but does not hold img\.gz data$/,
  ],
  [
    'qcow2 inside gzip',
    'disk.img.gz',
    known('gzip').encode(known('qcow2').encode(IMAGE)),
    'plan-refused',
    /holds qcow2 data inside: extract it first$/,
  ],
  [
    'zstd inside zstd',
    'disk.img.zst',
    zstd(zstd(IMAGE)),
    'plan-refused',
    /holds zst data inside: extract it first$/,
  ],
  [
    'made for other sectors',
    'disk.img',
    OF_4096,
    'plan-refused',
    /is made for disks with 4096-byte sectors, but this disk has 512-byte sectors$/,
  ],
  ['noise named xz', 'disk.img.xz', makeBytes(5000), 'plan-refused', /does not hold img\.xz data$/],
  ['an empty file', 'disk.img', Buffer.alloc(0), 'plan-refused', / is empty$/],
  [
    'damage in the first MiB',
    'disk.img.gz',
    Buffer.concat([known('gzip').encode(IMAGE).subarray(0, 300_000), Buffer.alloc(9)]),
    'image-broken',
    /is damaged or cut off/,
  ],
]
for (const [what, name, bytes, code, words] of MISTAKEN) {
  test(`${what} never touches the disk`, async () => {
    const { fault, isUntouched } = await tryFile(name, bytes)
    assert.is(fault.code, code)
    assert.match(fault.message, words)
    assert.ok(isUntouched)
  })
}

test('an image for 512-byte sectors is refused on a disk of 4096', async () => {
  await using loop = await createLoop({ megabytes: SIZE, sectorBytes: 4096 })
  const source = createMemorySource(IMAGE, { name: 'disk.img' })
  const fault = await faultOf(() => flash({ source, device: loop.device }))
  assert.is(fault.code, 'plan-refused')
  assert.match(fault.message, 'made for disks with 512-byte sectors')
})

test('a file that changes while it is read', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-damage-'))
  const path = join(folder.path, 'disk.img')
  writeFileSync(path, IMAGE)
  await using source = await sources.open(path)
  const { fault } = await trySource({
    source,
    onEvent: ({ event }) => {
      if (event === 'started') writeFileSync(path, IMAGE)
    },
  })
  assert.is(fault.code, 'source-broken')
  assert.match(fault.message, 'changed while it was read')
})

test('the disk that was looked at must be the one that is written', async () => {
  await using loop = await createLoop({ megabytes: SIZE })
  const { device } = loop
  const stale = await makeStale(device)
  const source = createMemorySource(IMAGE, { name: 'disk.img' })
  const others = [
    { serial: 'another', diskseq: null },
    { sizeBytes: SIZE * MIB - 512 },
    { diskseq: 1 },
  ]
  for (const other of others) {
    const change: FlashOrder['change'] = (plan) => ({
      ...plan,
      target: { ...plan.target, identity: { ...plan.target.identity, ...other } },
    })
    const fault = await faultOf(() => flash({ source, device, change }))
    assert.is(fault.code, 'target-raced', JSON.stringify(other))
  }
  const { file } = await packBuffer(IMAGE)
  const frames = createMemorySource(file, { name: 'disk.img.zst' })
  for (const other of others) {
    const change: FlashOrder['change'] = (plan) => ({
      ...plan,
      delta: true,
      target: { ...plan.target, identity: { ...plan.target.identity, ...other } },
    })
    const fault = await faultOf(() => flash({ source: frames, device, change }))
    assert.is(fault.code, 'target-raced', `compared: ${JSON.stringify(other)}`)
  }
  assertSame(await readDisk(device), stale)
  await flash({ source, device })
  assertSame(await readDisk(device), expectedDisk(stale, IMAGE))
})
test.run()
