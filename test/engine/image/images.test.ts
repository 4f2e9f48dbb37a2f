import { execFileSync } from 'node:child_process'
import { mkdtempDisposableSync } from 'node:fs'
import { mkdir, mkdtempDisposable, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { IMAGES_PARTITION } from '#appliance/contract.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'
import type { VolumeFile } from '#build/exfat/volume.ts'
import type { DiskWrite } from '#engine/disk/rules/images-partition.ts'
import { createImages } from '#engine/image/images.ts'
import { detectFormat } from '#engine/image/rules/format.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import { createShell, type Shell, toolMissing } from '#kit/host/shell.ts'
import { faultOf, makeBytes } from '#test/support/collect.ts'
import {
  fromFile,
  makeContent,
  pipeThrough,
  pzstd,
  seekable,
  unsized,
} from '#test/support/disk/compressed.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import { growWhole, planNextWrites } from '#test/support/disk/growing.ts'
import type { SparseDisk } from '#test/support/disk/sparse-disk.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { makeStick } from '#test/support/vm/stick.ts'

const test = suite('images')

const shell = createShell({ env: process.env })
const images = createImages({ shell })
const temporary = () => mkdtempDisposable(join(tmpdir(), 'flasher-images-'))

const CONTENT = makeContent(1_000_000)
const zst = (content: Buffer) => fromFile(['zstd', '-q', '-c', '{}'], content)
const xz = (content: Buffer) => pipeThrough(['xz', '-c', '-0', '--block-size=65536'], content)
const ZST = zst(CONTENT)

/** A qcow2 file made by qemu-img itself. */
const makeQcow2 = (path: string, ...more: readonly string[]) =>
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', ...more, path, '4M'])

test('lists what is named like an image and is a file, in natural order', async () => {
  await using folder = await temporary()
  const root = folder.path
  const names = [
    'v2.4.10.img',
    'v2.4.2.img',
    'b.img',
    'B.IMG',
    'a.img.zst',
    'ä.qcow2',
    '.hidden.img',
    '~.img.gz',
    '-x.img.bz2',
  ]
  for (const name of [...names, 'notes.txt', 'a.tar.gz', 'x.iso']) {
    await writeFile(join(root, name), name)
  }
  await mkdir(join(root, 'folder.img'))
  await writeFile(join(root, 'folder.img', 'inside.img'), '')
  await symlink(join(root, 'b.img'), join(root, 'link.img.xz'))
  await symlink(join(root, 'folder.img'), join(root, 'to-folder.img'))
  await symlink('nowhere', join(root, 'dangling.img'))
  const rows = await images.list(root)
  const order = [
    '-x.img.bz2',
    '.hidden.img',
    '~.img.gz',
    'a.img.zst',
    'ä.qcow2',
    'b.img',
    'B.IMG',
    'link.img.xz',
    'v2.4.2.img',
    'v2.4.10.img',
  ]
  assert.equal(
    rows.map(({ name }) => name),
    order,
  )
  assert.equal(rows[6], { name: 'B.IMG', path: `${root}/B.IMG`, format: 'img', size_bytes: 5 })
  assert.equal(
    (await images.list(`${root}/`)).map(({ path }) => path),
    order.map((name) => `${root}/${name}`),
  )
})

test('a root that is no folder holds no images', async () => {
  await using folder = await temporary()
  await writeFile(join(folder.path, 'file'), '')
  for (const name of ['missing', 'file', 'file/below']) {
    assert.equal(await images.list(join(folder.path, name)), [])
  }
})

test('inspects every format', async () => {
  await using folder = await temporary()
  const at = (name: string) => join(folder.path, name)
  await writeFile(at('a.img'), CONTENT)
  await writeFile(at('a.img.zst'), ZST)
  await writeFile(at('a.img.xz'), xz(CONTENT))
  await writeFile(at('a.img.gz'), pipeThrough(['gzip', '-c'], CONTENT))
  await writeFile(at('a.img.bz2'), pipeThrough(['bzip2', '-c'], CONTENT))
  makeQcow2(at('a.qcow2'))
  const base = { path: at('a.img'), format: 'img', size_bytes: CONTENT.length }
  assert.equal(await images.inspect(at('a.img')), { ...base, virtual_size_bytes: CONTENT.length })
  const inspectedZst = await images.inspect(at('a.img.zst'))
  assert.is(inspectedZst.virtual_size_bytes, CONTENT.length)
  assert.match(String(inspectedZst.detail), /^Frames .*\n.* 1 .*a\.img\.zst$/s)
  const inspectedXz = await images.inspect(at('a.img.xz'))
  assert.is(inspectedXz.virtual_size_bytes, CONTENT.length)
  assert.match(String(inspectedXz.detail), /^Strms .*a\.img\.xz$/s)
  const { detail, ...qcow2 } = await images.inspect(at('a.qcow2'))
  assert.is(qcow2.virtual_size_bytes, 4 * 2 ** 20)
  assert.is(typeof detail === 'object' && detail['virtual-size'], 4 * 2 ** 20)
  assert.is(typeof detail === 'object' && detail['filename'], at('a.qcow2'))
  const inspectedGz = await images.inspect(at('a.img.gz'))
  const { size_bytes: gzBytes } = inspectedGz
  assert.equal(inspectedGz, {
    path: at('a.img.gz'),
    format: 'img.gz',
    size_bytes: gzBytes,
    virtual_size_bytes: null,
    virtual_size_at_least_bytes: CONTENT.length,
  })
  assert.equal(Object.keys(await images.inspect(at('a.img.bz2'))), [
    'path',
    'format',
    'size_bytes',
    'virtual_size_bytes',
  ])
})

test('inspects through links, and names that look like options or protocols', async () => {
  await using folder = await temporary()
  const at = (name: string) => join(folder.path, name)
  await writeFile(at('a.img.zst'), ZST)
  await writeFile(at('a.img.xz'), xz(CONTENT))
  makeQcow2(at('a.qcow2'))
  for (const name of ['a.img.zst', 'a.img.xz', 'a.qcow2']) {
    await symlink(at(name), at(`--link:${name}`))
    const inspected = await images.inspect(at(`--link:${name}`))
    assert.ok(inspected.detail, JSON.stringify(inspected))
  }
})

test('what is not what its name says, or damaged, has a detail_error instead', async () => {
  await using folder = await temporary()
  const rows: readonly (readonly [string, Buffer, RegExp])[] = [
    [
      'junk.qcow2',
      Buffer.alloc(512, 'x'),
      /junk\.qcow2 is named \.qcow2 but does not hold qcow2 data$/,
    ],
    ['z.img', ZST, /z\.img is named \.img but holds zst data: name it \.img\.zst$/],
    ['empty.img.zst', Buffer.alloc(0), /does not hold img\.zst data$/],
    [
      'cut.img.zst',
      ZST.subarray(0, -9),
      /cut\.img\.zst: the zstd data ends after \d+ bytes, in the middle of a frame$/,
    ],
    ['cut.img.xz', xz(CONTENT).subarray(0, 1000), /cut\.img\.xz: its end is not valid xz/],
    ['cut.qcow2', Buffer.from('514649fb00000003', 'hex'), /cut\.qcow2: it is cut off/],
  ]
  for (const [name, bytes, words] of rows) {
    const path = join(folder.path, name)
    await writeFile(path, bytes)
    const { detail_error: error, ...info } = await images.inspect(path)
    assert.equal(info, {
      path,
      format: detectFormat(name),
      size_bytes: bytes.length,
      virtual_size_bytes: null,
    })
    assert.match(error ?? '', words)
  }
})

test('an image that leans on another file is never opened by a tool', async () => {
  await using folder = await temporary()
  const path = join(folder.path, 'leaning.qcow2')
  makeQcow2(path, '-u', '-b', '/etc/passwd', '-F', 'raw')
  const { detail, detail_error: error } = await images.inspect(path)
  assert.is(detail, undefined)
  assert.match(error ?? '', /backing file/)
})

test('a tool that is missing or fails leaves its detail out, and nothing else', async () => {
  await using folder = await temporary()
  const path = join(folder.path, 'a.img.zst')
  await writeFile(path, ZST)
  const base = {
    path,
    format: 'img.zst',
    size_bytes: ZST.length,
    virtual_size_bytes: CONTENT.length,
  }
  const inspectWith = (run: Shell['run']) =>
    createImages({ shell: { ...shell, run } }).inspect(path)
  assert.equal(await inspectWith(async ([tool = '']) => Promise.reject(toolMissing(tool))), {
    ...base,
    detail_error: 'zstd is not installed. On Debian: apt-get install zstd',
  })
  assert.equal(await inspectWith(async () => ({ exitCode: 1, stdout: '', stderr: ' why \n' })), {
    ...base,
    detail_error: 'why',
  })
  assert.equal(await inspectWith(async () => ({ exitCode: 9, stdout: '', stderr: '' })), {
    ...base,
    detail_error: 'zstd ended with 9',
  })
})

test('a pipe, a folder or an unknown name has no format, and why; what is missing is a fault', async () => {
  await using folder = await temporary()
  const at = (name: string) => join(folder.path, name)
  await mkdir(at('folder.img'))
  execFileSync('mkfifo', [at('pipe.img')])
  await writeFile(at('a.iso'), 'x')
  await writeFile(at('a.tar.gz'), 'x')
  for (const [name, words] of [
    ['pipe.img', /pipe\.img is not a regular file$/],
    ['folder.img', /folder\.img is a folder, not an image$/],
    ['a.iso', /a\.iso is not an image: its name ends in none of \.img, \.qcow2, /],
    ['a.tar.gz', /a\.tar\.gz is a tarball, not an image: extract first$/],
  ] as const) {
    const found = await images.inspect(at(name))
    assert.equal([found.format, found.virtual_size_bytes], [null, null], name)
    assert.match(found.detail_error ?? '', words)
  }
  await symlink('loop.img', at('loop.img'))
  for (const [name, code] of [
    ['missing.img', 'input-missing'],
    ['a.iso/below.img', 'input-missing'],
    ['loop.img', 'input-invalid'],
  ] as const) {
    const fault = await faultOf(() => images.inspect(at(name)))
    assert.is(fault.code, code, name)
    assert.match(fault.message, at(name))
  }
})

const SECTOR = 512
const GIB = 2 ** 30
const { name: NAME } = IMAGES_PARTITION

/** Fifteen: none, short ones, and ones that take several clusters; names of one entry and of many. */
const files: readonly VolumeFile[] = Array.from({ length: 15 }, (_, n) => ({
  name: `${'an image '.repeat(n)}№ ${n}.img.zst`,
  content: makeNoise(n * n * 2000),
}))

for (const [title, onIt] of [
  ['with files', files],
  ['empty', []],
] as const) {
  test(`${title}: a cut before, after or within any write leaves all whole`, () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-cuts-'))
    const { disk: fresh } = makeStick({ diskBytes: 4 * GIB, files: onIt })
    const whole = fresh.copy()
    const writes = growWhole(whole)
    const end = whole.print()
    let cuts = 0
    for (const cut of listCuts(fresh, writes)) {
      cuts += 1
      checkReadable(cut.disk, folder.path, onIt.length, cut.what)
      checkRest(cut.disk, end, cut.what)
    }
    assert.ok(cuts >= 40, `${cuts} cuts`)
    checkReadable(whole, folder.path, onIt.length, 'all done')
  })
}

