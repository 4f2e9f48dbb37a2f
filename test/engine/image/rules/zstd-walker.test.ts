import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { zstdDecompressSync } from 'node:zlib'
import { createFrameWalker, renderZstdRefusal, type Span } from '#engine/image/rules/zstd.ts'
import {
  cutAt,
  damaged,
  fromFile,
  makeContent,
  pipeThrough,
  pzstd,
  skippable,
} from '#test/support/disk/compressed.ts'

const test = suite('zstd walker')

const CONTENT = makeContent(300_000)
const SMALL = makeContent(20_000)
/** Small windows make many blocks of few bytes. */
const MANY_BLOCKS = fromFile(['zstd', '-q', '-c', '--zstd=wlog=10', '{}'], SMALL)
const PZSTD = pzstd(makeContent(9_000_000))

/** Name, the file, and what it holds. */
const FILES: readonly (readonly [string, Buffer, Buffer])[] = [
  ['level 1', fromFile(['zstd', '-q', '-1', '-c', '{}'], CONTENT), CONTENT],
  ['level 19', fromFile(['zstd', '-q', '-19', '-c', '{}'], CONTENT), CONTENT],
  ['without checksum', fromFile(['zstd', '-q', '--no-check', '-c', '{}'], CONTENT), CONTENT],
  ['from a pipe', pipeThrough(['zstd', '-q', '-c'], CONTENT), CONTENT],
  ['many blocks', MANY_BLOCKS, SMALL],
  ['nothing', fromFile(['zstd', '-q', '-c', '{}'], Buffer.alloc(0)), Buffer.alloc(0)],
  ['one byte', fromFile(['zstd', '-q', '-c', '{}'], Buffer.from('x')), Buffer.from('x')],
  ['two frames', Buffer.concat([MANY_BLOCKS, MANY_BLOCKS]), Buffer.concat([SMALL, SMALL])],
  [
    'frames between skippable ones',
    Buffer.concat([
      skippable(CONTENT.subarray(0, 99)),
      MANY_BLOCKS,
      skippable(Buffer.alloc(0), 15),
    ]),
    SMALL,
  ],
]

interface Frame {
  readonly contentBytes: number | null
  readonly parts: Buffer[]
  ended: boolean
}

/** The frames that a walk finds, or why it stops. */
function walk(chunks: readonly Buffer[]) {
  const walker = createFrameWalker()
  const frames: Frame[] = []
  for (const chunk of chunks) {
    const spans = walker.push(chunk)
    if (!spans.ok) {
      assert.equal([walker.push(chunk), walker.end()], [spans, spans], 'a refusal is final')
      return { frames, refusal: spans.refusal }
    }
    for (const span of spans.value) keepSpan(frames, span)
  }
  const end = walker.end()
  return { frames, refusal: end.ok ? null : end.refusal }
}

function keepSpan(frames: Frame[], span: Span) {
  const current = frames.at(-1)
  if (span.kind === 'frame-start') {
    assert.not.equal(current?.ended, false, 'a frame starts within another')
    frames.push({ contentBytes: span.contentBytes, parts: [], ended: false })
    return
  }
  assert.is(current?.ended, false, `${span.kind} outside a frame`)
  if (span.kind === 'data') current?.parts.push(span.bytes)
  else if (current !== undefined) current.ended = true
}

const bytesOf = (walked: ReturnType<typeof walk>) =>
  walked.frames.map(({ parts, contentBytes }) => ({
    contentBytes,
    bytes: Buffer.concat(parts).toString('hex'),
  }))

test('the walk finds the frames of real files, and each decodes by itself', () => {
  for (const [name, file, content] of [
    ...FILES,
    ['pzstd', PZSTD, makeContent(9_000_000)] as const,
  ]) {
    const { frames, refusal } = walk([file])
    assert.is(refusal, null, name)
    const decoded = frames.map(({ parts }) => zstdDecompressSync(Buffer.concat(parts)))
    assert.ok(Buffer.concat(decoded).equals(content), name)
    for (const [index, { contentBytes, ended }] of frames.entries()) {
      assert.ok(ended, name)
      assert.ok(contentBytes === null || contentBytes === decoded[index]?.length, name)
    }
  }
})

