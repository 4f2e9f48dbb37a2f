import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  blobName,
  blobUrl,
  parseBlobToken,
  renderCacheBase,
  replaceLoopback,
} from '#engine/catalog/rules/cache-entry.ts'

const test = suite('blob addresses')

test('are those of the deployed service', () => {
  assert.is(
    blobUrl('http://cache:8081', 'https://example.com/img/debian.img.zst'),
    'http://cache:8081/b/aHR0cHM6Ly9leGFtcGxlLmNvbS9pbWcvZGViaWFuLmltZy56c3Q/debian.img.zst',
  )
  assert.match(
    blobUrl('cache:8081/', 'oras://ghcr.io/safl/nosi/debian-13-headless:latest'),
    /^http:\/\/cache:8081\/b\/b3JhczovL2doY3IuaW8vc2FmbC9ub3NpL2RlYmlhbi0xMy1oZWFkbGVzczpsYXRlc3Q\/debian-13-headless%3Alatest$/,
  )
})

test('name the last part of the path, whatever else the source holds', () => {
  const rows = [
    ['https://h/a/b.img?x=/y#/z', 'b.img'],
    ['https://h', 'download'],
    ['https://h/', 'download'],
    ['https://u:p@h/a/', 'download'],
    ['file:///x y.img', 'x y.img'],
  ] as const
  for (const [source, name] of rows) assert.is(blobName(source), name)
})

test('any source survives the way there and back', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 200 }), (source) => {
      const url = new URL(blobUrl('http://cache', source))
      const token = parseBlobToken(url.pathname.split('/')[2] ?? '')
      assert.equal(token, { ok: true, value: source })
    }),
  )
})

test('a token has one spelling, padding aside', () => {
  for (const token of ['YWI', 'YWI=']) {
    assert.equal(parseBlobToken(token), { ok: true, value: 'ab' })
  }
  for (const token of ['', '=', 'YWJ', 'YW I', 'YW+/', 'YWI/', '_____w', 'A'.repeat(20_000)]) {
    assert.not.ok(parseBlobToken(token).ok, token.slice(0, 20))
  }
})

test('a base is tidied, and given a scheme', () => {
  assert.is(renderCacheBase(' http://h:1/x// '), 'http://h:1/x')
  assert.is(renderCacheBase('h:1'), 'http://h:1')
  assert.is(renderCacheBase(''), '')
})

test('a loopback address becomes one that machines can reach', () => {
  const rows = [
    ['http://127.0.0.1:8081/b/x', '10.0.0.5', 'http://10.0.0.5:8081/b/x'],
    ['http://localhost:8081/', 'server', 'http://server:8081/'],
    ['http://[::1]:8081/', '[fd00::5]', 'http://[fd00::5]:8081/'],
    ['http://cache:8081/b/x', '10.0.0.5', 'http://cache:8081/b/x'],
    ['oras://h/a/b:c', '10.0.0.5', 'oras://h/a/b:c'],
  ] as const
  for (const [address, host, wanted] of rows) assert.is(replaceLoopback(address, host), wanted)
})

test.run()
