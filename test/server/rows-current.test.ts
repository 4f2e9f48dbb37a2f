/** Rows of the current line's specification, against the real program: routes, pages, settings and the catalog. */
import { execFileSync } from 'node:child_process'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { readEvents } from '#test/support/server/event-reader.ts'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { until } from '#test/support/server/image-cache.ts'
import { entryOf, REF } from '#test/support/server/machine-fixture.ts'
import { asJson, createTestServer } from '#test/support/server/server.ts'

const test = suite('rows of the current specification')
const context: { server: Awaited<ReturnType<typeof open>> | null } = { server: null }
test.before(async () => {
  context.server = await open()
})
test.after(() => context.server?.[Symbol.asyncDispose]())

function site() {
  if (context.server === null) throw new Error('it was not started')
  return context.server
}

const PASSWORD = 'a password of the tests'
const MAC = '52:54:00:12:34:56'
const OTHER = '52:54:00:00:00:99'
const DISK = { path: '/dev/sda', serial: 'S1', tran: 'nvme', removable: false, readonly: false }

/** A cache service that knows `GET /catalog` alone, whose list can be changed, beside a site of releases that has none, and of `stalls/` never says so. */
async function startUpstream() {
  const names = ['first.img']
  return {
    names,
    ...(await startHostileServer((request, response) => {
      const entries = names.map((name) => ({ name, src: `https://h/${name}`, size_bytes: 5 }))
      if (request.url?.split('?')[0] === '/catalog') response.end(JSON.stringify({ entries }))
      else if (request.url?.startsWith('/stalls/') !== true) response.writeHead(404).end()
    })),
  }
}

