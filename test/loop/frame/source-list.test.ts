/** Flashes of an image that lies in several places: sources that are away, die, stall, crawl or lie, in the middle of a flash. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type * as http from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createFlasher } from '#engine/flash/flasher.ts'
import { type FlashEvent, type FlashOptions, WHOLE_DISK } from '#engine/flash/rules/flash-plan.ts'
import type { SourceShare } from '#engine/image/rules/frame-map.ts'
import { makeDiskImage, makeNoise } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { packBuffer } from '#test/support/disk/packed-image.ts'
import { openWorkshop } from '#test/support/disk/qcow2-image.ts'
import { assertBlank, assertSame, readDisk } from '#test/support/disk/writer.ts'
import {
  sendFile,
  startHostileServer,
  type FileBehaviour,
} from '#test/support/http/hostile-server.ts'

const test = suite('several sources onto disks')
const run = process.getuid?.() === 0 ? test : test.skip
const MIB = 1 << 20
const IMAGE = Buffer.concat([makeDiskImage(9 * MIB), makeNoise(35 * MIB, 4)])
const PACKED = await packBuffer(IMAGE)
const { sha256, indexSha256 } = PACKED
const INDEXED = { sha256, indexSha256 }
/** Frames of 4 MiB of noise: a look at the tables is shorter, a frame is not. */
const FRAME = 2 * MIB

interface Part {
  readonly from: number
  /** 0: no range was asked for; -1: only the headers. */
  readonly bytes: number
}

type Behave = (part: Part, frames: number) => FileBehaviour | 'gone' | 'crawl' | number

function readPart({ method, headers }: http.IncomingMessage): Part {
  const [, from = '0', last] = /bytes=(\d+)-(\d+)/.exec(headers.range ?? '') ?? []
  const bytes = last === undefined ? 0 : Number(last) + 1 - Number(from)
  return { from: Number(from), bytes: method === 'HEAD' ? -1 : bytes }
}

