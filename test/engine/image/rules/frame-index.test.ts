import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  digestOfZeros,
  encodeFrameIndex,
  FRAME_BYTES,
  type IndexContent,
  MAX_STORED_BYTES,
  parseFrameIndex,
  renderIndexRefusal,
  decidePromisedIndex,
  describeFrames,
} from '#engine/image/rules/frame-map.ts'
import { damaged } from '#test/support/disk/compressed.ts'

const test = suite('frame index')

const digest = (text: string) => createHash('sha256').update(text).digest()
const anyContent: fc.Arbitrary<IndexContent> = fc
  .record({
    frames: fc.array(
      fc.record({
        storedBytes: fc.integer({ min: 1, max: MAX_STORED_BYTES }),
        isZero: fc.boolean(),
      }),
      { minLength: 1, maxLength: 12 },
    ),
    lastBytes: fc.integer({ min: 1, max: FRAME_BYTES }),
  })
  .map(({ frames, lastBytes }) => ({
    imageBytes: (frames.length - 1) * FRAME_BYTES + lastBytes,
    imageSha256: digest('image'),
    entries: frames.map(({ storedBytes, isZero }, index) => ({
      storedBytes,
      isZero,
      sha256: isZero
        ? digestOfZeros(index === frames.length - 1 ? lastBytes : FRAME_BYTES)
        : digest(`frame ${index}`),
    })),
  }))
const endOf = ({ entries }: IndexContent) =>
  entries.reduce((sum, { storedBytes }) => sum + storedBytes, 0)

const SMALL: IndexContent = {
  imageBytes: FRAME_BYTES + 512,
  imageSha256: digest('image'),
  entries: [
    { storedBytes: 151, isZero: true, sha256: digestOfZeros(FRAME_BYTES) },
    { storedBytes: 300, isZero: false, sha256: digest('frame') },
  ],
}

test('what was encoded is parsed, frame by frame and without gaps', () => {
  fc.assert(
    fc.property(anyContent, (content) => {
      const parsed = parseFrameIndex(encodeFrameIndex(content), endOf(content))
      assert.ok(parsed.ok)
      const map = parsed.value
      const { length } = content.entries
      assert.equal([map.count, map.bytes], [length, content.imageBytes])
      let [offset, storedAt] = [0, 0]
      content.entries.forEach((entry, index) => {
        const frame = map.at(index)
        assert.equal([frame.index, frame.offset, frame.storedAt], [index, offset, storedAt])
        assert.is(frame.sha256, entry.sha256.toString('hex'))
        assert.is(frame.isZero, entry.isZero)
        offset += frame.bytes
        storedAt += frame.storedBytes
      })
      assert.is(offset, content.imageBytes)
    }),
    { numRuns: 60 },
  )
})

test('32 zero bytes: the digest of the image is not known, and nothing else changes', () => {
  const parsed = parseFrameIndex(encodeFrameIndex({ ...SMALL, imageSha256: null }), 451)
  assert.ok(parsed.ok)
  assert.is(parsed.value.sha256, null)
  const { indexSha256: index_sha256 } = parsed.value
  assert.equal(describeFrames(parsed.value), { count: 2, zero_count: 1, index_sha256 })
  assert.is(parsed.value.at(1).sha256, digest('frame').toString('hex'))
})

test('damage is refused, or leaves frames that lie within the file and the image', () => {
  const whole = encodeFrameIndex(SMALL)
  fc.assert(
    fc.property(damaged(whole), fc.constantFrom(451, 450, 0, 2 ** 40), (bytes, storedAt) => {
      const parsed = parseFrameIndex(bytes, storedAt)
      if (!parsed.ok) return assert.ok(renderIndexRefusal(parsed.refusal).length > 0)
      const frames = Array.from({ length: parsed.value.count }, (_, index) =>
        parsed.value.at(index),
      )
      const last = frames.at(-1)
      assert.is((last?.storedAt ?? 0) + (last?.storedBytes ?? 0), storedAt)
      assert.is((last?.offset ?? 0) + (last?.bytes ?? 0), parsed.value.bytes)
    }),
    { numRuns: 2000 },
  )
})

