import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Route } from '#kit/web/answers/route.ts'
import { PASSWORD, startSite } from '#test/support/browser/browser.ts'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'
import { login } from '#test/support/server/flasher-web.ts'
import { asOperator, makeFolder, serveCache } from '#test/support/server/image-cache.ts'
import { sha256 } from '#test/support/server/boot-folder.ts'
import { entryOf, REF } from '#test/support/server/machine-fixture.ts'
import { bodyOf } from '#test/support/server/runs.ts'
import { asJson, createTestServer, readJson, type TestServer } from '#test/support/server/server.ts'
import { disksOf, macOf } from '#test/support/server/web-machines.ts'

const MAC = '52:54:00:12:34:56'
const FLASH = { bty_image_ref: REF, boot_mode: 'flasher-flash-once', target_disk_serial: 'S1' }
const test = suite('machines')

test('put creates and replaces, get and list answer it, delete removes it', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const made = await ask(`/machines/52-54-00-12-34-56`, asJson({ labels: ['b', 'a'] }, 'PUT'))
  assert.is(made.status, 200)
  const machine = await made.json()
  assert.equal(Object.keys(machine), [
    'mac',
    'bty_image_ref',
    'labels',
    'discovered_at',
    'last_seen_at',
    'last_seen_ip',
    'boot_mode',
    'sanboot_drive',
    'last_flashed_at',
    'known_disks',
    'known_disks_at',
    'target_disk_serial',
    'created_at',
    'updated_at',
    'name',
    'first_boot',
    'secure_boot',
    'bmc_address',
    'capture',
  ])
  assert.is(machine.mac, MAC)
  assert.equal(machine.labels, ['a', 'b'])
  assert.is(machine.boot_mode, 'ipxe-exit')
  assert.match(machine.created_at, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  const replaced = await (await ask(`/machines/${MAC}`, asJson(FLASH, 'PUT'))).json()
  assert.equal(replaced.labels, [])
  assert.is(replaced.bty_image_ref, REF)
  assert.equal(await (await ask('/machines')).json(), [replaced])
  assert.equal(await (await ask(`/machines/${MAC}`)).json(), replaced)
  const gone = await ask(`/machines/${MAC}`, { method: 'DELETE' })
  assert.is(gone.status, 204)
  assert.is(await gone.text(), '')
  assert.is((await ask(`/machines/${MAC}`, { method: 'DELETE' })).status, 404)
  const kinds = (await server.journal.list({ subject_kind: 'machine', limit: 9 })).map(
    (e) => e.kind,
  )
  assert.equal(kinds, ['machine.deleted', 'machine.upserted', 'machine.created'])
})

test('a name stays when a put does not say one, and events say what changed', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const put = async (body: object) =>
    await (await ask(`/machines/${MAC}`, asJson(body, 'PUT'))).json()
  assert.is((await put({ name: ' Rack 1, slot 4 ' })).name, 'Rack 1, slot 4')
  assert.is((await put({ labels: ['a'] })).name, 'Rack 1, slot 4')
  assert.is((await put({ name: '' })).name, null)
  assert.is((await ask(`/machines/${MAC}`, asJson({ name: 'a\u202e' }, 'PUT'))).status, 422)
  const events = await server.journal.list({ subject_id: MAC, limit: 9 })
  assert.equal(
    events.map(({ details }) => details?.['changes']),
    [
      { name: { before: 'Rack 1, slot 4', after: null }, labels: { before: ['a'], after: [] } },
      { labels: { before: [], after: ['a'] } },
      undefined,
    ],
  )
})

