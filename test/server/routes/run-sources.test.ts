/** What a machine says of the sources of its image: on its run, on the run's page, and never more than fits. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { PASSWORD, startSite } from '#test/support/browser/browser.ts'
import { login } from '#test/support/server/flasher-web.ts'
import { bodyOf } from '#test/support/server/runs.ts'
import { asJson, createTestServer, readJson } from '#test/support/server/server.ts'
import { macOf } from '#test/support/server/web-machines.ts'

const MAC = '52:54:00:00:00:01'
const test = suite('sources of a run')
const LEFT = { name: 'http://10.1.0.5:8081', bytes: 3_000_000, trouble: 'the server is slow' }
const LAST = { name: 'http://10.0.0.2:8081', bytes: 1_500_000 }

test('a run keeps the last word on its sources, also where only its end brings it', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  const report = (fields: object) =>
    server.request(`/pxe/${MAC}/progress`, asJson({ ...bodyOf({ phase: 'write' }), ...fields }))
  const sourcesNow = async () => (await readJson(ask('/runs.json')))[0].sources
  await report({ phase: 'started' })
  assert.is(await sourcesNow(), null)
  await report({ sources: [{ ...LEFT, trouble: null, bytes: 5 }] })
  await report({ sources: [LEFT, LAST] })
  const whole = [LEFT, { ...LAST, trouble: null }]
  assert.equal(await sourcesNow(), whole)
  // What cannot be one costs only itself: the post counts.
  for (const sources of ['x', [{ name: 1 }], Array.from({ length: 50 }, () => LAST)]) {
    assert.is((await report({ sources })).status, 204)
  }
  assert.equal(await sourcesNow(), whole)
  const evil = { name: 'a\u001b]0;owned\u0007', bytes: 1, trouble: 'x'.repeat(5000) }
  await report({ sources: [evil] })
  const [shown] = await sourcesNow()
  assert.equal([shown.name, shown.trouble.length], ['a\ufffd]0;owned\ufffd', 200])
  await report({ phase: 'done', sources: [LEFT, LAST] })
  assert.equal(await sourcesNow(), whole)
})

test('the page says how much came from where, and why a cache was left', async () => {
  await using site = await startSite()
  const { cookie } = await login(site.url, PASSWORD)
  const run = 'c0ffee00-0001'
  await site.boxes.boot(1)
  await site.boxes.report(1, { run, phase: 'write', sources: [LEFT, LAST] })
  const url = `${site.url}/ui/machines/${macOf(1)}/runs/${run}`
  const page = await (await fetch(url, { headers: { cookie } })).text()
  const text = page.replaceAll(/<[^>]*>/g, '').replaceAll(/\s+/g, ' ')
  assert.match(text, `Read from ${LEFT.name}: 3.00 MB, then left (the server is slow)`)
  assert.match(text, `${LAST.name}: 1.50 MB`)
})

test.run()