const frame = (hex: string) => Buffer.from(`28b52ffd${hex}`, 'hex')

test('what cannot be read is refused by name', () => {
  const rows: readonly (readonly [Buffer, string])[] = [
    [frame('0800'), 'the zstd frame at byte 0 uses a feature that is not known'],
    [frame('010007'), 'compressed with the zstd dictionary 7, which is not at hand'],
    [frame('0200ff01'), 'compressed with the zstd dictionary 511, which is not at hand'],
    [frame('e0ffffffffffffffff'), 'the zstd frame at byte 0 claims more than 8 PiB'],
    [
      Buffer.from('27b52ffd00', 'hex'),
      'written by zstd 0.7, whose format is no longer supported; recompress it',
    ],
    [
      Buffer.from('22b52ffd00', 'hex'),
      'written by zstd 0.2, whose format is no longer supported; recompress it',
    ],
    [
      Buffer.from('fd2fb51e00', 'hex'),
      'written by zstd 0.1, whose format is no longer supported; recompress it',
    ],
    [Buffer.from('not zstd'), 'no zstd data at byte 0'],
    [Buffer.from('no'), 'no zstd data at byte 0'],
    [Buffer.alloc(0), 'no zstd data in it'],
    [skippable(Buffer.from('only this')), 'no zstd data in it'],
    [
      skippable(Buffer.from('more')).subarray(0, 10),
      'the zstd data ends after 10 bytes, in the middle of a frame',
    ],
    [frame('00'), 'the zstd data ends after 5 bytes, in the middle of a frame'],
    [frame('0000060000'), 'the zstd block at byte 6 is damaged'],
    [frame('0000092000'), 'the zstd block at byte 6 is damaged'],
    [frame('00000b2000ff'), 'the zstd block at byte 6 is damaged'],
    [frame('0000010000'), ''],
    [frame('0000022000ff010000'), ''],
    [frame('0400010000abcd'), 'the zstd data ends after 11 bytes, in the middle of a frame'],
    [
      Buffer.concat([frame('0000010000'), Buffer.from('\0\0\0\0')]),
      'something that is not zstd data follows at byte 9',
    ],
    [
      Buffer.concat([frame('0000010000'), Buffer.from('\n')]),
      'something that is not zstd data follows at byte 9',
    ],
    [
      Buffer.concat([frame('0000010000'), Buffer.from('28b5', 'hex')]),
      'the zstd data ends after 11 bytes, in the middle of a frame',
    ],
    [
      Buffer.concat([frame('0000010000'), Buffer.from('512a4d', 'hex')]),
      'the zstd data ends after 12 bytes, in the middle of a frame',
    ],
  ]
  for (const [bytes, words] of rows) {
    const { refusal } = walk([bytes])
    assert.is(refusal === null ? '' : renderZstdRefusal(refusal), words, bytes.toString('hex'))
  }
})

test('a file cut off anywhere is never taken for a whole one', () => {
  for (const [name, file] of FILES.slice(0, 6)) {
    for (const bytes of [0, 1, 4, 9, 1000, file.length - 5, file.length - 1]) {
      if (bytes >= file.length || bytes < 0) continue
      const { refusal } = walk([file.subarray(0, bytes)])
      assert.is(refusal?.why, bytes === 0 ? 'no-frame' : 'cut-off', `${name} ${bytes}`)
      assert.is(refusal?.at, bytes, name)
    }
  }
})