const changed = (change: (body: Buffer) => void) => {
  const index = encodeFrameIndex(SMALL)
  change(index.subarray(8))
  const parsed = parseFrameIndex(index, 451)
  return parsed.ok ? 'taken' : parsed.refusal.why
}

test('hostile fields: sizes of 2^63, frames that overlap, digests and flags that contradict', () => {
  assert.is(
    changed(() => undefined),
    'taken',
  )
  assert.is(
    changed((body) => body.writeBigUInt64LE(2n ** 63n, 16)),
    'too-large',
  )
  assert.is(
    changed((body) => body.writeBigUInt64LE(0n, 16)),
    'bad-header',
  )
  assert.is(
    changed((body) => body.writeUInt32LE(0xffffffff, 24)),
    'bad-header',
  )
  assert.is(
    changed((body) => body.writeUInt32LE(1 << 20, 12)),
    'bad-header',
  )
  assert.is(
    changed((body) => body.writeUInt16LE(2, 8)),
    'other-version',
  )
  assert.is(
    changed((body) => body.writeUInt16LE(1, 10)),
    'bad-header',
  )
  for (const stored of [0, 0xffffffff]) {
    assert.is(
      changed((body) => body.writeUInt32LE(stored, 64)),
      'bad-frame',
    )
  }
  // Each would begin inside the one before, or behind the end of the frames.
  for (const stored of [150, 152]) {
    assert.is(
      changed((body) => body.writeUInt32LE(stored, 64)),
      'not-covering',
    )
  }
  assert.is(
    changed((body) => body.writeUInt32LE(0, 68)),
    'bad-frame',
  )
  assert.is(
    changed((body) => body.writeUInt32LE(1, 108)),
    'bad-frame',
  )
  assert.is(
    changed((body) => body.writeUInt32LE(2, 108)),
    'bad-frame',
  )
})

const sum = (part: Buffer) => createHash('sha256').update(part).digest()

test('the test vector of docs/image-format.md is read by zstd, and its index is the one we encode', () => {
  const page = readFileSync('docs/image-format.md', 'utf8')
  const [, hex = ''] = /```text\n([0-9a-f\n]+)```/.exec(page) ?? []
  const file = Buffer.from(hex.replaceAll('\n', ''), 'hex')
  const image = execFileSync('zstd', ['-qdc'], { input: file, maxBuffer: 2 ** 24 })
  const bytes = Buffer.from(Array.from({ length: 512 }, (_, at) => at % 256))
  assert.ok(image.equals(Buffer.concat([Buffer.alloc(FRAME_BYTES), bytes])))

  const start = file.indexOf('flashidx') - 8
  const end = start + 8 + file.readUInt32LE(start + 4)
  const index = parseFrameIndex(file.subarray(start, end), start)
  assert.ok(index.ok)
  const encoded = encodeFrameIndex({
    imageBytes: image.length,
    imageSha256: sum(image),
    entries: [0, 1].map((at) => ({
      storedBytes: index.value.at(at).storedBytes,
      isZero: index.value.at(at).isZero,
      sha256: sum(image.subarray(at * FRAME_BYTES, (at + 1) * FRAME_BYTES)),
    })),
  })
  assert.ok(encoded.equals(file.subarray(start, end)))
  const digests = [...page.matchAll(/`([0-9a-f]{64})`/g)].map(([, one]) => one)
  assert.equal(digests, [
    sum(image).toString('hex'),
    index.value.indexSha256,
    sum(file).toString('hex'),
  ])
})

const INDEX = 'a'.repeat(64)

test('it counts where nobody knows better, or where the promise has a digest itself', () => {
  const cases = [
    [{ isDigestKnown: false, indexSha256: INDEX }, INDEX],
    [{ isDigestKnown: false, indexSha256: INDEX, isPinned: true }, INDEX],
    // A registry that lies could name the file that was asked for, and the index of another one.
    [{ isDigestKnown: true, indexSha256: INDEX }, null],
    [{ isDigestKnown: true, indexSha256: INDEX, isPinned: true }, INDEX],
    [{ isDigestKnown: false }, null],
  ] as const
  for (const [promises, counts] of cases) assert.is(decidePromisedIndex(promises), counts)
})

test.run()