test('what is not there is a 404 with a reason', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const detail = async (path: string) => {
    const answer = await ask(path)
    assert.is(answer.status, 404, path)
    return (await answer.json()).detail
  }
  assert.is(await detail(`/machines/${MAC}`), `no machine record for ${MAC}`)
  assert.is(await detail(`/machines/${MAC}/lshw.json`), `no machine record for ${MAC}`)
  await ask(`/machines/${MAC}`, asJson({}, 'PUT'))
  assert.is(await detail(`/machines/${MAC}/lshw.json`), `no lshw hardware inventory for ${MAC}`)
  assert.is(await detail(`/machines/${MAC}/disks.json`), `no disk inventory for ${MAC}`)
  await server.request(`/pxe/${MAC}/inventory`, asJson({ disks: [] }))
  assert.equal(await (await ask(`/machines/${MAC}/disks.json`)).json(), [])
})

test('invalid bodies name each field', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const cases: readonly (readonly [unknown, string])[] = [
    [{ boot_mode: 'reboot' }, 'boot_mode'],
    [{ bty_image_ref: 'A'.repeat(64) }, 'bty_image_ref'],
    [{ labels: ['-x'] }, 'labels'],
    [{ labels: ['x'.repeat(65)] }, 'labels'],
    [{ labels: Array.from({ length: 17 }, (_, n) => `l${n}`) }, 'labels'],
    [{ sanboot_drive: '80' }, 'sanboot_drive'],
    [{ target_disk_serial: 'x'.repeat(129) }, 'target_disk_serial'],
  ]
  for (const [body, field] of cases) {
    const answer = await ask(`/machines/${MAC}`, asJson(body, 'PUT'))
    assert.is(answer.status, 422, field)
    const { detail } = await answer.json()
    assert.ok(
      detail.some((each: { loc: unknown[] }) => each.loc[1] === field),
      field,
    )
  }
  for (const body of [[], 'text', 7, null, { unknown: 1 }]) {
    assert.is((await ask(`/machines/${MAC}`, asJson(body, 'PUT'))).status, 422)
  }
  assert.is((await ask(`/machines/${MAC}`, { method: 'PUT' })).status, 422)
  assert.is((await ask(`/machines/nonsense`, asJson({}, 'PUT'))).status, 400)
  assert.is((await ask(`/machines/${MAC}`)).status, 404)
})

test('limits are inclusive', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const labels = Array.from({ length: 16 }, (_, n) => `${'x'.repeat(62)}${10 + n}`)
  const made = await ask(`/machines/${MAC}`, asJson({ labels }, 'PUT'))
  assert.is(made.status, 200)
  assert.equal((await made.json()).labels, labels)
})

test('If-Match guards against overwriting what another changed', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const tag = (await ask(`/machines/${MAC}`, asJson({}, 'PUT'))).headers.get('etag') ?? ''
  await server.request(`/pxe/${MAC}`)
  const put = (etag: string) => {
    const wish = asJson({ labels: ['mine'] }, 'PUT')
    return ask(`/machines/${MAC}`, { ...wish, headers: { ...wish.headers, 'if-match': etag } })
  }
  assert.is((await put('"other"')).status, 412)
  const seen = (await ask(`/machines/${MAC}`)).headers.get('etag') ?? ''
  assert.is((await put(seen)).status, 200)
  assert.is((await put(tag)).status, 412)
  const stale = { method: 'DELETE', headers: { 'if-match': tag } }
  assert.is((await ask(`/machines/${MAC}`, stale)).status, 412)
})

test('If-None-Match: * creates a machine, and never replaces one', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const put = (label: string, tag: string) => {
    const wish = asJson({ labels: [label] }, 'PUT')
    return ask(`/machines/${MAC}`, { ...wish, headers: { ...wish.headers, 'if-none-match': tag } })
  }
  const made = await put('first', '*')
  assert.is(made.status, 200)
  const tag = made.headers.get('etag') ?? ''
  for (const unwanted of ['*', tag, `"x", W/${tag}`]) {
    assert.is((await put('second', unwanted)).status, 412, unwanted)
  }
  assert.equal((await (await ask(`/machines/${MAC}`)).json()).labels, ['first'])
  assert.is((await put('second', '"other"')).status, 200)
})

