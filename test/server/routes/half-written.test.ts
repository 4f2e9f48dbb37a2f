/** A machine that waits because its disk may be half written, and the operator who knows better. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { PASSWORD, startSite } from '#test/support/browser/browser.ts'
import { login } from '#test/support/server/flasher-web.ts'
import { macOf, serialOf } from '#test/support/server/web-machines.ts'

const test = suite('boot its disk anyway')
const MAC = macOf(1)
const PAGE = `/ui/machines/${MAC}`

/** The real program without a live system, and one who is logged in. */
async function open() {
  const site = await startSite({ FLASHER_PATHS_BOOT_DIR: '/nonexistent/boot' })
  const { cookie } = await login(site.url, PASSWORD)
  const ask = (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    headers.set('cookie', cookie)
    return fetch(`${site.url}${path}`, { redirect: 'manual', ...init, headers })
  }
  const json = async (path: string, method: string, body: unknown) => {
    const headers = { 'content-type': 'application/json' }
    return await (await ask(path, { method, headers, body: JSON.stringify(body) })).json()
  }
  const [image] = await (await ask('/images')).json()
  await site.boxes.boot(1)
  await json(`/machines/${MAC}`, 'PUT', {
    boot_mode: 'flasher-flash-once',
    bty_image_ref: image.ref,
    target_disk_serial: serialOf(1),
  })
  return {
    ...site,
    ask,
    json,
    text: async (path: string) => await (await ask(path)).text(),
    post: (path: string, fields: Readonly<Record<string, string>>) =>
      ask(path, { method: 'POST', body: new URLSearchParams(fields) }),
  }
}

const BUTTON = `action="${PAGE}/do/boot-disk"`

test('its page says why it waits and asks; the answer is recorded with who gave it', async () => {
  await using site = await open()
  assert.match(await site.boxes.boot(1), 'boots its own disk')
  assert.not.match(await site.text(PAGE), BUTTON)

  await fetch(`${site.url}/pxe/${MAC}/plan`)
  assert.match(await site.boxes.boot(1), 'waits: the disk may be half written')
  const waiting = await site.text(PAGE)
  assert.match(waiting, 'Waiting: its disk may be half written')
  assert.match(waiting, BUTTON)

  for (const fields of [{}, { confirm: 'ask' }, { confirm: 'yes', was: '[]' }]) {
    const asked = await site.post(`${PAGE}/do/boot-disk`, { ...fields })
    assert.is(asked.status, 200)
    assert.match(await asked.text(), 'so anybody on the network can request one')
  }
  assert.match(await site.boxes.boot(1), 'waits:', 'a question does nothing')

  const question = await (await site.post(`${PAGE}/do/boot-disk`, { confirm: 'ask' })).text()
  const was = (/name="was" value="([^"]*)"/.exec(question)?.[1] ?? '').replaceAll('&quot;', '"')
  const saved = await site.post(`${PAGE}/do/boot-disk`, { confirm: 'yes', was })
  assert.equal([saved.status, saved.headers.get('location')], [303, `${PAGE}?disk=1`])
  assert.match(await site.boxes.boot(1), 'boots its own disk (disk-allowed)')
  const after = await site.text(PAGE)
  assert.match(after, 'as an operator chose')
  assert.not.match(after, BUTTON)

  await fetch(`${site.url}/pxe/${MAC}/plan`)
  assert.match(await site.boxes.boot(1), 'boots its own disk (disk-allowed)', 'nobody undoes it')
  const { events } = await (await site.ask(`/events?subject_id=${MAC}`)).json()
  const event = events.find(({ kind }: { kind: string }) => kind === 'machine.boot-disk')
  assert.equal([event.actor, event.source_ip], ['operator', '127.0.0.1'])
  assert.match(event.summary, `${MAC} is to boot its disk`)
})

test('scripts have it as an action, refused where no flash is without an end', async () => {
  await using site = await open()
  const bulk = () => site.json('/machines/bulk', 'POST', { action: 'boot-disk', macs: [MAC] })
  const refused = await bulk()
  assert.equal([refused.done, refused.results[0].result], [0, 'refused'])
  const page = await site.post(`${PAGE}/do/boot-disk`, { confirm: 'ask' })
  assert.match(page.headers.get('location') ?? '', /error=/)
  await fetch(`${site.url}/pxe/${MAC}/plan`)
  assert.is((await bulk()).done, 1)
  assert.match(await site.boxes.boot(1), 'boots its own disk (disk-allowed)')
})

test.run()