interface Cut {
  readonly what: string
  readonly disk: SparseDisk
}

/**
 * Lists what a power cut leaves: before each write, after the last, and within each one, with a part
 * from either end on the medium.
 */
function* listCuts(fresh: SparseDisk, writes: readonly DiskWrite[]): Generator<Cut> {
  const done = fresh.copy()
  for (const { what, offset, bytes } of writes) {
    yield { what: `before: ${what}`, disk: done.copy() }
    const sectors = bytes.length / SECTOR
    for (let torn = 1; torn < sectors; torn += torn < 2 ? 1 : 6) {
      const front = done.copy()
      front.write(offset, bytes.subarray(0, torn * SECTOR))
      yield { what: `${torn} sectors of: ${what}`, disk: front }
      const back = done.copy()
      back.write(offset + bytes.length - torn * SECTOR, bytes.subarray(-torn * SECTOR))
      yield { what: `last ${torn} sectors of: ${what}`, disk: back }
    }
    done.write(offset, bytes)
  }
  yield { what: 'after the last', disk: done }
}

/** As a system finds it that knows nothing of the growth: a whole table, and a clean volume in it. */
function checkReadable(disk: SparseDisk, folder: string, count: number, what: string) {
  const [whole, volume] = [join(folder, 'disk'), join(folder, 'volume')]
  disk.save(whole, 0, disk.bytes)
  const columns = ['--raw', '--noheadings', '--bytes', '--output', 'START,SIZE,NAME']
  const rows = run('partx', [...columns, whole])
    .trim()
    .split('\n')
  const found = rows.map((row) => row.split(' ')).find(([, , name]) => name === NAME)
  assert.is(rows.length, 3, what)
  disk.save(volume, Number(found?.[0]) * SECTOR, Number(found?.[1]))
  const said = run('fsck.exfat', ['-n', volume])
  assert.match(said, `clean. directories 1, files ${count}`, what)
}

