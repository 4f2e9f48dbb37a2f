import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  blobName,
  blobUrl,
  freeName,
  parseBlobToken,
  parseCacheEntry,
  publicFields,
  renderCacheBase,
  replaceLoopback,
  secretSourceOf,
  fileSource,
  parseFileSource,
  parseFileUrl,
} from '#engine/catalog/rules/cache-entry.ts'
import { refOf } from '#engine/catalog/rules/catalog.ts'

const test = suite('cache entries')
const parse = (body: unknown, taken: readonly string[] = []) =>
  parseCacheEntry(body, (name) => taken.includes(name))

test('are named by their source where nobody names them', () => {
  const rows = [
    ['https://h/a/Debian%2013.img.gz?x=1#y', 'Debian 13.img.gz'],
    ['https://h/', 'download'],
    ['https://h/a%2Fb%0a.img', 'ab.img'],
    ['https://h/100%.img', '100%.img'],
    ['oras://h/owner/debian:latest', 'debian-latest'],
  ] as const
  for (const [src, name] of rows) {
    const entry = parse({ src })
    assert.is(entry.ok && entry.value.name, name)
  }
  const second = parse({ src: 'https://h/x.img' }, ['x.img', 'x.img-2'])
  assert.is(second.ok && second.value.name, 'x.img-3')
  assert.is(
    freeName('a', () => false),
    'a',
  )
})

test('keep a password apart, for the source alone', () => {
  const entry = parse({ name: 'x', src: 'https://me:p%40ss@h:8443/x.img?y' })
  assert.ok(entry.ok)
  if (!entry.ok) return
  assert.is(secretSourceOf(entry.value), 'https://me:p%40ss@h:8443/x.img?y')
  const shown = JSON.stringify(publicFields(entry.value))
  assert.not.ok(shown.includes('p%40ss') || shown.includes('me:'), shown)
  assert.is(publicFields(entry.value).src, 'https://h:8443/x.img?y')
})

test('name each field that is wrong', () => {
  const rows: readonly (readonly [unknown, string])[] = [
    [null, ''],
    ['x', ''],
    [{}, 'src'],
    [{ src: 'garbage' }, 'src'],
    [{ src: 'ftp://h/x' }, 'src'],
    [{ src: 'http://' }, 'src'],
    [{ src: 'oras://h/x' }, 'src'],
    [{ src: 'file:///etc/passwd' }, 'src'],
    [{ src: 'https://h/x', resolved_src: 'file:///etc/passwd' }, 'resolved_src'],
    [{ src: 'https://h/x', sha256: 'abc' }, 'sha256'],
    [{ src: 'https://h/x', size_bytes: 'abc' }, 'size_bytes'],
    [{ src: 'https://h/x', size_bytes: true }, 'size_bytes'],
    [{ src: 'https://h/x', name: 'n'.repeat(600) }, 'name'],
    [{ src: 'https://h/x', what: 1 }, ''],
  ]
  for (const [body, field] of rows) {
    const entry = parse(body)
    assert.ok(!entry.ok, JSON.stringify(body))
    if (!entry.ok) assert.is(String(entry.refusal[0]?.loc[1] ?? ''), field, JSON.stringify(body))
  }
})

test('empty texts and nulls are as good as nothing', () => {
  const entry = parse({ name: ' ', src: ' https://h/x.img ', sha256: '', format: null, arch: '' })
  assert.ok(entry.ok)
  if (!entry.ok) return
  assert.equal([entry.value.name, entry.value.sha256, entry.value.format], ['x.img', null, null])
})

test('a dropped file has one identity that names it, whatever its name', () => {
  for (const name of ['a.img', 'ä b.img', '100%.img', '%25.img', 'a?b#c\\d.img']) {
    const source = fileSource(name)
    assert.is(parseFileSource(source), name)
    assert.ok(refOf(source).ok, source)
  }
  assert.is(parseFileSource('file:///a/b.img'), null)
  assert.is(parseFileSource('https://h/a.img'), null)
  assert.is(parseFileUrl('http://h:1/files/a%20b.img', 'H:1'), 'a b.img')
  assert.is(parseFileUrl('http://127.0.0.1:8081/files/a.img', 'h:1'), 'a.img')
  assert.is(parseFileUrl('http://other/files/a.img', 'h:1'), null)
  assert.is(parseFileUrl('http://h:1/files/a/b.img', 'h:1'), null)
})

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
