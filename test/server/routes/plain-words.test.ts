/** What machines send reaches a terminal through `jq -r`, and people through the pages: as words. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { PASSWORD, startSite } from '#test/support/browser/browser.ts'
import { login } from '#test/support/server/flasher-web.ts'
import { bodyOf } from '#test/support/server/runs.ts'
import { asJson, createTestServer, readJson, type TestServer } from '#test/support/server/server.ts'
import { disksOf, macOf } from '#test/support/server/web-machines.ts'

const MAC = '52:54:00:00:00:01'
const test = suite('plain words')
const report = (server: TestServer, fields: Parameters<typeof bodyOf>[0]) =>
  server.request(`/pxe/${MAC}/progress`, asJson(bodyOf(fields)))

test('the API: names, reasons and summaries are plain, what must match is as it was sent', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  const evil = 'a\u001b]0;owned\u0007\u009b2J\u202eb'
  const shown = 'a\ufffd]0;owned\ufffd\ufffd2J\ufffdb'
  const described = { model: evil, serial: evil, path: `/dev/${evil}` }
  const image = { name: evil, src: `https://a.example/${evil}` }
  await report(server, { phase: 'started', mode: 'flash', image, disk: described })
  await report(server, { phase: 'failed', reason: evil })
  await server.request(`/pxe/${MAC}/status`, asJson({ status: 'failed', reason: evil }))
  const told = { ...described, wwn: evil, by_path: evil, vendor: evil, size: null, tran: null }
  const posted = await server.request(
    `/pxe/${MAC}/inventory`,
    asJson({ disks: [told], lshw: { evil } }),
  )
  assert.is(posted.status, 204)

  const { events } = await readJson(ask('/events?limit=500'))
  const words = events.map((event: { summary: string }) => event.summary).join(' ')
  assert.match(words, `reported that its flash failed: ${shown}`)
  assert.match(words, `started to flash ${shown} to ${shown}`)
  assert.not.match(words, /[\p{Cc}\u202e]/u)
  const [run] = await readJson(ask('/runs.json'))
  assert.equal([run.reason, run.image.name, run.disk.model], [shown, shown, shown])
  assert.equal([run.image.src, run.disk.serial, run.disk.path], [image.src, evil, described.path])
  const [disk] = await readJson(ask(`/machines/${MAC}/disks.json`))
  assert.equal([disk.model, disk.vendor], [shown, shown])
  assert.equal(
    [disk.serial, disk.wwn, disk.by_path, disk.path],
    [evil, evil, evil, described.path],
    'what tells one disk from another stays as it is',
  )
  assert.equal(await readJson(ask(`/machines/${MAC}/lshw.json`)), { evil })
})

test('pages show what must match escaped, and send it back as it was', async () => {
  await using site = await startSite()
  const { cookie } = await login(site.url, PASSWORD)
  const ask = async (path: string, init: RequestInit = {}) => {
    const headers = { 'content-type': 'application/json', cookie }
    return await (await fetch(`${site.url}${path}`, { ...init, headers })).text()
  }
  const wild = 'S\u202e1\u009b'
  const [first, ...others] = disksOf(1)
  await site.boxes.boot(1)
  await site.boxes.tellDisks(1, [
    { ...first, model: null, serial: wild, path: '/dev/\u202e' },
    ...others,
  ])
  const [image] = JSON.parse(await ask('/images'))
  const body = JSON.stringify({
    boot_mode: 'flasher-flash-once',
    bty_image_ref: image.ref,
    target_disk_serial: wild,
  })
  await ask(`/machines/${macOf(1)}`, { method: 'PUT', body })
  const run = 'c0ffee00-0001'
  const disk = { path: '/dev/\u202e', model: null, serial: wild }
  await site.boxes.boot(1)
  for (const phase of ['started', 'failed']) {
    const page = await ask(`/ui/machines/${macOf(1)}`)
    assert.match(page, `value="${wild}"`, 'a form that is posted unchanged changes nothing')
    await site.boxes.report(1, { run, phase, reason: 'no', disk, image: { name: 'a', src: wild } })
  }
  const paths = ['', `/${macOf(1)}`, `/${macOf(1)}/runs/${run}`].map((end) => `/ui/machines${end}`)
  for (const path of [...paths, '/ui/runs', '/ui/events', '/ui/dashboard']) {
    const page = await ask(path)
    const shown = page.replaceAll(/(value|data-copy|data-keywords|aria-label)="[^"]*"/g, '')
    assert.not.match(shown, /[\u202e\u009b]/u, path)
    assert.match(shown, '\\u202e', path)
  }
})

test.run()