const run = (tool: string, args: readonly string[]) =>
  execFileSync(tool, args, { encoding: 'utf8', stdio: 'pipe' })

/** The next run does what is left, to the very same bytes, and the one after that does nothing. */
function checkRest(disk: SparseDisk, end: ReadonlyMap<number, string>, what: string) {
  growWhole(disk)
  assert.ok(isSame(disk.print(), end), what)
  assert.equal(planNextWrites(disk), [], what)
}

const isSame = (one: ReadonlyMap<number, string>, two: ReadonlyMap<number, string>) =>
  one.size === two.size && [...one].every(([sector, text]) => two.get(sector) === text)

test('files, their chains and their entries are never written', () => {
  const { disk, volumeOffset } = makeStick({ diskBytes: 4 * GIB, files })
  const before = disk.copy()
  const [fat, heap, end] = [2048, 18_944, 65_536].map((sector) => volumeOffset + sector * SECTOR)
  const within = growWhole(disk).filter(
    ({ offset }) => offset >= Number(fat) && offset < Number(end),
  )
  // The root directory's first sector alone, of which the bitmap's length changes.
  assert.equal(
    within.map(({ what, bytes }) => [what, bytes.length]),
    [['length of the bitmap', SECTOR]],
  )
  const [root, rest] = [Number(heap) + 2 * 2 ** 18, Number(heap) + 3 * 2 ** 18]
  const entries = (of: SparseDisk) => of.read(root, SECTOR).toString('hex', 64)
  assert.is(entries(disk), entries(before))
  assert.ok(disk.read(rest, 2 ** 23).equals(before.read(rest, 2 ** 23)))
})

