import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseServerLink } from '#cache/rules/image-list.ts'
import { makeFolder, PASSWORD, serveCache } from '#test/support/server/image-cache.ts'
import { login } from '#test/support/server/flasher-web.ts'

const test = suite('cache: the way back to the server')

test('only an address on the host of the cache itself is linked to', () => {
  const own = 'lab.example:8081'
  const rows = [
    ['http://lab.example:8080', 'http://lab.example:8080'],
    ['https://LAB.example/', 'https://lab.example'],
    ['http://evil.example:8080', null],
    ['http://lab.example.evil.example', null],
    ['http://lab.example@evil.example', null],
    ['http://user@lab.example', null],
    ['http://lab.example/path', null],
    ['http://lab.example?x', null],
    ['javascript:alert(1)//lab.example', null],
    ['ftp://lab.example', null],
    ['//lab.example', null],
    ['', null],
    [`http://lab.example:8080${'/'.repeat(400)}`, null],
  ] as const
  for (const [text, expected] of rows) assert.is(parseServerLink(text, own), expected, text)
  assert.is(parseServerLink('http://[::1]:8080', '[::1]:8081'), 'http://[::1]:8080')
})

async function visit(base: string, path: string, more = '') {
  const { cookie } = await login(base, PASSWORD)
  const headers = { cookie: [cookie, more].filter(Boolean).join('; ') }
  return fetch(`${base}${path}`, { headers, redirect: 'manual' })
}

test('a link is remembered, a foreign one ignored, and the setting counts more', async () => {
  await using folder = await makeFolder()
  {
    await using served = await serveCache(folder.path)
    const server = 'http://127.0.0.1:8080'
    const led = await visit(served.base, `/ui/dashboard?server=${encodeURIComponent(server)}`)
    assert.equal([led.status, led.headers.get('location')], [303, '/ui/dashboard'])
    const kept = led.headers.getSetCookie().find((each) => each.startsWith('flasher-server='))
    assert.match(kept ?? '', /; HttpOnly; SameSite=Strict$/)
    const page = await (await visit(served.base, '/ui/dashboard', kept?.split(';')[0])).text()
    assert.match(page, `href="${server}/ui/cache/back?to=%2Fui%2Fmachines"`)

    const evil = encodeURIComponent('http://evil.example')
    const ignored = await visit(
      served.base,
      `/ui/dashboard?server=${evil}`,
      `flasher-server=${evil}`,
    )
    assert.is(ignored.status, 200)
    // What leads back to this page has its address.
    assert.not.match(await ignored.text(), /href="(?!\/)[^"]*evil/)
  }
  await using served = await serveCache(folder.path, { serverUrl: 'https://flasher.example/lab/' })
  const page = await (await visit(served.base, '/ui/dashboard')).text()
  assert.match(page, 'href="https://flasher.example/lab/ui/cache/back?to=%2Fui%2Fdashboard"')
})

test.run()
