import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  describeHead,
  describeProbe,
  judgeAnswer,
  mergeRepresentations,
  parseContentRange,
  parseLength,
  type Headers,
} from '#kit/net/rules/http-range.ts'

const test = suite('http-range')

const validator = (headers: Headers) => describeHead(headers).validator
const range = (text: string) => ({ 'content-range': text })

test('reads Content-Range, and nothing that only looks like one', () => {
  assert.equal(parseContentRange('bytes 5-9/100'), { from: 5, to: 10, total: 100 })
  assert.equal(parseContentRange('bytes 0-0/*'), { from: 0, to: 1, total: null })
  for (const text of [
    '',
    'bytes 9-5/100',
    'bytes 0-100/100',
    'bytes */100',
    'items 0-1/2',
    'bytes 0-9/100, bytes 0-9/100',
    'bytes 0-9999999999999999/*',
    'bytes -1-5/10',
  ]) {
    assert.is(parseContentRange(text), null, text)
  }
})

test('reads a length only where it is a number', () => {
  assert.is(parseLength({ 'content-length': '12' }), 12)
  for (const text of ['', '-1', '1e3', '9999999999999999', '12, 12']) {
    assert.is(parseLength({ 'content-length': text }), null, text)
  }
})

test('takes a strong ETag as validator, else the date', () => {
  const date = 'Wed, 21 Oct 2015 07:28:00 GMT'
  assert.is(validator({ etag: '"a"', 'last-modified': date }), '"a"')
  assert.is(validator({ etag: 'W/"a"', 'last-modified': date }), date)
  assert.is(validator({ etag: 'W/"a"' }), null)
  // The date joins two parts; a weak ETag that has changed beside it says that it must not.
  const known = describeHead({ etag: 'W/"a"', 'last-modified': date, 'content-length': '9' })
  const asked = { from: 4, to: 9, ranged: true }
  for (const [etag, kind] of [
    ['W/"a"', 'take'],
    ['W/"b"', 'never'],
  ] as const) {
    const headers = { etag, 'last-modified': date, 'content-range': 'bytes 4-8/9' }
    assert.is(judgeAnswer(asked, known, { status: 206, headers }).kind, kind, etag)
  }
  assert.is(validator({ etag: '"a\r\nx"' }), null)
})

test('learns size and ranges from a probe', () => {
  assert.equal(describeProbe(206, range('bytes 0-0/7')), {
    sizeBytes: 7,
    validator: null,
    ranges: true,
  })
  assert.is(describeProbe(206, range('bytes 0-0/*'))?.ranges, false)
  assert.is(describeProbe(206, {})?.ranges, false)
  assert.is(describeProbe(416, range('bytes */0'))?.sizeBytes, 0)
  assert.is(describeProbe(416, range('bytes */5')), null)
  assert.is(describeProbe(200, { 'content-length': '5' })?.ranges, false)
  assert.is(describeProbe(404, {}), null)
})

test('believes no HEAD that speaks of an empty body', () => {
  assert.is(describeHead({ 'content-length': '0' }).sizeBytes, null)
  assert.is(describeHead({ 'content-length': '5' }).sizeBytes, 5)
})

test('merges HEAD and probe, either of which may be missing', () => {
  const head = { sizeBytes: 5, validator: '"a"', ranges: false }
  const probe = { sizeBytes: null, validator: '"b"', ranges: false }
  assert.is(mergeRepresentations(null, null), null)
  assert.equal(mergeRepresentations(head, null), head)
  assert.equal(mergeRepresentations(null, probe), probe)
  assert.equal(mergeRepresentations(head, probe), { sizeBytes: 5, validator: '"b"', ranges: false })
})

const KNOWN = { sizeBytes: 100, validator: '"a"', ranges: true }
const PART = { from: 10, to: 100, ranged: true }
const WHOLE = { from: 0, to: 100, ranged: false }
const ok = { etag: '"a"' }
const other = (text: string) => ({ ...ok, ...range(text) })