const sources = createSources({ env: {}, retryMs: 1, stallMs: 5000 })

/** What a probe makes of these bytes in a file and on a server, and what the server was asked. */
async function probeBoth(
  name: string,
  bytes: Buffer,
  format: ImageFormat | null = detectFormat(name),
) {
  await using folder = await temporary()
  await writeFile(join(folder.path, name), bytes)
  await using file = await sources.open(join(folder.path, name))
  const near = await images.probe(file, format)
  await using server = await startHostileServer((request, response) =>
    sendFile(bytes, request, response),
  )
  await using remote = await sources.open(`${server.origin}/${name}`)
  const before = server.seen.length
  const far = await images.probe(remote, format)
  return { near, far, requests: server.seen.length - before }
}

const exact = (bytes: number) => ({ kind: 'exact', bytes })

test('probes sizes in files, and on servers with a few requests', async () => {
  const large = makeBytes(1_000_000)
  const gz = pipeThrough(['gzip', '-c'], large)
  const rows: readonly (readonly [string, Buffer, object, object, number])[] = [
    ['a.img', large, exact(1_000_000), exact(1_000_000), 1],
    ['a.img.zst', zst(large), exact(1_000_000), exact(1_000_000), 2],
    ['seekable.img.zst', seekable([large, large]), exact(2_000_000), exact(2_000_000), 2],
    // Only the table says what its frames hold.
    [
      'streamed.img.zst',
      seekable([large, large], false, unsized),
      exact(2_000_000),
      exact(2_000_000),
      2,
    ],
    [
      'two.img.zst',
      Buffer.concat([zst(large), zst(large)]),
      exact(2_000_000),
      { kind: 'at-least', bytes: 1_000_000 },
      2,
    ],
    ['small.img.zst', ZST, exact(1_000_000), exact(1_000_000), 6],
    ['p.img.zst', pzstd(large), { kind: 'unknown' }, { kind: 'unknown' }, 2],
    ['a.img.xz', xz(large), exact(1_000_000), exact(1_000_000), 3],
    [
      'a.img.gz',
      gz,
      { kind: 'at-least', bytes: 1_000_000 },
      { kind: 'at-least', bytes: 1_000_000 },
      2,
    ],
    ['a.img.bz2', pipeThrough(['bzip2', '-c'], large), { kind: 'unknown' }, { kind: 'unknown' }, 1],
  ]
  for (const [name, bytes, nearSize, farSize, most] of rows) {
    const { near, far, requests } = await probeBoth(name, bytes)
    assert.equal(near.virtual, nearSize, name)
    assert.equal(far.virtual, farSize, name)
    assert.ok(requests <= most, `${name}: ${requests} requests`)
    assert.equal(
      [near.sizeBytes, far.sizeBytes, near.format],
      [bytes.length, bytes.length, detectFormat(name)],
    )
    assert.ok(near.url === null && far.path === null && near.path !== null && far.url !== null)
  }
})

