/** /ui/settings: what the catalog left out is named, and nothing is said to be saved that is not. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login } from '../../../../support/server/flasher-web.ts'
import { startHostileServer } from '../../../../support/http/hostile-server.ts'
import { until } from '../../../../support/server/image-cache.ts'

const test = suite('settings page')

const PASSWORD = 'secret words'

async function open(env: Readonly<Record<string, string>> = {}) {
  const stack = new AsyncDisposableStack()
  const home = stack.use(await createServerHome())
  const start = async (argv: readonly string[] = []) => {
    const server = await home.start(argv, { FLASHER_ADMIN_PASSWORD: PASSWORD, ...env })
    const { cookie } = await login(server.url, PASSWORD)
    const ask = (path: string, init: RequestInit = {}) =>
      fetch(`${server.url}${path}`, { redirect: 'manual', ...init, headers: { cookie } })
    return {
      page: async (query = '') => await (await ask(`/ui/settings${query}`)).text(),
      post: (path: string, fields: Readonly<Record<string, string>>) =>
        ask(path, { method: 'POST', body: new URLSearchParams(fields) }),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  }
  return { home, start, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

const good = { name: 'good.img', src: 'https://h/good.img' }
const bad = (n: number) => ({ name: `bad-${n}.img`, src: 'nowhere' })

test('entries that were left out are named without being asked for, also after a restart', async () => {
  const entries = [good, ...Array.from({ length: 30 }, (_, n) => bad(n))]
  await using cache = await startHostileServer((_request, response) => {
    response.setHeader('etag', '"one"')
    response.end(JSON.stringify({ entries }))
  })
  await using site = await open({ FLASHER_WITHCACHE_URL: cache.origin })
  for (const start of ['the first start', 'a restart']) {
    await using server = await site.start()
    await until(async () => (await server.page()).includes('bad-0.img'))
    const page = await server.page()
    assert.match(page, /bad-19\.img: its source cannot be used/, start)
    assert.not.match(page, 'bad-20.img')
    assert.match(page, /and 10 more/)
  }
  assert.match(await site.home.text('state/catalog.toml'), /^name = "good\.img"$/m)
})

test('a public address with a path is said to be one without pages, at the start and here', async () => {
  await using site = await open()
  const warns = /has the path \/flasher: boot scripts and boot files are below it, pages are not/
  const start = async (url: string) => {
    await using server = await site.home.start([], {
      FLASHER_ADMIN_PASSWORD: PASSWORD,
      FLASHER_SERVER_PUBLIC_URL: url,
    })
    const { cookie } = await login(server.url, PASSWORD)
    const page = await fetch(`${server.url}/ui/settings`, { headers: { cookie } })
    const text = await page.text()
    server.child.kill('SIGTERM')
    const { stderr } = await server.ended
    return { log: stderr, page: text }
  }
  const below = await start('https://flash.example/flasher')
  assert.match(below.log, warns)
  assert.match(below.page, warns)
  const root = await start('https://flash.example')
  assert.not.match(root.log + root.page, /boot scripts and boot files are below/)
})

test('a form with a field that there is not is refused, and nothing of it is saved', async () => {
  await using site = await open()
  await using server = await site.start()
  const rows = [
    ['upstream', { netboot_rep: 'a/b' }],
    ['upstream', { netboot_repo: 'a/b', tag: 'v1.0.0' }],
    ['upstream', {}],
    ['backup', { backup_enabled: 'on', cadence: 'daily' }],
    ['backup', {}],
    ['config/edit', { section: 'pxe', key: 'loop_limit', value: '9', more: '' }],
    ['config/edit', { section: 'pxe', key: 'loop_limit' }],
  ] as const
  for (const [form, fields] of rows) {
    const answer = await server.post(`/ui/settings/${form}`, fields)
    assert.is(answer.status, 422, `${form} ${JSON.stringify(fields)}`)
    assert.match(await answer.text(), /has no field|is missing|holds nothing/)
  }
  const page = await server.page()
  assert.not.match(page, 'value="a/b"')
})

test('what a form shows and nobody changes stays what the file says', async () => {
  await using site = await open()
  const argv = ['--config', site.home.at('a.toml')]
  await site.home.write('a.toml', '[boot]\nrelease_repo = "a/b"\n')
  {
    await using server = await site.start(argv)
    const fields = { netboot_repo: 'a/b', netboot_tag: 'v2.0.0' }
    assert.is((await server.post('/ui/settings/upstream', fields)).status, 303)
  }
  await site.home.write('a.toml', '[boot]\nrelease_repo = "c/d"\n')
  await using server = await site.start(argv)
  const page = await server.page()
  assert.match(page, 'value="c/d"')
  assert.match(page, 'value="v2.0.0"')
})

/** The settings and forms that are shown, by their keywords. */
const shownIn = (page: string) =>
  [
    ...page.matchAll(
      /<(?:li|div)(?: class="setting" id="([^"]*)")?[^>]*data-keywords="[^"]*"([^>]*)>/g,
    ),
  ]
    .filter(([, , rest = '']) => !rest.includes('hidden'))
    .flatMap(([, name]) => name ?? [])

test('a search without a script shows what it finds, by name, key, variable or help', async () => {
  await using site = await open()
  await using server = await site.start()
  assert.is(shownIn(await server.page()).length, 53)
  for (const [query, names] of [
    ['time+zone', ['display.timezone']],
    ['pxe.loop_limit', ['pxe.loop_limit']],
    ['FLASHER_SERVER_PUBLIC_URL', ['server.public_url']],
    ['simultaneous', ['pxe.max_flashes']],
    ['zebra', []],
  ] as const) {
    assert.equal(shownIn(await server.page(`?q=${query}`)), [...names], query)
  }
  const evil = await server.page(`?q=${encodeURIComponent('"><script>alert(1)</script>')}`)
  assert.match(evil, 'value="&quot;&gt;&lt;script&gt;')
})

test('settings have names, sections of the specification are there, and none is empty', async () => {
  await using site = await open()
  await using server = await site.start()
  const page = await server.page()
  for (const id of ['identity', 'network', 'storage', 'ramboot', 'dhcp-pxe', 'netboot-release']) {
    assert.match(page, new RegExp(`<section class="card"\\s+id="${id}"`), id)
  }
  assert.not.match(page, 'id="wizard"')
  assert.not.match(page, /<ul class="settings">\s*<\/ul>/)
  assert.match(page, /<strong>Time zone<\/strong>\s*<code class="key">display\.timezone<\/code>/)
  assert.match(page, /<span class="value">200 GiB<\/span>/)
})

test('DHCP: the file of each architecture, signed ones unless iPXE is chosen', async () => {
  await using site = await open()
  await using server = await site.start()
  const [usual, ipxe] = [await server.page(), await server.page('?loader=ipxe')]
  for (const name of ['shimx64.efi', 'shimaa64.efi', '/boot/shimx64.efi', '/boot/shimaa64.efi']) {
    assert.match(usual, name)
    assert.not.match(ipxe, name)
  }
  for (const name of ['ipxe.efi', 'ipxe-arm64.efi', '/boot/ipxe.efi', '/boot/ipxe-arm64.efi']) {
    assert.match(ipxe, name)
    assert.not.match(usual, name)
  }
  assert.match(usual, /<a\s+href="\?loader=ipxe#dhcp-pxe"/)
})

test.run()
