/** What a page says of a form that was refused: to the one who sent it, and never what an address says. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'

const test = suite('words on pages')
const MAC = '52:54:00:00:00:01'
const PASSWORD = 'secret words'

async function open() {
  const stack = new AsyncDisposableStack()
  const home = stack.use(await createServerHome())
  const server = stack.use(await home.start([], { FLASHER_ADMIN_PASSWORD: PASSWORD }))
  return {
    url: server.url,
    async enter() {
      const { cookie } = await login(server.url, PASSWORD)
      const ask = (path: string, init: RequestInit = {}) =>
        fetch(`${server.url}${path}`, { redirect: 'manual', ...init, headers: { cookie } })
      return {
        ask,
        text: async (path: string) => await (await ask(path)).text(),
        post: async (path: string, fields: Readonly<Record<string, string>> = {}) =>
          (await ask(path, { method: 'POST', body: new URLSearchParams(fields) })).headers.get(
            'location',
          ) ?? '',
      }
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

test('a link puts no words of its own on any page', async () => {
  await using site = await open()
  const operator = await site.enter()
  await operator.post('/ui/machines', { mac: MAC })
  for (const path of [
    '/ui/dashboard',
    '/ui/machines',
    `/ui/machines/${MAC}`,
    '/ui/runs',
    '/ui/netboot',
    '/ui/backups',
    '/ui/events',
    '/ui/settings',
    '/ui/account',
  ]) {
    for (const name of [
      'error',
      'notice',
      'deleted',
      'missing',
      'saved',
      'restored',
      'updated',
      'name',
    ]) {
      const page = await operator.text(
        `${path}?${name}=HELLO-${name}&at=pxe.loop_limit&value=HELLO`,
      )
      // The address of the page itself stands in it, to come back to; people do not see that.
      const shown = page.replaceAll(/\s(?:value|href|action|hx-get|data-\w+)="[^"]*"/g, '')
      assert.not.match(shown, 'HELLO', `${path} ${name}`)
    }
  }
  const typed = await operator.text('/ui/settings?error=x&at=pxe.loop_limit&value=HELLO')
  assert.not.match(typed, 'value="HELLO"')
})

test('a refusal is shown to the session that asked, again when the page is loaded again', async () => {
  await using site = await open()
  const operator = await site.enter()
  const other = await site.enter()
  const rows = [
    ['/ui/machines', { mac: 'no <b>mac' }, /&quot;no &lt;b&gt;mac&quot; is not a MAC address/],
    ['/ui/account/tokens/abc/revoke', {}, /That token no longer exists\./],
    ['/ui/backups/2026-01-01T00-00-00Z/cancel', {}, /That backup is not running\./],
    ['/ui/backups/2026-01-01T00-00-00Z/delete', {}, /There is no such backup\./],
    ['/ui/netboot/fetch-release', { tag: '../..' }, /id="tag-error">That is no tag\. A tag/],
    [
      '/ui/netboot/fetch-release',
      { site: '', repository: 'a/b' },
      /id="site-error">Enter the address of the site/,
    ],
    [
      '/ui/settings/upstream',
      { catalog_url: 'ftp://x' },
      /Address of the cache service<\/a>: Must be an address like/,
    ],
  ] as const
  for (const [path, fields, words] of rows) {
    const location = await operator.post(path, fields)
    assert.match(location, /^\/ui\/[\w/]+\?error=[^&#]+&notice=[\w-]{12}(#[\w.]+)?$/)
    for (const time of ['at once', 'again'])
      assert.match(await operator.text(location), words, time)
    assert.not.match(await other.text(location), words)
  }
})

test('where releases are is proposed until it is set', async () => {
  await using site = await open()
  const operator = await site.enter()
  assert.match(await operator.text('/ui/netboot'), /name="site"[^>]*\svalue="https:/)
})

test('an invalid filter is reported as a fault of the address', async () => {
  await using site = await open()
  const operator = await site.enter()
  const page = await operator.text('/ui/runs?since=x')
  assert.match(page, /the address is not what it must be: since: /i)
  assert.not.match(page, /the body/i)
})

test('a page that there is not asks nobody to log in who is', async () => {
  await using site = await open()
  const operator = await site.enter()
  for (const [path, status] of [
    ['/ui/nowhere', 404],
    ['/ui/machines/52:54:00:00:00:09', 404],
    ['/ui/settings/upstream', 405],
  ] as const) {
    const answer = await operator.ask(path)
    assert.is(answer.status, status)
    const page = await answer.text()
    assert.not.match(page, 'Log in', path)
    assert.match(page, '/ui/dashboard')
    assert.match(answer.headers.get('cache-control') ?? '', 'no-store')
  }
  const stranger = await fetch(`${site.url}/ui/nowhere`)
  assert.is(stranger.status, 404)
  assert.match(await stranger.text(), 'Log in')
})

test.run()