test('many streams far away: as many requests as are worth it, then a lower bound', async () => {
  const stream = xz(makeBytes(100_000))
  const { near, far, requests } = await probeBoth(
    'a.img.xz',
    Buffer.concat(Array.from({ length: 9 }, () => stream)),
  )
  assert.equal(near.virtual, exact(900_000))
  assert.is(far.virtual.kind, 'at-least')
  assert.is(requests, 8)
})

test('probes qcow2 by its header', async () => {
  await using folder = await temporary()
  const path = join(folder.path, 'a.qcow2')
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', path, '4M'])
  await truncate(path, 5 * 2 ** 20)
  await using source = await sources.open(path)
  assert.equal((await images.probe(source, 'qcow2')).virtual, exact(4 * 2 ** 20))
})

test('a probe refuses what would fail while it is written', async () => {
  const rows: readonly (readonly [string, Buffer, string, RegExp])[] = [
    ['a.img', ZST, 'plan-refused', /is named \.img but holds zst data: name it \.img\.zst/],
    ['a.img.gz', ZST, 'plan-refused', /is named \.img\.gz but holds zst data/],
    ['a.img', Buffer.alloc(0), 'plan-refused', /is empty/],
    ['a.img.zst', zst(Buffer.alloc(0)), 'plan-refused', /holds an empty image/],
    ['a.img.zst', ZST.subarray(0, -1), 'image-broken', /in the middle of a frame/],
    ['a.img.zst', Buffer.concat([ZST, Buffer.from('<html>')]), 'image-broken', /follows at byte/],
    ['a.img.xz', xz(CONTENT).subarray(0, -4), 'image-broken', /cut off/],
    ['a.img.bz2', Buffer.from('BZh9, nothing'), 'image-broken', /bzip2/],
  ]
  for (const [name, bytes, code, words] of rows) {
    const fault = await faultOf(() => probeBoth(name, bytes))
    assert.is(fault.code, code, name)
    assert.match(fault.message, words)
    assert.match(fault.message, name)
  }
})

test('standard input and unknown formats are not looked into', async () => {
  const stdin = createSources({ env: {}, stdin: Readable.from([ZST]) })
  await using source = await stdin.open('-')
  const facts = await images.probe(source, 'img.zst')
  assert.equal(
    [facts.virtual, facts.format, facts.sizeBytes],
    [{ kind: 'unknown' }, 'img.zst', null],
  )
  const { near } = await probeBoth('a.iso', CONTENT)
  assert.equal([near.format, near.virtual], [null, { kind: 'unknown' }])
})

test.run()