const part = (text: string, more: Headers = {}) => ({
  status: 206,
  headers: { ...other(text), ...more },
})

test('takes what fits the question', () => {
  const whole = { status: 200, headers: { ...ok, 'content-length': '100' } }
  assert.equal(judgeAnswer(WHOLE, KNOWN, whole), { kind: 'take', to: 100 })
  assert.equal(judgeAnswer(PART, KNOWN, part('bytes 10-99/100')), { kind: 'take', to: 100 })
  assert.equal(judgeAnswer(PART, KNOWN, part('bytes 10-49/100')), { kind: 'take', to: 50 })
  assert.equal(judgeAnswer(PART, KNOWN, part('bytes 10-49/*')), { kind: 'take', to: 50 })
  const silent = { status: 206, headers: { 'content-range': 'bytes 10-99/100' } }
  assert.equal(judgeAnswer(PART, KNOWN, silent).kind, 'take')
})

test('refuses everything else, and says what it was', () => {
  const reason = (asked: typeof PART, status: number, headers: Headers) => {
    const verdict = judgeAnswer(asked, KNOWN, { status, headers })
    return verdict.kind === 'never' ? verdict.reason : verdict.kind
  }
  const OTHER = 'the server sent other bytes than were asked for'
  const CHANGED = 'the file on the server changed'
  assert.is(reason(PART, 206, other('bytes 11-99/100')), OTHER)
  assert.is(reason(PART, 206, other('bytes 10-100/101')), CHANGED)
  assert.is(reason({ ...PART, to: 50 }, 206, other('bytes 10-99/100')), OTHER)
  assert.is(reason(PART, 206, { ...other('bytes 10-99/100'), 'content-length': '80' }), OTHER)
  assert.is(reason(PART, 206, ok), OTHER)
  assert.is(reason(WHOLE, 206, other('bytes 0-99/100')), OTHER)
  assert.is(reason(PART, 206, { ...other('bytes 10-99/100'), etag: '"b"' }), CHANGED)
  assert.is(reason(WHOLE, 200, { etag: '"b"' }), CHANGED)
  assert.is(reason(WHOLE, 200, { ...ok, 'content-length': '99' }), CHANGED)
  assert.match(reason(PART, 200, { ...ok, 'content-length': '100' }), /whole file/)
  assert.is(reason(PART, 416, {}), CHANGED)
  assert.is(reason(PART, 403, {}), 'the server answered HTTP 403')
  for (const status of [408, 429, 500, 502, 503, 504]) {
    assert.is(reason(PART, status, {}), 'later')
  }
})

test('a body that only ends with its connection is not trusted', () => {
  const unknown = { sizeBytes: null, validator: null, ranges: false }
  const asked = { from: 0, to: null, ranged: false }
  const judge = (headers: Headers) => judgeAnswer(asked, unknown, { status: 200, headers })
  assert.is(judge({}).kind, 'never')
  assert.equal(judge({ 'transfer-encoding': 'chunked' }), { kind: 'take', to: null })
  assert.equal(judge({ 'content-length': '7' }), { kind: 'take', to: 7 })
})

test('a part that is sent as 200, and a coding nobody asked for, are named for what they are', () => {
  const headers = { 'content-range': 'bytes 0-0/500', 'content-length': '1' }
  const known = { sizeBytes: 500, validator: null, ranges: false }
  assert.equal(describeProbe(200, headers), known)
  const whole = { from: 0, to: 500, ranged: false }
  const labelled = judgeAnswer(whole, known, { status: 200, headers })
  assert.match(labelled.kind === 'never' ? labelled.reason : '', /200 with a Content-Range/)
  const coded = { 'content-length': '500', 'content-encoding': 'gzip' }
  const encoded = judgeAnswer(whole, known, { status: 200, headers: coded })
  assert.match(encoded.kind === 'never' ? encoded.reason : '', /the server sent it encoded/)
})

test.run()
