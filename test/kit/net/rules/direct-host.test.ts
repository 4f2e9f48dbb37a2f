import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decideProxies, isDirectHost } from '#kit/net/rules/direct-host.ts'

const test = suite('no_proxy')

const ROWS = [
  ['http://cache.lab.example/', 'lab.example', true],
  ['http://cache.lab.example/', '.lab.example', true],
  ['http://cache.lab.example/', '*.lab.example', true],
  ['http://cache.lab.example/', 'LAB.Example.', true],
  ['http://cache.lab.example./', 'lab.example', true],
  ['http://lab.example/', 'lab.example', true],
  ['http://lab.example/', '.lab.example', true],
  ['http://mylab.example/', 'lab.example', false],
  ['http://lab.example.org/', 'lab.example', false],
  ['http://cache/', 'localhost, cache', true],
  ['http://cache/', 'localhost cache', true],
  ['http://cache/', '', false],
  ['http://cache/', '.', false],
  ['http://cache/', '*', true],
  ['http://cache:8081/', 'cache:8081', true],
  ['http://cache:8080/', 'cache:8081', false],
  ['https://cache/', 'cache:443', true],
  ['http://10.1.2.3/', '10.0.0.0/8', true],
  ['http://11.1.2.3/', '10.0.0.0/8', false],
  ['http://10.1.2.3/', '10.1.2.3/32', true],
  ['http://10.1.2.4/', '10.1.2.3/32', false],
  ['http://10.1.2.4/', '0.0.0.0/0', true],
  ['http://10.1.2.4/', '10.1.2.0/99', false],
  ['http://10.1.2.4/', '10.1.2.999/24', false],
  ['http://10.1.2.4/', '10.1.2.0/', false],
  ['http://10.1.2.4/', '1.2.4', false],
  ['http://10.1.2.4/', '10.1.2.1-10.1.2.9', true],
  ['http://10.1.2.14/', '10.1.2.1-10.1.2.9', false],
  ['http://10.1.2.4:8080/', '10.1.2.4:8080', true],
  ['http://10.1.2.4:8080/', '10.1.2.4', true],
  ['http://[fd00::5]:8080/', 'fd00::/8', true],
  ['http://[fd00::5]:8080/', '[fd00::]/8', true],
  ['http://[fd00::5]:8080/', '[fd00::/8]', true],
  ['http://[fe00::5]:8080/', 'fd00::/8', false],
  ['http://[fd00::5]:8080/', '[fd00::5]', true],
  ['http://[fd00::5]:8080/', '[fd00::5]:8080', true],
  ['http://[fd00::5]:8080/', '[fd00::5]:80', false],
  ['http://[fd00::5]:8080/', 'fd00:0:0::5', true],
  ['http://[::1]/', '::1', true],
  ['http://[::1]/', '::2', false],
  ['http://[::ffff:10.1.2.3]/', '10.0.0.0/8', true],
  ['http://[fd00::5]/', '0.0.0.0/0', false],
  ['http://cache.lab.example/', '10.0.0.0/8', false],
  ['not a url', '*', false],
] as const
for (const [url, list, direct] of ROWS) {
  test(`${url} with ${JSON.stringify(list)}: ${direct ? 'directly' : 'by the proxy'}`, () => {
    assert.is(isDirectHost(url, list), direct)
  })
}

test('takes proxies from either case and adds the scheme that people leave out', () => {
  const env = { HTTP_PROXY: 'ignored.test:1', http_proxy: 'proxy.test:3128', NO_PROXY: 'a,b' }
  assert.equal(decideProxies(env), {
    ok: true,
    value: { http_proxy: 'http://proxy.test:3128', no_proxy: 'a,b' },
  })
  assert.equal(decideProxies({}), { ok: true, value: {} })
  assert.equal(decideProxies({ http_proxy: '' }), { ok: true, value: {} })
  assert.equal(decideProxies({ HTTPS_PROXY: 'socks5://u:p@h' }), {
    ok: false,
    refusal: 'https_proxy',
  })
})

test.run()
