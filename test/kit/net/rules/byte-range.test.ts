import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type Conditions, decideFileAnswer } from '#kit/net/rules/http-range.ts'

const NONE: Conditions = { range: null, ifRange: null, ifNoneMatch: null, ifModifiedSince: null }
const version = (sizeBytes: number) => ({
  sizeBytes,
  etag: '"tag"',
  lastModified: 'Sat, 21 Nov 2026 07:00:00 GMT',
})
const statusOf = (conditions: Partial<Conditions>) =>
  decideFileAnswer({ ...NONE, ...conditions }, version(10)).status
const partOf = (ifRange: string) => statusOf({ range: 'bytes=0-1', ifRange })
const test = suite('decideFileAnswer')

test('ranges as RFC 9110 has them', () => {
  const rows = [
    ['bytes=0-0', 206, 0, 0],
    ['bytes=0-9', 206, 0, 9],
    ['bytes=5-', 206, 5, 9],
    ['bytes=-3', 206, 7, 9],
    ['bytes=-99', 206, 0, 9],
    ['Bytes = 2 - 4', 206, 2, 4],
    ['bytes=9-20', 206, 9, 9],
  ] as const
  for (const [range, status, from, to] of rows) {
    assert.equal(decideFileAnswer({ ...NONE, range }, version(10)), { status, from, to }, range)
  }
  for (const range of ['bytes=10-', 'bytes=99-100', 'bytes=-0']) {
    assert.equal(decideFileAnswer({ ...NONE, range }, version(10)), { status: 416 }, range)
  }
  for (const range of [
    '',
    'bytes=',
    'bytes=-',
    'bytes=3-2',
    'bytes=a-b',
    'bytes=1-2,4-5',
    'x=1-2',
  ]) {
    assert.equal(decideFileAnswer({ ...NONE, range }, version(10)), { status: 200 }, range)
  }
  assert.equal(decideFileAnswer({ ...NONE, range: 'bytes=0-' }, version(0)), { status: 416 })
  assert.equal(decideFileAnswer({ ...NONE, range: 'bytes=-1' }, version(0)), { status: 416 })
})

test('a part is only sent of the same version', () => {
  assert.is(partOf('"tag"'), 206)
  assert.is(partOf('Sat, 21 Nov 2026 07:00:00 GMT'), 206)
  assert.is(partOf('W/"tag"'), 200)
  assert.is(partOf('"other"'), 200)
  assert.is(partOf('Sat, 21 Nov 2026 07:00:01 GMT'), 200)
})

test('what one has is not sent again', () => {
  assert.is(statusOf({ ifNoneMatch: '"tag"' }), 304)
  assert.is(statusOf({ ifNoneMatch: 'W/"tag"' }), 304)
  assert.is(statusOf({ ifNoneMatch: '"a", "tag"' }), 304)
  assert.is(statusOf({ ifNoneMatch: '*' }), 304)
  assert.is(statusOf({ ifNoneMatch: '"a"', ifModifiedSince: version(0).lastModified }), 200)
  assert.is(statusOf({ ifModifiedSince: version(0).lastModified }), 304)
})

test('no header makes a part that is not in the file', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.stringMatching(/^bytes=\d{0,17}-\d{0,17}$/)),
      fc.nat(1000),
      (range, size) => {
        const answer = decideFileAnswer({ ...NONE, range }, version(size))
        if (answer.status !== 206) return
        assert.ok(answer.from >= 0 && answer.from <= answer.to && answer.to < size)
      },
    ),
  )
})

test.run()
