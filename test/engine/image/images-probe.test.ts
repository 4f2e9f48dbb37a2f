import { execFileSync } from 'node:child_process'
import { mkdtempDisposable, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { detectFormat } from '#engine/image/rules/format.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { createImages } from '#engine/image/images.ts'
import { createShell } from '#kit/host/shell.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import { faultOf, makeBytes } from '#test/support/collect.ts'
import {
  fromFile,
  makeContent,
  pipeThrough,
  pzstd,
  seekable,
  unsized,
} from '#test/support/disk/compressed.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'

const test = suite('images: probe')

const images = createImages({ shell: createShell({ env: process.env }) })
const sources = createSources({ env: {}, retryMs: 1, stallMs: 5000 })
const temporary = () => mkdtempDisposable(join(tmpdir(), 'flasher-probe-'))

const CONTENT = makeContent(1_000_000)
const zst = (content: Buffer) => fromFile(['zstd', '-q', '-c', '{}'], content)
const xz = (content: Buffer) => pipeThrough(['xz', '-c', '-0', '--block-size=65536'], content)
const ZST = zst(CONTENT)

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