test('flash arms now, and can wait for the end', async () => {
  await using server = await createTestServer({ catalog: [entryOf(REF)] })
  const ask = await server.operator()
  await ask(`/machines/${MAC}`, asJson({}, 'PUT'))
  assert.is((await ask(`/machines/${MAC}/flash`, { method: 'POST' })).status, 409)
  const armed = await ask(`/machines/${MAC}/flash`, asJson(FLASH))
  assert.is(armed.status, 200)
  assert.is((await armed.json()).outcome, 'armed')
  assert.is((await (await server.request(`/pxe/${MAC}/plan`)).json()).mode, 'flash')
  const waiting = ask(`/machines/${MAC}/flash`, asJson({ wait: 60 }))
  // A machine comes for its plan: an end of a flash that never began would not count.
  const flash = async () => {
    await server.request(`/pxe/${MAC}/plan`)
    await server.request(`/pxe/${MAC}/done`, { method: 'POST' })
  }
  const done = setInterval(() => void flash(), 20)
  try {
    assert.is((await (await waiting).json()).outcome, 'flashed')
  } finally {
    clearInterval(done)
  }
  assert.is((await ask(`/machines/${MAC}/flash`, asJson({ wait: -1 }))).status, 422)
  assert.is((await ask(`/machines/${MAC}/flash`, asJson({ boot_mode: 'x' }))).status, 422)
})

test('bulk operations answer row by row, and first say what they would do', async () => {
  await using server = await createTestServer({ catalog: [entryOf(REF)] })
  const ask = await server.operator()
  const other = '52:54:00:00:00:02'
  await ask(`/machines/${MAC}`, asJson(FLASH, 'PUT'))
  await ask(`/machines/${other}`, asJson({}, 'PUT'))
  const macs = [MAC, other, '52-54-00-00-00-03']
  const wish = { action: 'flash', macs, dry_run: true }
  const dry = await (await ask('/machines/bulk', asJson(wish))).json()
  assert.equal(
    dry.results.map(({ result }: { result: string }) => result),
    ['done', 'refused', 'missing'],
  )
  assert.type(dry.results[1].reason, 'string')
  assert.equal(await server.journal.list({ kind: 'machine.flash', limit: 9 }), [])
  const {
    results: _,
    batch,
    ...sum
  } = await (await ask('/machines/bulk', asJson({ ...wish, dry_run: false }))).json()
  assert.equal(sum, { dry_run: false, done: 1, refused: 2 })
  assert.match(batch, /^[0-9a-f]{12}$/)
  assert.is((await server.journal.list({ kind: 'machine.flash', limit: 9 })).length, 1)
  const all = await (await ask('/machines/bulk', asJson({ action: 'delete', q: ':' }))).json()
  assert.is(all.done, 2)
  assert.equal(await (await ask('/machines')).json(), [])
  for (const bad of [
    { action: 'explode', macs },
    { action: 'flash' },
    { action: 'flash', macs, q: '' },
    { action: 'flash', macs: ['x'] },
    { action: 'constructor', macs },
    { action: 'mode', macs, parameters: { boot_mode: 'x' } },
  ]) {
    assert.is((await ask('/machines/bulk', asJson(bad))).status, 422, JSON.stringify(bad))
  }
  const bad = { action: 'label', macs, parameters: { add: ['-'] } }
  const { detail } = await (await ask('/machines/bulk', asJson(bad))).json()
  assert.equal(detail[0].loc, ['body', 'parameters', 'add', 0])
})

test('an empty variable in a search does not mean the whole fleet', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  await ask(`/machines/${MAC}`, asJson({}, 'PUT'))
  const many = Array.from({ length: 33 }, (_, at) => `-mac:${at}`).join(' ')
  for (const [q, term] of [
    ['label:', 'label:'],
    ['state:armed -label:""', '-label:""'],
    ['""', '""'],
    [many, '-mac:32'],
  ] as const) {
    for (const action of ['delete', 'lock']) {
      const answer = await ask('/machines/bulk', asJson({ action, q }))
      assert.is(answer.status, 422, q)
      assert.match((await answer.json()).detail, `q: ${term} `)
    }
  }
  const { is_locked } = await (await ask(`/machines/${MAC}`)).json()
  assert.is.not(is_locked, true)
})

