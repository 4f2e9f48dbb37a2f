/** "Browser UI routes", as both specifications have them, against the programs of both lines. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { readEvents } from '#test/support/server/event-reader.ts'
import { createSystemAccount, hashOf } from '#test/support/system/system-account.ts'

const PASSWORD = 'a password of the tests'
const MAC = '52:54:00:ab:cd:ef'
const isShown = ({ data }: { data: string }) => /52[:-]54[:-]00[:-]ab[:-]cd[:-]ef/.test(data)

interface LinePages {
  readonly name: string
  readonly env: Readonly<Record<string, string>>
  /** A form that is saved, and what is saved by it. */
  readonly form: Readonly<Record<string, string>>
}

const LINES: readonly LinePages[] = [
  {
    name: 'current',
    env: { FLASHER_ADMIN_PASSWORD: PASSWORD },
    form: { boot_mode: 'flasher-tui' },
  },
  { name: 'earlier', env: { FLASHER_LINE: 'earlier' }, form: { boot_policy: 'tui' } },
]

async function startServer({ env }: LinePages) {
  await using undo = new AsyncDisposableStack()
  const { prefix } = undo.use(await createSystemAccount({ shadow: hashOf(PASSWORD) }))
  const home = undo.use(await createServerHome({ prefix }))
  const server = undo.use(await home.start([], { ...env, FLASHER_IMAGE_ROOT: home.at('images') }))
  const { cookie } = await login(server.url, PASSWORD)
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${server.url}${path}`, { redirect: 'manual', ...init, headers: { cookie } })
  const held = undo.move()
  return {
    url: server.url,
    ask,
    read: async (path: string) => (await ask(path)).text(),
    post: (path: string, form: Readonly<Record<string, string>> = {}) =>
      ask(path, { method: 'POST', body: new URLSearchParams(form) }),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

for (const line of LINES) {
  const test = suite(`pages of both lines: ${line.name}`)

  test('the way in: /ui, the login form, every page behind it', async () => {
    await using server = await startServer(line)
    const { ask, read, url } = server
    const ui = await ask('/ui')
    assert.equal([ui.status, ui.headers.get('location')], [303, '/ui/dashboard'])
    const form = await (await fetch(`${url}/ui/login`)).text()
    assert.match(form, 'name="password"')
    for (const page of ['dashboard', 'machines', 'settings']) {
      const closed = await fetch(`${url}/ui/${page}`, { redirect: 'manual' })
      assert.is(closed.status, 303, page)
      assert.match(closed.headers.get('location') ?? '', /^\/ui\/login/)
      assert.is((await ask(`/ui/${page}`)).status, 200, page)
    }
    // Scripts, styles and pictures: all of this server, without a session.
    const page = await read('/ui/machines')
    const assets = [...page.matchAll(/<(?:script|link|img)[^>]*?\s(?:src|href)="([^"]+)"/g)]
    assert.ok(assets.length > 2)
    for (const [, address = ''] of assets) {
      if (address.startsWith('data:')) continue
      assert.match(address, /^\/(?!\/)/)
      assert.is((await fetch(`${url}${address}`)).status, 200, address)
    }
  })

  test('machines: the badge, the form, its event, and the end of the record', async () => {
    await using server = await startServer(line)
    const { ask, read, post, url } = server
    const events = readEvents(await ask('/events/machines'))
    await (await fetch(`${url}/pxe/${MAC}`)).text()
    assert.ok(await events.until(isShown), 'discovery')
    assert.match(await read('/ui/machines'), /discovered/i)
    assert.is((await ask(`/ui/machines/${MAC}`)).status, 200)

    assert.is((await post(`/ui/machines/${MAC}`, line.form)).status, 303)
    assert.ok(await events.until(isShown), 'the form')
    const machine = await (await ask(`/machines/${MAC}`)).json()
    for (const [name, value] of Object.entries(line.form)) assert.is(machine[name], value)

    assert.is((await post(`/ui/machines/${MAC}/delete`)).status, 303)
    assert.ok(await events.until((event) => !isShown(event)), 'delete')
    assert.is((await ask(`/machines/${MAC}`)).status, 404)
    await events.close()
  })

  test('POST /ui/logout: the cookie is taken back, and opens nothing any more', async () => {
    await using server = await startServer(line)
    const { ask, post } = server
    const out = await post('/ui/logout')
    assert.is(out.status, 303)
    assert.match(out.headers.getSetCookie().join(), /flasher-token=;/)
    assert.is((await ask('/machines')).status, 401)
  })

  test.run()
}
