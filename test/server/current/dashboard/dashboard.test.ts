/** The dashboard, as the real program renders it. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { bodyOf } from '#test/support/server/runs.ts'
import { asJson } from '#test/support/server/server.ts'

const test = suite('the dashboard')
const MAC = '52:54:00:00:00:07'
const PASSWORD = 'secret words'

test('a failed machine stands in one card, and in the latest events by its name', async () => {
  await using home = await createServerHome()
  await using server = await home.start([], { FLASHER_ADMIN_PASSWORD: PASSWORD })
  const { cookie } = await login(server.url, PASSWORD)
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${server.url}${path}`, {
      ...init,
      headers: { 'content-type': 'application/json', cookie },
    })
  const fields = { name: 'bench-7', boot_mode: 'flasher-tui' }
  assert.is((await ask(`/machines/${MAC}`, asJson(fields, 'PUT'))).status, 200)
  for (const report of [bodyOf(), bodyOf({ phase: 'failed', reason: 'write error at byte 7' })]) {
    const posted = await ask(`/pxe/${MAC}/progress`, asJson(report))
    assert.ok(posted.ok, await posted.text())
  }
  const page = await (await ask('/ui/dashboard')).text()
  const cards = page.split(/<section[^>]* class="card/).slice(1)
  const titles = cards.flatMap((card) =>
    card.includes('bench-7') ? [/<h2[^>]*>([^<]*)/.exec(card)?.[1]?.trim()] : [],
  )
  assert.equal(titles, ['Needs attention', 'Latest events'], page)
  assert.match(page, 'write error at byte 7')
  assert.match(page, 'Flashes of the last 14 days')
  assert.match(page, 'aria-label="0 of 1 succeeded"')
  // Machines with the same trouble share a line.
  const macs = ['52:54:00:00:00:18', '52:54:00:00:00:19']
  for (const mac of macs) {
    assert.ok((await ask(`/pxe/${mac}`)).ok)
    const report = { disks: [], lshw: { id: 'x', class: 'system', children: [] } }
    assert.ok((await ask(`/pxe/${mac}/inventory`, asJson(report))).ok)
  }
  const both = await (await ask('/ui/dashboard')).text()
  const waiting = both
    .split(/<section[^>]* class="card/)
    .find((card) => card.includes('Show all 2'))
  assert.is(waiting?.split('Discovered, nothing selected yet.').length, 2, both)
  for (const mac of macs) assert.match(waiting ?? '', mac)
})

test('a row of the setup and the whole card can be dismissed, and come back', async () => {
  await using home = await createServerHome()
  await using server = await home.start([], { FLASHER_ADMIN_PASSWORD: PASSWORD })
  const { cookie } = await login(server.url, PASSWORD)
  const show = async (more: string) =>
    await (
      await fetch(`${server.url}/ui/dashboard`, { headers: { cookie: `${cookie}; ${more}` } })
    ).text()
  const dismiss = async (key: string, more: string) => {
    const body = new URLSearchParams(key === '' ? {} : { dismiss: key })
    const headers = { cookie: `${cookie}; ${more}` }
    const init = { method: 'POST', redirect: 'manual', headers, body } as const
    const answer = await fetch(`${server.url}/ui/dashboard/setup`, init)
    assert.is(answer.headers.get('location'), '/ui/dashboard')
    return /^[^;]*/.exec(answer.headers.get('set-cookie') ?? '')?.[0] ?? ''
  }
  const page = await show('')
  // The list of machines names the address that machines can reach, not the one that was opened.
  const script = async (path: string) => {
    const text = await (await fetch(`${server.url}${path}`, { headers: { cookie } })).text()
    return /http:[^\s<"]*\/pxe-bootstrap\.ipxe/.exec(text)?.[0]
  }
  assert.is(await script('/ui/machines'), await script('/ui/dhcp'))
  const total = Number(/Setup: \d of (\d) done/.exec(page)?.[1])
  const key = /value="(netboot-[a-z]+)"/.exec(page)?.[1] ?? ''
  const one = await dismiss(key, '')
  const without = await show(one)
  assert.match(without, `of ${total - 1} done`)
  assert.not.match(without, 'Install a live system')
  const all = await dismiss('card', one)
  assert.not.match(await show(all), /Setup: \d/)
  assert.match(await show(all), 'Show the dismissed setup again')
  assert.match(await show(await dismiss('', all)), `of ${total} done`)
  // What is no key is not remembered.
  assert.is(await dismiss('"><script>', ''), 'flasher-setup=')
})

function placeOf(text: string, page: string): number {
  const at = page.indexOf(text)
  assert.is.not(at, -1, text)
  return at
}

test('what failed stands before what runs, and tiles say how they moved', async () => {
  await using home = await createServerHome()
  await using server = await home.start([], { FLASHER_ADMIN_PASSWORD: PASSWORD })
  const { cookie } = await login(server.url, PASSWORD)
  const post = async (mac: string, report: object) => {
    const url = `${server.url}/pxe/${mac}/progress`
    assert.ok((await fetch(url, asJson(report))).ok)
  }
  for (const mac of [MAC, '52:54:00:00:00:08']) {
    await fetch(`${server.url}/pxe/${mac}`)
    await post(mac, bodyOf({ run: `c0ffee00-${mac.slice(-2)}` }))
  }
  await post(MAC, bodyOf({ run: 'c0ffee00-07', phase: 'failed', reason: 'write error' }))
  const read = async () =>
    await (await fetch(`${server.url}/ui/dashboard`, { headers: { cookie } })).text()
  const page = await read()
  assert.ok(page.indexOf('Needs attention</h2>') < page.indexOf('Running now</h2>'))
  assert.match(page, '2 more in 24 hours')
  // The setup comes first until the first flash, then after what needs somebody.
  assert.ok(placeOf('Setup: ', page) < placeOf('Needs attention</h2>', page))
  await post('52:54:00:00:00:08', bodyOf({ run: 'c0ffee00-08', phase: 'done' }))
  assert.ok((await fetch(`${server.url}/pxe/52:54:00:00:00:08/done`, { method: 'POST' })).ok)
  const later = await read()
  assert.ok(placeOf('Setup: ', later) > placeOf('Needs attention</h2>', later))
})

test.run()
