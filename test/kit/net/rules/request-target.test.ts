/** Which request targets are served, and as what. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { isPlainTarget, parseTarget } from '#kit/net/rules/host-header.ts'

const test = suite('request target')

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
    if (isPlainTarget(target)) assert.is(path, target)
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
      assert.not(isPlainTarget(target))
    })
  }
}

test('what machines ask for takes the short way', () => {
  for (const target of [
    '/pxe/52:54:00:12:34:56',
    '/pxe/52-54-00-12-34-56/plan',
    '/boot/a.b?mac=x',
  ]) {
    assert.ok(isPlainTarget(target), target)
  }
})

test.run()
