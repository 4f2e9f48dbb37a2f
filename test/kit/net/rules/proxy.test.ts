import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decideProxies } from '#kit/net/rules/direct-host.ts'

const test = suite('proxy')

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
