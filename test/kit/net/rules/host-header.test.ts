/** What may be named in scripts: hosts and addresses, and nothing that looks like one. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  PLAIN_TARGET,
  isServerVersion,
  parseHost,
  parsePublicUrl,
  parseServerAddress,
  parseTarget,
} from '#kit/net/rules/host-header.ts'

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

const GOOD_ADDRESSES: readonly (readonly [string, readonly string[]])[] = [
  ['flasher-server', ['http://flasher-server', 'http://flasher-server:8080']],
  [' Lab.Example/ ', ['http://lab.example', 'http://lab.example:8080']],
  ['10.0.0.5', ['http://10.0.0.5', 'http://10.0.0.5:8080']],
  ['[fd00::1]', ['http://[fd00::1]', 'http://[fd00::1]:8080']],
  ['lab/flasher/', ['http://lab/flasher', 'http://lab:8080/flasher']],
  ['10.0.0.5:8080', ['http://10.0.0.5:8080']],
  ['[fd00::1]:81', ['http://[fd00::1]:81']],
  ['http://lab', ['http://lab']],
  ['HTTPS://lab:8443/flasher//', ['https://lab:8443/flasher']],
]
for (const [text, bases] of GOOD_ADDRESSES) {
  test(`takes ${JSON.stringify(text)}`, () => {
    assert.equal(parseServerAddress(text), { ok: true, value: bases })
  })
}

for (const text of ['', '/', 'http://', 'ftp://lab', 'lab name', 'lab:99999', 'user@lab', 'a?b']) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.is(parseServerAddress(text).ok, false)
  })
}

test('tells our server from whatever else answers', () => {
  assert.is(isServerVersion({ version: '1.2.3' }), true)
  for (const other of [null, 'ok', [], {}, { version: 1 }]) assert.is(isServerVersion(other), false)
})

const SERVED: readonly (readonly [target: string, path: string, host?: string])[] = [
  ['/', '/'],
  ['*', '*'],
  ['/pxe/52:54:00:12:34:56?buildarch=x86_64', '/pxe/52:54:00:12:34:56?buildarch=x86_64'],
  ['/boot/flasher-v1.2.3.initrd', '/boot/flasher-v1.2.3.initrd'],
  ['/boot//grubx64.efi', '/boot/grubx64.efi'],
  ['/boot///a//b?x=//', '/boot/a/b?x=//'],
  ['//boot//x', '/boot/x'],
  ['///pxe/52-54-00-12-34-56', '/pxe/52-54-00-12-34-56'],
  ['//pxe-bootstrap.ipxe', '/pxe-bootstrap.ipxe'],
  ['//bootx//y', '//bootx//y'],
  ['//evil//boot/x', '//evil//boot/x'],
  ['/a/...', '/a/...'],
  ['/a/.hidden', '/a/.hidden'],
  ['/a/b..', '/a/b..'],
  ['/%2e%2ex', '/%2e%2ex'],
  ['/..%2fx', '/..%2fx'],
  ['/?next=/../\\', '/?next=/../\\'],
  ['/x#/../', '/x#/../'],
  ['http://a', '/', 'a'],
  ['HTTP://A:80/x/y?z', '/x/y?z', 'a:80'],
  ['https://[::1]:1?z', '/?z', '[::1]:1'],
  ['http://[fe80::1%25eth0]:80/x', '/x', '[fe80::1]:80'],
]
for (const [target, path, host = null] of SERVED) {
  test(`serves ${target}`, () => {
    assert.equal(parseTarget(target), { ok: true, value: { path, host } })
    if (PLAIN_TARGET.test(target)) assert.is(path, target)
  })
}

const REFUSED = {
  'dot-segment': [
    ['/..', '/.', '/../', '/./', '/a/..', '/a/../b', '/a/./b', '/..?x', '/..#x'],
    ['/%2e', '/%2E%2e/', '/.%2e/x', '/a/%2e.', '//..'],
    ['http://a/..', 'http://a/%2e/x'],
  ].flat(),
  backslash: ['/\\', '/a\\b', '/..\\x', 'http://a/\\'],
  'not-a-target': [
    ['', 'a', 'a/b', '?x', 'ftp://a/', 'http:/a', 'http:\\\\a', 'http://', 'http:///x'],
    ['http://a:99999/', 'http://a@b/', 'http://a\\b/', 'http://[::1/', 'http://a b/'],
  ].flat(),
}
for (const [refusal, targets] of Object.entries(REFUSED)) {
  for (const target of targets) {
    test(`refuses ${target}: ${refusal}`, () => {
      assert.equal(parseTarget(target), { ok: false, refusal })
      assert.not(PLAIN_TARGET.test(target))
    })
  }
}

test('what machines ask for takes the short way', () => {
  for (const target of [
    '/pxe/52:54:00:12:34:56',
    '/pxe/52-54-00-12-34-56/plan',
    '/boot/a.b?mac=x',
  ]) {
    assert.ok(PLAIN_TARGET.test(target), target)
  }
})

test.run()