test('nobody deletes the whole fleet by a search for nothing', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  await ask(`/machines/${MAC}`, asJson({}, 'PUT'))
  for (const q of ['', '  ']) {
    for (const dry_run of [true, false]) {
      const answer = await ask('/machines/bulk', asJson({ action: 'delete', q, dry_run }))
      assert.is(answer.status, 422)
      const { detail } = await answer.json()
      assert.match(detail, /Name them in macs, or search for something/)
    }
  }
  assert.is(await server.machines.count(), 1)
  assert.is((await ask('/machines/bulk', asJson({ action: 'lock', q: '' }))).status, 200)
  assert.is((await ask('/machines/bulk', asJson({ action: 'delete', macs: [MAC] }))).status, 200)
  assert.is(await server.machines.count(), 0)
})

/** What is there before, for the routes that look at conditions themselves. */
const THERE: Readonly<Record<string, object>> = {
  '/machines/:mac': {},
  '/channels/:name': { bty_image_ref: REF },
  '/first-boot/:name': {},
  '/boot-entries/:name': {
    processor: 'x86_64',
    kernel: { name: 'linux', sha256: sha256('a kernel') },
  },
}
const CONDITIONS = [
  ['if-match', '"wrong"'],
  ['if-none-match', '*'],
] as const

const fill = (path: string) => path.replace(/:(?!mac)\w+/g, 'x').replace(':mac', MAC)

interface Asked {
  readonly routes: readonly Route[]
  readonly ask: (path: string, init?: RequestInit) => Promise<Response>
}

async function listOthers({ routes, ask }: Asked): Promise<readonly string[]> {
  const there = Object.entries(THERE).filter(([path]) => routes.some((each) => each.path === path))
  const read = () => Promise.all(there.map(async ([path]) => (await ask(fill(path))).text()))
  for (const [path, body] of there) {
    assert.is((await ask(fill(path), asJson(body, 'PUT'))).status, 200, path)
  }
  const before = await read()
  const others: string[] = []
  for (const { method, path } of routes) {
    if (method !== 'PUT' && method !== 'DELETE') continue
    for (const [name, value] of CONDITIONS) {
      const sent = method === 'PUT' ? asJson(THERE[path] ?? {}, method) : { method }
      const headers = new Headers(sent.headers)
      headers.set(name, value)
      const { status } = await ask(fill(path), { ...sent, headers })
      if (status !== 412) others.push(`${method} ${path} with ${name}: ${status}`)
      assert.equal(await read(), before, `${method} ${path} with ${name}`)
    }
  }
  return others
}

test('by the routes of both lines and of the cache', async () => {
  await using server = await createTestServer({ catalog: [entryOf(REF)] })
  await server.putBootFile('linux', 'a kernel')
  await using earlier = await createEarlierServer()
  await using folder = await makeFolder()
  await using cache = await serveCache(folder.path)
  const asked: readonly Asked[] = [
    { routes: server.routes, ask: await server.operator() },
    { routes: earlier.routes, ask: await earlier.operator() },
    {
      routes: cache.routes,
      ask: (path, init = {}) => {
        const headers = new Headers([...new Headers(init.headers), ...Object.entries(asOperator)])
        return fetch(`${cache.base}${path}`, { ...init, headers })
      },
    },
  ]
  const own = asked.flatMap(({ routes }) => routes.filter(({ doc }) => doc?.refuses?.includes(412)))
  assert.ok(own.length >= 7, `${own.length}`)
  for (const each of asked) assert.equal(await listOthers(each), [])
})

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