async function open() {
  await using undo = new AsyncDisposableStack()
  const upstream = undo.use(await startUpstream())
  const home = undo.use(await createServerHome())
  await mkdir(home.at('state/boot'), { recursive: true })
  await mkdir(home.at('images'))
  await writeFile(home.at('state/boot/vmlinuz'), 'kernel')
  await writeFile(home.at('images/local.img'), 'bytes')
  await home.write('state/flasher.toml', '[pxe]\nloop_limit = 7\n')
  const server = undo.use(
    await home.start([], {
      FLASHER_ADMIN_PASSWORD: PASSWORD,
      FLASHER_WITHCACHE_URL: upstream.origin,
      FLASHER_IMAGE_ROOT: home.at('images'),
      FLASHER_RELEASES_BASE_URL: upstream.origin,
    }),
  )
  const { cookie } = await login(server.url, PASSWORD)
  const request = (path: string, init: RequestInit = {}) =>
    fetch(`${server.url}${path}`, { redirect: 'manual', ...init })
  const ask = (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    headers.set('cookie', cookie)
    return request(path, { ...init, headers })
  }
  const names = async (): Promise<readonly string[]> =>
    (await (await request('/images')).json()).map(({ name }: { name: string }) => name)
  const held = undo.move()
  return {
    upstream,
    home,
    pid: server.child.pid,
    request,
    ask,
    names,
    post: (path: string, fields: Readonly<Record<string, string>> = {}) =>
      ask(path, { method: 'POST', body: new URLSearchParams(fields) }),
    read: async (path: string) => await (await ask(path)).text(),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

const disks = asJson({ disks: [DISK], lshw: { id: 'box' } })
const OPEN: readonly (readonly [path: string, status: number, type: string, init?: RequestInit])[] =
  [
    ['/healthz', 200, 'application/json'],
    ['/version', 200, 'application/json'],
    [`/pxe/${MAC}`, 200, 'text/plain'],
    [`/pxe/${MAC}/plan`, 200, 'application/json'],
    [`/pxe/${MAC}/inventory`, 204, '', disks],
    [`/pxe/${MAC}/done`, 204, '', { method: 'POST' }],
    ['/pxe-bootstrap.ipxe', 200, 'text/plain'],
    ['/boot/vmlinuz', 200, 'application/octet-stream'],
    ['/images', 200, 'application/json'],
    ['/catalog.toml', 200, 'application/toml'],
  ]

test('open routes need no session', async () => {
  const server = site()
  for (const [path, status, type, init] of OPEN) {
    const answer = await server.request(path, init)
    assert.is(answer.status, status, path)
    assert.ok((answer.headers.get('content-type') ?? '').startsWith(type), path)
    assert.equal(answer.headers.getSetCookie(), [], path)
  }
})

const PROTECTED: readonly (readonly [method: string, path: string, status: number])[] = [
  ['PUT', `/machines/${OTHER}`, 200],
  ['GET', '/machines', 200],
  ['GET', `/machines/${OTHER}`, 200],
  ['GET', `/machines/${OTHER}/lshw.json`, 404],
  ['GET', `/machines/${OTHER}/disks.json`, 404],
  ['DELETE', `/machines/${OTHER}`, 204],
  ['POST', '/admin/cache/refresh', 303],
  ['GET', '/workers/backups', 200],
  ['POST', '/workers/backups', 202],
  ['DELETE', '/workers/backups', 200],
  ['GET', '/boot/releases', 200],
  ['POST', '/boot/releases', 409],
  ['DELETE', '/boot/releases', 200],
  ['PUT', '/boot/initrd', 200],
  ['GET', '/events/machines', 200],
]

test('protected routes: 401 without a session, and what each answers with one', async () => {
  const server = site()
  for (const [method, path, status] of PROTECTED) {
    const init = method === 'PUT' || path === '/boot/releases' ? asJson({}, method) : { method }
    const body = method === 'GET' || method === 'DELETE' ? { method } : init
    assert.is((await server.request(path, body)).status, 401, `${method} ${path}`)
    const answer = await server.ask(path, body)
    assert.is(answer.status, status, `${method} ${path}`)
    if (status === 303) assert.is(answer.headers.get('location'), '/ui/machines')
    if (path.startsWith('/events/')) {
      assert.is(answer.headers.get('content-type'), 'text/event-stream')
      await answer.body?.cancel()
    }
  }
  assert.equal(await (await server.request('/healthz')).json(), { status: 'ok' })
})

test('the catalog is read at the start and when it is asked for, and the server has no images of its own', async () => {
  const server = site()
  await until(async () => (await server.names()).length > 0)
  assert.equal(await server.names(), ['first.img'], 'the image root is the wizard’s alone')
  server.upstream.names.push('second.img')
  assert.equal(await server.names(), ['first.img'])
  assert.is((await server.post('/admin/cache/refresh')).status, 303)
  assert.equal(await server.names(), ['first.img', 'second.img'])
  const toml = await (await server.request('/catalog.toml')).text()
  assert.equal(toml.match(/^(version|name) = .*$/gm), [
    'version = 1',
    'name = "first.img"',
    'name = "second.img"',
  ])
  for (const path of ['/images/first.img', `/images/${'a'.repeat(64)}/first.img`, '/ui/images']) {
    assert.is((await server.ask(path)).status, 404, path)
  }
})

test('the bundle of an export is one file', async () => {
  const server = site()
  await server.request(`/pxe/${MAC}`)
  await server.request(`/pxe/${MAC}/inventory`, disks)
  assert.is((await server.home.run(['export', server.home.at('out')])).code, 0)
  assert.equal(await readdir(server.home.at('out')), ['inventory.json'])
  const { machines, ...about } = JSON.parse(await server.home.text('out/inventory.json'))
  const { version } = await (await server.request('/version')).json()
  assert.equal([about.bty_export_version, about.exported_by_bty_version], [3, version])
  assert.match(about.exported_at, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  const [{ mac, known_disks, known_disks_at, hw_lshw, hw_lshw_at }] = machines
  assert.equal([mac, known_disks[0].serial, hw_lshw], [MAC, 'S1', { id: 'box' }])
  assert.equal([known_disks_at, hw_lshw_at].map(Date.parse).filter(Number.isNaN), [])
})

/** What each page has: a form, a part, a link. */
const PAGES: readonly (readonly [path: string, ...patterns: readonly RegExp[]])[] = [
  ['/ui/login', /<form[^>]*method="post"[^]*name="password"/],
  [
    '/ui/dashboard',
    /href="\/ui\/netboot#install"/,
    /title="backup\.created"/,
    /href="\/ui\/account"/,
  ],
  ['/ui/machines', /href="\/ui\/machines\/52:54:00:12:34:56"[^]*discovered/i, /sse-connect="/],
  [
    '/ui/machines/52:54:00:12:34:56',
    /type="radio"[^>]*name="bty_image_ref"[^]*first\.img/,
    /type="radio"[^>]*name="target_disk_serial"[^>]*value="S1"/,
    /href="\/machines\/52:54:00:12:34:56\/lshw\.json"/,
  ],
  [
    '/ui/netboot',
    /href="#artifacts"[^]*href="#tftp"[^]*href="#activity"/,
    /id="artifacts"[^]*vmlinuz<\/a>[^]*6 B[^]*<time datetime="/,
    /action="\/ui\/netboot\/fetch-release"/,
    /id="tftp"/,
  ],
  [
    '/ui/backups',
    /<form[^>]*action="\/ui\/backups"/,
    /href="\/ui\/settings#backup-schedule"/,
    /title="backup\.created"/,
  ],
  ['/ui/events', /machine\.discovered|made its first contact/],
  [
    '/ui/settings',
    /id="ramboot"[^]*id="netboot-release"[^]*id="backup-schedule"/,
    /id="identity"/,
    /id="storage"/,
    /id="network"/,
    /id="server\.port"[^]{0,900}FLASHER_SERVER_PORT/,
    /name="pxe\.loop_limit"[^>]*value="7"/,
    /id="pxe\.max_flashes"[^]{0,1500}Default: /,
    /id="dhcp-pxe"[^]*option 66[^]*\(67\)[^]*60 = HTTPClient[^]*\/pxe-bootstrap\.ipxe/,
  ],
  ['/ui/account', /<h1/],
]

const TILE = /<strong[^>]*>(\d+)<\/strong>\s*<span[^>]*>(Machines|Discovered|Images)<\/span>/g

test('pages have what the specification lists', async () => {
  const server = site()
  await until(async () => (await server.names()).length > 0)
  await server.request(`/pxe/${MAC}`)
  await server.request(`/pxe/${MAC}/inventory`, disks)
  const job = await (await server.ask('/workers/backups', asJson({}))).json()
  await until(async () => (await server.read('/ui/backups')).includes('backup.created'))
  assert.type(job.backup_id, 'string')
  const { length: images } = await server.names()
  const { length: machines } = await (await server.ask('/machines')).json()
  const tiles = [...(await server.read('/ui/dashboard')).matchAll(TILE)]
  assert.equal(
    tiles.map(([, count, what]) => [what, Number(count)]),
    [
      ['Machines', machines],
      ['Discovered', machines],
      ['Images', images],
    ],
  )
  for (const [path, ...patterns] of PAGES) {
    const answer = await (path === '/ui/login' ? server.request(path) : server.ask(path))
    assert.is(answer.status, 200, path)
    const page = await answer.text()
    for (const pattern of patterns) assert.match(page, pattern, path)
  }
})

test('the release that the page fetches is the one that was saved, without a restart', async () => {
  const server = site()
  const asked = () =>
    server.upstream.seen.map(({ url }) => url).filter((url) => url.includes('release'))
  const saved = await server.post('/ui/settings/upstream', { netboot_repo: 'some/where' })
  assert.is(saved.status, 303)
  await server.post('/ui/netboot/fetch-release')
  await until(() => asked().some((url) => url.startsWith('/some/where/releases/latest/download/')))
  await server.post('/ui/settings/upstream', { netboot_repo: 'a/b', netboot_tag: 'v1.2.3' })
  await server.post('/ui/netboot/fetch-release')
  await until(() => asked().some((url) => url.startsWith('/a/b/releases/download/v1.2.3/')))
})

test('what is under way is on its page, and is cancelled there', async () => {
  const server = site()
  await server.post('/ui/settings/upstream', { netboot_repo: 'stalls/here', netboot_tag: 'v9.9.9' })
  await server.post('/ui/netboot/fetch-release')
  const cancel = /action="\/ui\/netboot\/cancel-fetch"[^]{0,300}value="v9\.9\.9"/
  await until(async () => cancel.test(await server.read('/ui/netboot')))
  await server.post('/ui/netboot/cancel-fetch', { tag: 'v9.9.9' })
  await until(async () => !cancel.test(await server.read('/ui/netboot')))
  await until(async () => {
    const begun = Array.from({ length: 8 }, () => server.post('/ui/backups'))
    const shown = await server.read('/ui/backups')
    await Promise.all(begun)
    return /action="\/ui\/backups\/[\w-]+\/cancel"/.test(shown)
  })
  await server.ask('/workers/backups', { method: 'DELETE' })
})

test('form posts and discoveries are events of the channel, which needs the cookie', async () => {
  const server = site()
  const events = readEvents(await server.ask('/events/machines'))
  const first = await events.next()
  assert.is(first?.name, 'machines-update')
  assert.not.match(first?.data ?? '', OTHER)
  await server.request(`/pxe/${OTHER}`)
  const shows = (text: string) => events.until(({ data }) => data.includes(text))
  assert.ok(await shows(OTHER))
  await server.post(`/ui/machines/${OTHER}`, { labels: 'from-the-form' })
  assert.ok(await shows('from-the-form'))
  await server.post(`/ui/machines/${OTHER}/delete`)
  assert.ok(
    await events.until(({ name, data }) => name === 'machines-update' && !data.includes(OTHER)),
  )
  await events.close()
})

test('the server listens on no UDP port', () => {
  const listed = execFileSync('ss', ['-H', '-l', '-u', '-n', '-p'], { encoding: 'utf8' })
  assert.not.match(listed, `pid=${site().pid},`)
})

const FLASH = { bty_image_ref: REF, target_disk_serial: 'S1' }

const diskOf = (tran: string | null, n: number) => ({
  path: `/dev/sd${n}`,
  size: n === 0 ? null : '500G',
  vendor: n === 0 ? null : 'ATA',
  model: n === 0 ? null : 'Disk 9',
  serial: n === 0 ? null : `S${n}`,
  tran,
  removable: tran === 'usb',
  readonly: n === 0,
})
const DISKS = [null, 'sata', 'nvme', 'usb'].map(diskOf)

async function openMachines() {
  let time = Date.parse('2026-05-01T00:00:00.000Z')
  const server = await createTestServer({ now: () => new Date(time), catalog: [entryOf(REF)] })
  const ask = await server.operator()
  const machine = async () => await (await ask(`/machines/${MAC}`)).json()
  return {
    server,
    ask,
    machine,
    /** An hour later; returns that time. */
    later: () => new Date((time += 3_600_000)).toISOString(),
    contact: (path: string, init: RequestInit & { readonly ip?: string } = {}) =>
      server.request(`/pxe/${MAC}${path}`, { ip: '192.0.2.7', ...init }),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

test('each contact sets its fields and leaves all others', async () => {
  await using fixture = await openMachines()
  const { ask, machine, later, contact } = fixture
  const made = later()
  const put = { boot_mode: 'flasher-tui', sanboot_drive: '0x81' }
  await ask(`/machines/${MAC}`, asJson(put, 'PUT'))
  const before = await machine()
  const nothing = [before.discovered_at, before.last_seen_at, before.last_seen_ip]
  assert.equal([...nothing, before.known_disks_at, before.last_flashed_at], Array(5).fill(null))
  assert.equal([before.created_at, before.updated_at], [made, made])

  const first = later()
  await contact('')
  const seen = { discovered_at: first, last_seen_at: first, last_seen_ip: '192.0.2.7' }
  const { updated_at: _, ...discovered } = await machine()
  assert.equal(discovered, { ...discovered, ...put, ...seen, created_at: made, known_disks: null })

  const second = later()
  await contact('', { ip: '192.0.2.8' })
  const again = { ...discovered, last_seen_at: second, last_seen_ip: '192.0.2.8' }
  assert.equal(await machine(), { ...again, updated_at: (await machine()).updated_at })

  const third = later()
  await contact('/inventory', asJson({ disks: DISKS }))
  const told = await machine()
  assert.equal(
    [told.known_disks, told.known_disks_at, told.boot_mode],
    [DISKS, third, 'flasher-tui'],
  )
  assert.equal(await (await ask(`/machines/${MAC}/disks.json`)).json(), DISKS)

  const fourth = later()
  await contact('/done', { method: 'POST' })
  const done = await machine()
  assert.equal(
    [done.last_flashed_at, done.boot_mode, done.known_disks_at],
    [fourth, 'flasher-tui', third],
  )

  await ask(`/machines/${MAC}`, asJson({ labels: ['b', 'a'] }, 'PUT'))
  const replaced = await machine()
  assert.equal(
    [replaced.boot_mode, replaced.sanboot_drive, replaced.labels, replaced.last_flashed_at],
    ['ipxe-exit', null, ['a', 'b'], fourth],
  )
})

const isLive = (script: string) => /^kernel /m.test(script)

for (const [boot_mode, flashesAgain] of [
  ['flasher-flash-once', false],
  ['flasher-flash-always', true],
] as const) {
  test(`${boot_mode}: the script before and after the end of a flash`, async () => {
    await using fixture = await openMachines()
    const { ask, machine, contact } = fixture
    const script = async () => await (await contact('')).text()
    await ask(`/machines/${MAC}`, asJson({ boot_mode }, 'PUT'))
    assert.not.ok(isLive(await script()), 'without image and disk')
    await ask(`/machines/${MAC}`, asJson({ ...FLASH, boot_mode }, 'PUT'))
    const text = await script()
    assert.ok(isLive(text))
    assert.match(text, ` flasher.server=http://flasher.test:8080 flasher.mac=${MAC} `)
    assert.is((await (await contact('/plan')).json()).plan.mode, 'flash')
    assert.is((await contact('/done', { method: 'POST' })).status, 204)
    assert.is((await machine()).boot_mode, boot_mode)
    for (const _ of [1, 2]) assert.is(isLive(await script()), flashesAgain)
  })
}

test('an unknown machine posts its disks once and boots its disk from then on', async () => {
  await using fixture = await openMachines()
  const { machine, later, contact } = fixture
  const script = async () => await (await contact('')).text()
  const at = later()
  assert.ok(isLive(await script()))
  const { discovered_at, last_seen_at, last_seen_ip, bty_image_ref } = await machine()
  assert.equal(
    [discovered_at, last_seen_at, last_seen_ip, bty_image_ref],
    [at, at, '192.0.2.7', null],
  )
  assert.equal((await (await contact('/plan')).json()).plan, { mode: 'inventory' })
  await contact('/inventory', asJson({ disks: DISKS }))
  assert.match(await script(), /^sanboot --no-describe --drive 0x80 \|\| exit$/m)
  assert.is((await machine()).boot_mode, 'flasher-inventory')
})

test('boot_mode: five values and no other', async () => {
  await using fixture = await openMachines()
  const modes = ['ipxe-exit', 'flasher-flash-always', 'flasher-flash-once', 'flasher-tui']
  for (const boot_mode of [...modes, 'flasher-inventory', 'flash', 'tui', 'IPXE-EXIT', '', null]) {
    const { status } = await fixture.ask(`/machines/${MAC}`, asJson({ boot_mode }, 'PUT'))
    const isMode = modes.includes(String(boot_mode)) || boot_mode === 'flasher-inventory'
    assert.is(status, isMode ? 200 : 422, String(boot_mode))
  }
})

test('labels: what a set of them may hold', async () => {
  await using fixture = await openMachines()
  const put = async (labels: readonly string[]) =>
    (await fixture.ask(`/machines/${MAC}`, asJson({ labels }, 'PUT'))).status
  const rows: readonly (readonly [number, readonly string[]])[] = [
    [200, Array.from({ length: 16 }, (_, n) => `l${n}`)],
    [422, Array.from({ length: 17 }, (_, n) => `l${n}`)],
    [200, ['a'.repeat(64)]],
    [422, ['a'.repeat(65)]],
    ...['A', '0', 'a b', 'a-b', 'a_b', 'a.b', 'Z-', '9 _.-'].map((one) => [200, [one]] as const),
    ...['', ' a', '-a', '_a', '.a', 'a/b', 'a,b', 'a\tb', 'ä'].map((one) => [422, [one]] as const),
  ]
  for (const [status, labels] of rows) assert.is(await put(labels), status, JSON.stringify(labels))
})

test.run()
