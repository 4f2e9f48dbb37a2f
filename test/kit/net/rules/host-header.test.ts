/** What may be named in scripts: hosts and addresses, and nothing that looks like one. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseHost, parsePublicUrl } from '#kit/net/rules/host-header.ts'

const test = suite('host')

const GOOD = [
  'flasher',
  'flasher-server:8080',
  'a_b.example.com.',
  '10.0.2.2:8080',
  '[::1]',
  '[2001:db8::1]:80',
  '[::ffff:10.0.0.1]:1',
  'x1.2e',
]
for (const host of GOOD) {
  test(`takes ${host}`, () => {
    assert.equal(parseHost(host), { ok: true, value: host })
    assert.equal(parseHost(host.toUpperCase()), { ok: true, value: host })
  })
}

const BAD = [
  '',
  ' ',
  'a b',
  'a b:80',
  'a:b',
  'a:0',
  'a:65536',
  'a.0x7f',
  'a:80:80',
  ':80',
  'a:',
  '-a',
  'a-',
  '.a',
  'a..b',
  '1.2.3',
  '256.1.1.1',
  '010.0.0.1',
  '2130706433',
  '::1',
  '[::1',
  '[::1]x',
  '[fe80::1%eth0]',
  '[1.2.3.4]',
  '[:::]',
  'u@a',
  'a/b',
  'a?b',
  'a#b',
  'a;b',
  'a&&b',
  '${net0/mac}',
  'a\nreboot',
  'a\u0000',
  'ä.example',
  'a,b',
  "a'b",
  `${'a'.repeat(64)}.example`,
  `${'a.'.repeat(120)}a`,
]
for (const host of BAD) {
  test(`refuses ${JSON.stringify(host.slice(0, 20))}`, () => {
    assert.is(parseHost(host).ok, false)
  })
}

test('a public URL is scheme, host and perhaps a path', () => {
  const rows = [
    ['HTTP://Flash.Example:8080', 'http://flash.example:8080'],
    ['https://[::1]/a/b-c.d~e//', 'https://[::1]/a/b-c.d~e'],
    ['  http://a/ ', 'http://a'],
    ['flash.example', null],
    ['ftp://a', null],
    ['http://', null],
    ['http://a/b c', null],
    ['http://a/b?c', null],
    ['http://a/#', null],
    ['http://u:p@a', null],
    ['http://a/${x}', null],
    [`http://a/${'b'.repeat(200)}`, null],
  ] as const
  for (const [text, url] of rows) {
    const expected = url === null ? { ok: false, refusal: 'not-a-url' } : { ok: true, value: url }
    assert.equal(parsePublicUrl(text), expected, text)
  }
})

test('whatever is taken is short and of harmless characters', () => {
  const anyHeader = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.stringMatching(/^[a-z0-9.:[\]_-]{0,30}$/),
    fc.webAuthority({ withPort: true, withIPv4: true, withIPv6: true, withUserInfo: true }),
  )
  fc.assert(
    fc.property(anyHeader, (header) => {
      const host = parseHost(header)
      if (!host.ok) return
      assert.match(host.value, /^[a-z0-9._:[\]-]{1,140}$/)
      assert.ok(URL.canParse(`http://${host.value}/`) || host.value.includes('_'), host.value)
    }),
    { numRuns: 5000 },
  )
})

test.run()
