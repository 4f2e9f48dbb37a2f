/** What a page says of a form that was refused: to the one who sent it, and never what an address says. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { asJson } from '#test/support/server/server.ts'
import { disksOf, serialOf } from '#test/support/server/web-machines.ts'

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
    [
      '/ui/netboot/fetch-release',
      { tag: '../..' },
      /id="tag-error">That is not a tag\. Enter a tag/,
    ],
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

test('where releases are is asked for by the address of the project until it is set', async () => {
  await using site = await open()
  const operator = await site.enter()
  assert.match(
    await operator.text('/ui/netboot'),
    /name="site"[^>]*\splaceholder="https:[^"]*\/owner\/name"/,
  )
})

test('an invalid filter is reported as a fault of the address', async () => {
  await using site = await open()
  const operator = await site.enter()
  const page = await operator.text('/ui/runs?since=x')
  assert.match(page, /the address is invalid: since: /i)
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

const run = promisify(execFile)

const [A, B, C] = ['52:54:00:a1:00:07', '52:54:00:a1:00:08', '52:54:00:a1:00:09'] as const
const REF = 'ab'.repeat(32)

const readText = (markup: string): string =>
  markup
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')

const readCommands = (page: string): readonly string[] =>
  [...page.matchAll(/<code>(curl [^<]*)<\/code>/g)].map(([, text = '']) => readText(text))

const patternOf = (path: string): RegExp => new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+')}$`)

const isOf = (command: string, route: string): boolean => {
  const [, method = 'GET', url = ''] = /^curl -fsS (?:-X (\w+) )?'([^']*)'/.exec(command) ?? []
  const [wanted, path = ''] = route.split(' ')
  return method === wanted && patternOf(path).test(new URL(url).pathname.replaceAll(/%3C|%3E/g, ''))
}

async function openForms() {
  const stack = new AsyncDisposableStack()
  const home = stack.use(await createServerHome())
  const server = stack.use(
    await home.start([], {
      FLASHER_ADMIN_PASSWORD: 'secret words',
      FLASHER_POWER_NETWORKS: '127.0.0.0/8',
      FLASHER_WITHCACHE_URL: 'http://127.0.0.1:9',
    }),
  )
  const { cookie } = await login(server.url, 'secret words')
  const switched = await fetch(`${server.url}/ui/api-calls`, {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie },
    body: new URLSearchParams({ calls: 'on', back: '/ui/events?kind=login' }),
  })
  assert.is(switched.headers.get('location'), '/ui/events?kind=login')
  const [calls] = switched.headers.get('set-cookie')?.split(';') ?? []
  const ask = (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    headers.set('cookie', `${cookie}; ${calls}`)
    return fetch(`${server.url}${path}`, { redirect: 'manual', ...init, headers })
  }
  const made = await ask('/tokens', asJson({ name: 'test', scopes: ['admin'] }))
  const { token } = await made.json()
  const page = async (path: string) => await (await ask(path)).text()
  return {
    ask,
    page,
    /** The question of a form, or what else it answers. */
    async post(action: string, fields: readonly (readonly string[])[] = []) {
      const body = new URLSearchParams(fields.map(([name = '', value = '']) => [name, value]))
      return await (await ask(action, { method: 'POST', body })).text()
    },
    json: async (path: string) => await (await ask(path)).json(),
    /** Runs the one command of a text that is for the route; `replaced`: what blanks become. */
    async run(
      text: string,
      route: string,
      find = '',
      replaced: Readonly<Record<string, string>> = {},
    ) {
      const [command, ...others] = readCommands(text).filter(
        (each) => isOf(each, route) && each.includes(find),
      )
      if (command === undefined) throw new Error(`no command for ${route} in ${readCommands(text)}`)
      assert.equal(others, [], route)
      const filled = Object.entries(replaced).reduce(
        (whole, [name, value]) => whole.replaceAll(`<${name}>`, value),
        command,
      )
      const ran = await run('/bin/sh', ['-c', filled], {
        env: { ...process.env, FLASHER_TOKEN: token },
      })
      return ran.stdout
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

type Opened = Awaited<ReturnType<typeof openForms>>

/** Machines in different states, a template, a way to power, a batch, a backup, an alarm. */
async function fill({ ask, post }: Opened): Promise<void> {
  for (const [mac, box] of [
    [A, 7],
    [B, 8],
    [C, 9],
  ] as const) {
    await ask(`/pxe/${mac}`)
    await ask(`/pxe/${mac}/inventory`, asJson({ disks: disksOf(box) }))
  }
  const flash = { boot_mode: 'flasher-flash-once', bty_image_ref: REF }
  await ask(`/machines/${A}`, asJson({ ...flash, target_disk_serial: serialOf(7) }, 'PUT'))
  await ask('/first-boot/web', asJson({ commands: ['true'] }, 'PUT'))
  await ask(`/machines/${C}/power`, asJson({ way: 'wake-on-lan', address: '127.0.0.1' }, 'PUT'))
  await post('/ui/backups')
  // A failed login is acknowledged on the page of events.
  await post('/ui/login', [['password', 'wrong']])
}

const ASK = [['confirm', 'ask']] as const

test('the commands do what the forms do', async () => {
  await using site = await openForms()
  const { ask, page, post, json } = site
  await fill(site)
  const machine = () => json(`/machines/${B}`)
  const path = `/ui/machines/${B}`
  // As it is: nothing changes.
  const before = await machine()
  await site.run(await page(path), 'PUT /machines/:mac')
  assert.equal({ ...(await machine()), updated_at: '' }, { ...before, updated_at: '' })
  await site.run(await page(path), 'POST /machines/bulk', '"lock"')
  assert.match(await page(path), 'do/unlock')
  await site.run(await page(path), 'POST /machines/bulk', '"unlock"')
  assert.match(await page(path), 'do/lock')
  await site.run(await page(path), 'POST /machines/:mac/undo')
  const question = await post(`/ui/machines/${A}/do/flash`, ASK)
  assert.match(await site.run(question, 'POST /machines/:mac/flash'), '"armed"')
  const bmc = await page(`/ui/machines/${C}`)
  await site.run(bmc, 'PUT /machines/:mac/power')
  await site.run(await post(`/ui/machines/${C}/power/delete`, ASK), 'DELETE /machines/:mac/power')
  assert.is((await ask(`/machines/${C}/power`)).status, 404)
  const added = '52:54:00:a1:00:10'
  await site.run(await page('/ui/machines'), 'PUT /machines/:mac', '', { mac: added })
  assert.is((await ask(`/machines/${added}`)).status, 200)
  await site.run(await post(`/ui/machines/${added}/delete`, ASK), 'DELETE /machines/:mac')
  assert.is((await ask(`/machines/${added}`)).status, 404)

  await site.run(await page('/ui/first-boot?new=1'), 'PUT /first-boot/:name', '', { name: 'new' })
  assert.is((await ask('/first-boot/new')).status, 200)
  await site.run(await page('/ui/first-boot/web'), 'PUT /first-boot/:name')
  assert.equal((await json('/first-boot/web')).commands, ['true'])
  await site.run(await post('/ui/first-boot/new/delete', ASK), 'DELETE /first-boot/:name')
  assert.is((await ask('/first-boot/new')).status, 404)
  await site.run(await page('/ui/account'), 'POST /tokens', '', { name: 'other' })
  const { id } = (await json('/tokens')).find(
    ({ name }: { readonly name: string }) => name === 'other',
  )
  await site.run(await post(`/ui/account/tokens/${id}/revoke`, ASK), 'DELETE /tokens/:id')
  assert.is((await json('/tokens')).length, 1)
  await site.run(await page('/ui/events'), 'POST /events/ack')
  assert.equal((await json('/events?unacknowledged=1')).events, [])
  await site.run(await page('/ui/backups'), 'POST /workers/backups')
  assert.is((await json('/workers/backups')).backups.length, 2)
})

test('a restore counts what it changes first, and its command changes it', async () => {
  await using site = await openForms()
  const { ask, json, page, post } = site
  const put = (mac: string, name: string) => ask(`/machines/${mac}`, asJson({ name }, 'PUT'))
  const many = Array.from({ length: 14 }, (_, at) => `52:54:00:a1:01:${10 + at}`)
  for (const mac of [A, ...many]) await put(mac, 'before')
  await post('/ui/backups')
  let stored: readonly { readonly backup_id: string }[] = []
  while (stored.length === 0) ({ stored } = await json('/workers/backups'))
  const [backup] = stored
  assert.ok(backup)
  for (const mac of many) await put(mac, 'after')
  await ask(`/machines/${A}`, { method: 'DELETE' })
  await put(B, 'new')
  const question = await page(`/ui/backups/${encodeURIComponent(backup.backup_id)}/restore`)
  assert.match(question, 'What changes: 16 machines')
  assert.match(question, '1 removed, 1 restored, 14 changed back.')
  const [sight = '', folded = ''] = question.split('6 more machines')
  assert.is(sight.split('class="grow"').length - 1, 10)
  assert.is(folded.split('class="grow"').length - 1, 6)
  await site.run(question, 'POST /workers/backups/:id/restore')
  assert.is((await json(`/machines/${A}`)).name, 'before')
  assert.is((await json(`/machines/${many[0]}`)).name, 'before')
  assert.is((await ask(`/machines/${B}`)).status, 404)
})

test.run()