/** Serves the file; `behave` gets the parts that were asked for, and how many frames of them there were. */
async function serve(file: Buffer, behave: Behave = () => ({})) {
  const parts: Part[] = []
  const server = await startHostileServer((request, response) => {
    const part = readPart(request)
    if (part.bytes >= 0) parts.push(part)
    const how = behave(part, parts.filter(({ bytes }) => bytes > FRAME).length)
    if (typeof how === 'number') response.writeHead(how).end()
    else if (part.bytes < 0) sendFile(file, request, response)
    else if (how === 'gone') request.socket.destroy()
    else if (how === 'crawl') void crawl(file.subarray(part.from), part, file.length, response)
    else sendFile(file, request, response, how)
  })
  return {
    url: `${server.origin}/a.img.zst`,
    origin: server.origin,
    parts,
    frames: () => parts.filter(({ bytes }) => bytes > FRAME),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** Never silent, and never done: 20 KiB a second. */
async function crawl(
  bytes: Buffer,
  part: Part,
  whole: number,
  response: http.ServerResponse,
): Promise<void> {
  response.writeHead(206, {
    etag: '"one"',
    'content-length': part.bytes,
    'content-range': `bytes ${part.from}-${part.from + part.bytes - 1}/${whole}`,
  })
  for (let at = 0; at < part.bytes && !response.destroyed; at += 1024) {
    response.write(bytes.subarray(at, at + 1024))
    await sleep(50)
  }
}

interface Flashed {
  readonly kind: string
  readonly reason: string
  readonly shares: readonly SourceShare[]
  readonly device: string
}

async function flash(
  sources: readonly string[],
  image: string,
  options: Partial<FlashOptions> = INDEXED,
  check: (flashed: Flashed) => void | Promise<void> = () => undefined,
): Promise<Flashed> {
  await using loop = await createLoop({ megabytes: 48 })
  const flasher = createFlasher({
    env: {},
    retryMs: 5,
    stallMs: 3000,
    slowMs: 3000,
    readFirmware: async () => null,
  })
  let shares: readonly SourceShare[] = []
  const onEvent = (event: FlashEvent) => {
    if (event.event === 'writing') shares = event.sources ?? shares
  }
  const { signal } = new AbortController()
  const [end] = await flasher.flash(
    {
      image,
      sources,
      format: formatOf(image),
      targets: [{ path: loop.device }],
      options: { ...WHOLE_DISK, ...options },
    },
    { signal, onEvent },
  )
  if (end === undefined) throw new Error('it did not end')
  const reason = end.kind === 'done' ? '' : end.reason
  const flashed = { kind: end.kind, reason, shares, device: loop.device }
  if (end.kind === 'done') {
    assertSame(await readDisk(loop.device, 0, IMAGE.length), IMAGE)
  }
  await check(flashed)
  return flashed
}

function formatOf(image: string) {
  if (image.endsWith('.zst')) return 'img.zst'
  return image.endsWith('.qcow2') ? 'qcow2' : 'img'
}

const toRaw = (url: string) => url.replace('.zst', '')
const CLOSED = 'http://127.0.0.1:9/a.img.zst'

run(
  'the first source that is there gives all of it; those before it are named with the reason',
  async () => {
    await using missing = await serve(PACKED.file, () => 404)
    await using other = await serve(Buffer.concat([PACKED.file, Buffer.alloc(100)]))
    await using good = await serve(PACKED.file)
    await using cache = await serve(PACKED.file)
    const sources = [CLOSED, missing.url, other.url, good.url]
    const { kind, shares } = await flash(sources, cache.url)
    assert.is(kind, 'done')
    assert.equal(cache.parts, [])
    assert.ok(good.frames().length >= 9)
    const troubles = shares.map(({ trouble }) => trouble ?? 'none')
    const patterns = [
      /connection refused/,
      /HTTP 404/,
      /does not have the expected index/,
      /^none$/,
      /^none$/,
    ]
    for (const [at, pattern] of patterns.entries()) assert.match(troubles[at] ?? '', pattern)
    const [, , , given, unused] = shares
    assert.equal([given?.name, unused?.bytes], [good.origin, 0])
    assert.ok(Number(given?.bytes) > 35 * MIB)
  },
)

const FAULTS: readonly (readonly [string, Behave, RegExp])[] = [
  ['dies', (_, frames) => (frames > 3 ? 'gone' : {}), /closed|refused/],
  [
    'is cut off again and again',
    (_, frames) => (frames > 3 ? { cutAfter: MIB } : {}),
    /ended early|closed/,
  ],
  ['stalls', (_, frames) => (frames > 3 ? { stallAfter: MIB } : {}), /no data for|slow/],
  ['crawls', (_, frames) => (frames > 3 ? 'crawl' : {}), /slow/],
  ['loses the file', (_, frames) => (frames > 3 ? 404 : {}), /HTTP 404/],
  ['is busy', (_, frames) => (frames > 3 ? 503 : {}), /HTTP 503/],
  ['has another version', (_, frames) => (frames > 3 ? { etag: '"two"' } : {}), /changed/],
]

for (const [name, behave, trouble] of FAULTS) {
  run(`a source that ${name} in the middle: the next one goes on at the frame`, async () => {
    await using bad = await serve(PACKED.file, behave)
    await using next = await serve(PACKED.file)
    await using last = await serve(PACKED.file)
    const { kind, shares, reason } = await flash([bad.url, next.url], last.url)
    assert.is(kind, 'done', reason)
    assert.match(shares[0]?.trouble ?? '', trouble)
    assert.ok((shares[0]?.bytes ?? 0) >= 3 * FRAME, 'the first frames count')
    assert.ok((shares[1]?.bytes ?? 0) > 0)
    assert.equal(last.parts, [])
    // Nothing that was written is fetched again.
    assert.ok(next.frames().every(({ from }) => from > 0))
    assert.ok(next.frames().length < 9)
  })
}

run(
  'whenever a source goes, from the first look at its tables to the first frame, the next one has it',
  async () => {
    for (const most of [1, 2, 3, 4, 5, 6]) {
      let asked = 0
      await using bad = await serve(PACKED.file, ({ bytes }) => {
        if (bytes >= 0) asked += 1
        return asked > most ? 'gone' : {}
      })
      await using next = await serve(PACKED.file)
      const { kind, reason } = await flash([bad.url], next.url)
      assert.is(kind, 'done', `after ${most} answers: ${reason}`)
    }
  },
)

run('a source that lies is found by the index, wherever it lies', async () => {
  for (const at of [100, 20 * MIB]) {
    const lying = Buffer.from(PACKED.file)
    lying.fill(0x55, at, at + 5000)
    await using liar = await serve(lying)
    await using next = await serve(PACKED.file)
    const { kind, shares } = await flash([liar.url], next.url)
    assert.is(kind, 'done')
    assert.match(shares[0]?.trouble ?? '', /damaged|match the index|not end/)
    assert.ok((shares[1]?.bytes ?? 0) > 0)
  }
})

run(
  'where all sources break, each is asked once more, patiently, before the flash fails',
  async () => {
    let away = 8
    const leave: Behave = (_, frames) => (frames > 2 && (away -= 1) >= 0 ? 'gone' : {})
    await using first = await serve(PACKED.file, leave)
    const { kind, shares, reason } = await flash([first.url], CLOSED)
    assert.is(kind, 'done', reason)
    assert.ok(away < 0)
    assert.ok((shares[0]?.bytes ?? 0) > 35 * MIB)
  },
)

run(
  'where none comes back, the flash fails with the reason, and the disk does not boot',
  async () => {
    await using first = await serve(PACKED.file, leaveForGood)
    await flash([first.url], CLOSED, INDEXED, async ({ kind, reason, device }) => {
      assert.is(kind, 'failed')
      assert.match(reason, 'connection refused')
      await assertBlank(device)
    })
  },
)

const leaveForGood: Behave = (_, frames) => (frames > 2 ? 'gone' : {})

/** One answer from the start ends after 10 MiB; after that nothing comes. */
function breakOnce(): Behave {
  let isBroken = false
  return ({ bytes }) => {
    if (isBroken) return 'gone'
    isBroken = bytes === 0 || bytes > 20 * MIB
    return { cutAfter: 10 * MIB }
  }
}

run('without an index the bytes go on at the next source, and the digest decides', async () => {
  await using bad = await serve(PACKED.file, breakOnce())
  await using next = await serve(PACKED.file)
  const { kind, shares } = await flash([bad.url], next.url, { sha256 })
  assert.is(kind, 'done')
  assert.equal(
    shares.map(({ bytes }) => bytes),
    [10 * MIB, PACKED.file.length - 10 * MIB],
  )
  assert.ok(next.parts.some(({ from }) => from === 10 * MIB))
})

run('a lie in the other half is found by the digest, and the disk does not boot', async () => {
  const raw = Buffer.from(IMAGE)
  raw.fill(0x55, 20 * MIB, 20 * MIB + 10)
  await using bad = await serve(IMAGE, breakOnce())
  await using liar = await serve(raw)
  const known = { sha256: createHash('sha256').update(IMAGE).digest('hex') }
  await flash([toRaw(bad.url)], toRaw(liar.url), known, async ({ kind, reason, device }) => {
    assert.is(kind, 'failed')
    assert.match(reason, 'its sha256 is')
    await assertBlank(device)
  })
})

/** Compressed, so that it is read in many parts. */
async function makeQcow2() {
  await using workshop = await openWorkshop()
  const file = await readFile(await workshop.convert(IMAGE, ['-c']))
  return { file, known: { sha256: createHash('sha256').update(file).digest('hex') } }
}

const toQcow2 = (url: string) => url.replace('.img.zst', '.qcow2')

run('a qcow2 goes on at its place after each of many breaks', async () => {
  const { file, known } = await makeQcow2()
  let breaks = 0
  const breakOften: Behave = ({ bytes }) => {
    if (breaks >= 12 || (bytes > 0 && bytes < 65_536)) return {}
    breaks += 1
    return { cutAfter: bytes === 0 ? 4 * MIB : 20_000 }
  }
  await using near = await serve(file, breakOften)
  await using cache = await serve(file)
  const { kind, reason, shares } = await flash([toQcow2(near.url)], toQcow2(cache.url), known)
  assert.is(kind, 'done', reason)
  assert.is(breaks, 12)
  assert.ok((shares[0]?.bytes ?? 0) >= file.length)
  assert.equal(cache.parts, [])
})

run('a qcow2 whose place goes before its digest is compared comes from the next one', async () => {
  const { file, known } = await makeQcow2()
  let isGone = false
  const leave: Behave = ({ bytes }) => {
    if (isGone) return 'gone'
    isGone = bytes === 0
    return isGone ? { cutAfter: 4 * MIB } : {}
  }
  await using near = await serve(file, leave)
  await using cache = await serve(file)
  const { kind, reason, shares } = await flash([toQcow2(near.url)], toQcow2(cache.url), known)
  assert.is(kind, 'done', reason)
  assert.match(shares[0]?.trouble ?? '', /gave up/)
  assert.ok((shares[1]?.bytes ?? 0) >= file.length)
})

run('a qcow2 with another content at a place is not taken from there', async () => {
  const { file, known } = await makeQcow2()
  const other = Buffer.from(file)
  other.fill(0x55, 10 * MIB, 10 * MIB + 10)
  await using liar = await serve(other)
  await using cache = await serve(file)
  const { kind, reason, shares } = await flash([toQcow2(liar.url)], toQcow2(cache.url), known)
  assert.is(kind, 'done', reason)
  assert.match(shares[0]?.trouble ?? '', /its sha256 is/)
})

run('without index and digest nothing is joined', async () => {
  await using bad = await serve(IMAGE, breakOnce())
  await using next = await serve(IMAGE)
  const { kind } = await flash([toRaw(bad.url)], toRaw(next.url), {})
  assert.is(kind, 'failed')
  assert.equal(next.parts, [])
})

test.run()
