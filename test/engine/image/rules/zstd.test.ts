import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseBlockHeader, parseFrameHeader } from '#engine/image/rules/zstd.ts'
import { fromFile, makeContent, pipeThrough } from '#test/support/disk/compressed.ts'

const test = suite('zstd')

test('content sizes of every field width are read, and none from a pipe', () => {
  for (const bytes of [0, 1, 255, 256, 300, 65_791, 65_792, 200_000]) {
    const file = fromFile(['zstd', '-q', '-c', '{}'], Buffer.alloc(bytes))
    const header = parseFrameHeader(file, 0)
    assert.is(header.ok && header.value.kind === 'frame' && header.value.contentBytes, bytes)
  }
  const piped = parseFrameHeader(pipeThrough(['zstd', '-q', '-c'], makeContent(1000)), 0)
  assert.is(piped.ok && piped.value.kind === 'frame' && piped.value.contentBytes, null)
})

const frame = (hex: string) => Buffer.from(`28b52ffd${hex}`, 'hex')

test('every field of a header, wherever it stands', () => {
  const header = { kind: 'frame', isSingleSegment: false, hasChecksum: false, contentBytes: null }
  const rows: readonly (readonly [Buffer, object])[] = [
    [frame('0000'), { ...header, headerBytes: 6, windowBytes: 1024 }],
    [frame('000f'), { ...header, headerBytes: 6, windowBytes: 2048 * (1 + 7 / 8) }],
    [frame('04f8'), { ...header, headerBytes: 6, windowBytes: 2 ** 41, hasChecksum: true }],
    [
      frame('8000ffffffff'),
      { ...header, headerBytes: 10, windowBytes: 1024, contentBytes: 0xffffffff },
    ],
    [
      frame('e00000000001000000'),
      {
        ...header,
        isSingleSegment: true,
        headerBytes: 13,
        windowBytes: 2 ** 32,
        contentBytes: 2 ** 32,
      },
    ],
    // A dictionary's number may be given as 0, which means none.
    [frame('03000000000000'.slice(0, 14)), { ...header, headerBytes: 10, windowBytes: 1024 }],
    // The unused bit is to be ignored.
    [frame('1000'), { ...header, headerBytes: 6, windowBytes: 1024 }],
  ]
  for (const [bytes, value] of rows) {
    const padded = Buffer.concat([Buffer.from('xyz'), bytes, Buffer.alloc(8)])
    assert.equal(parseFrameHeader(padded, 3), { ok: true, value }, bytes.toString('hex'))
  }
})

test('block headers', () => {
  const rows = [
    ['010000', { last: true, type: 'raw', bytes: 0, sizeField: 0 }],
    ['02000a', { last: false, type: 'rle', bytes: 1, sizeField: 0x14000 }],
    ['fdffff', { last: true, type: 'compressed', bytes: 2 ** 21 - 1, sizeField: 2 ** 21 - 1 }],
    ['060000', { last: false, type: 'reserved', bytes: 0, sizeField: 0 }],
  ] as const
  for (const [hex, value] of rows) {
    assert.equal(parseBlockHeader(Buffer.from(`ff${hex}`, 'hex'), 1), { ok: true, value }, hex)
  }
  const short = parseBlockHeader(Buffer.from('0100', 'hex'), 0)
  assert.equal(short, { ok: false, refusal: { why: 'cut-off' } })
})

test('fuzz: any bytes are a header or a refusal', () => {
  const magics = ['28b52ffd', '502a4d18', '5e2a4d18', '25b52ffd', ''].map((hex) =>
    Buffer.from(hex, 'hex'),
  )
  fc.assert(
    fc.property(fc.constantFrom(...magics), fc.uint8Array({ maxLength: 30 }), (magic, bytes) => {
      const file = Buffer.concat([magic, bytes])
      for (let at = 0; at <= file.length; at++) {
        const header = parseFrameHeader(file, at)
        if (header.ok) assert.ok(header.value.headerBytes <= Math.min(18, file.length - at))
        // Cut off says that a header's most bytes were not there.
        else if (header.refusal.why === 'cut-off') assert.ok(file.length - at < 18)
        assert.is(parseBlockHeader(file, at).ok, file.length - at >= 3)
      }
    }),
    { numRuns: 1000 },
  )
})

test.run()