test('data are views of the chunk, but for the start of a header', () => {
  const walker = createFrameWalker()
  for (const chunk of cutAt(PZSTD, [13, 70_000, 1_000_001])) {
    const spans = walker.push(chunk)
    if (!spans.ok) throw new Error(spans.refusal.why)
    const data = spans.value.flatMap((span) => (span.kind === 'data' ? [span.bytes] : []))
    const copies = data.filter((bytes) => bytes.buffer !== chunk.buffer)
    assert.ok(copies.every((bytes) => bytes.length < 18))
    // A handful of spans however many blocks there are.
    assert.ok(spans.value.length < 20)
  }
})

test('jumping over what is ahead leads to the same end', () => {
  for (const [name, file] of FILES) {
    const walker = createFrameWalker()
    let seen = 0
    for (let at = 0; at < file.length;) {
      const bytes = file.subarray(at, at + 5)
      seen += bytes.length
      assert.ok(walker.push(bytes).ok, name)
      at += bytes.length
      const jump = Math.min(walker.ahead(), file.length - at)
      walker.skip(jump)
      at += jump
    }
    assert.equal(
      walker.end(),
      { ok: true, value: { frames: name === 'two frames' ? 2 : 1, bytes: file.length } },
      name,
    )
    if (name === 'level 1') assert.ok(seen < 1000)
  }
})

const places = fc.array(fc.nat(MANY_BLOCKS.length * 2), { maxLength: 40 })

test('fuzz: where the chunks are cut changes nothing', () => {
  const files = FILES.filter(([, file]) => file.length < 100_000).map(([, file]) => file)
  fc.assert(
    fc.property(fc.constantFrom(...files), places, fc.boolean(), (file, cuts, byBytes) => {
      const all = byBytes ? Array.from({ length: 60 }, (_, at) => at).concat(cuts) : cuts
      const [whole, parts] = [walk([file]), walk(cutAt(file, all))]
      assert.is(parts.refusal, null)
      assert.equal(bytesOf(parts), bytesOf(whole))
    }),
    { numRuns: 300 },
  )
})

test('fuzz: damage is found at the same place however it is cut, and only where there is some', () => {
  fc.assert(
    fc.property(damaged(MANY_BLOCKS), places, (file, cuts) => {
      const [whole, parts] = [walk([file]), walk(cutAt(file, cuts))]
      assert.equal(parts.refusal, whole.refusal)
      if (whole.refusal === null) assert.equal(bytesOf(parts), bytesOf(whole))
      else assert.ok(renderZstdRefusal(whole.refusal).length > 0)
      // Whatever is refused, zstd itself refuses (but that it lets anything follow).
      if (whole.refusal !== null && !isWholeAtFirst(file)) {
        assert.throws(() => zstdDecompressSync(file), undefined, whole.refusal.why)
      }
    }),
    { numRuns: 1000, examples: [[Buffer.concat([MANY_BLOCKS, Buffer.of(0x28)]), []]] },
  )
})

/** Whole frames and something behind them, be it the first bytes of another one. */
const isWholeAtFirst = (file: Buffer): boolean => {
  const { refusal } = walk([file])
  if (refusal?.why === 'garbage-after-frame') return true
  return [1, 2, 3].some((bytes) => walk([file.subarray(0, -bytes)]).refusal === null)
}

test('fuzz: any bytes end or are refused at the same place however they are cut', () => {
  const magics = ['28b52ffd', '502a4d18', '28b52ffd0000', ''].map((hex) => Buffer.from(hex, 'hex'))
  fc.assert(
    fc.property(fc.constantFrom(...magics), fc.uint8Array({ maxLength: 99 }), (magic, bytes) => {
      const file = Buffer.concat([magic, bytes])
      const { refusal } = walk([file])
      for (let at = 0; at <= file.length; at++)
        assert.equal(walk(cutAt(file, [at])).refusal, refusal)
      assert.equal(walk([...file].map((byte) => Buffer.of(byte))).refusal, refusal)
    }),
    { numRuns: 300 },
  )
})

test.run()
