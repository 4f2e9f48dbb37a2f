/** Rows of the earlier specification over the wire: fields, values, statuses, what each trigger changes. */
import { readdir, readFile, utimes } from 'node:fs/promises'
import { request as sendRaw } from 'node:http'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { OUTSIDE } from '#test/support/people/canaries.ts'
import { createCurrentServer } from '#test/support/people/current-server.ts'
import { EXPECTED } from '#test/support/people/expected-routes.ts'
import { askEverything, openPeople, openPrograms } from '#test/support/people/rights-matrix.ts'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'
import { readEvents } from '#test/support/server/event-reader.ts'
import { asJson, listen } from '#test/support/server/server.ts'

const test = suite('the earlier line: rows over the wire')
const MAC = '52:54:00:12:34:56'
const PATH = `/machines/${MAC}`
const post: RequestInit = { method: 'POST' }

/** "Machine", in the order of the table, as the first contact makes it at `time`. */
const found = (time: string) => ({
  mac: MAC,
  image: null,
  provisioning_mode: 'none',
  hostname: null,
  cijoe_workflow_ref: null,
  last_known_good: null,
  discovered_at: time,
  last_seen_at: time,
  last_seen_ip: '127.0.0.1',
  boot_policy: 'tui',
  last_flashed_at: null,
  last_workflow_run_at: null,
  last_workflow_status: null,
  last_workflow_output_path: null,
  created_at: time,
  updated_at: time,
})
/** "MachineUpsert", every field. */
const UPSERT = {
  image: 'debian.img.zst',
  provisioning_mode: 'cloud-init',
  hostname: 'box-1',
  cijoe_workflow_ref: '/srv/smoke.yaml',
  boot_policy: 'flash',
} as const

/** A server whose clock stands still until the test moves it by a minute. */
async function createTimed() {
  const clock = { at: Date.parse('2026-11-22T12:00:00.000Z') }
  const server = await createEarlierServer({ now: () => new Date(clock.at) })
  const ask = await server.operator()
  return {
    server,
    ask,
    time: () => new Date(clock.at).toISOString(),
    pass: () => void (clock.at += 60_000),
    read: async () => await (await ask(PATH)).json(),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** Asks for the script from an address of this host. */
const contact = (url: string, localAddress: string) =>
  new Promise<void>((resolve, reject) => {
    sendRaw(`${url}/pxe/${MAC}`, { localAddress }, (answer) => {
      answer.resume().once('end', () => resolve())
    })
      .once('error', reject)
      .end()
  })

test('a record from its first contact to its end: what each trigger sets, and nothing else', async () => {
  await using timed = await createTimed()
  const { server, ask, time, pass, read } = timed
  await using open = await listen(server)
  await contact(open.url, '127.0.0.1')
  const first = found(time())
  assert.is(JSON.stringify(await read()), JSON.stringify(first))

  pass()
  await contact(open.url, '127.0.0.2')
  const seen = { ...first, last_seen_at: time(), last_seen_ip: '127.0.0.2' }
  assert.equal(await read(), seen)

  pass()
  const put = await ask(PATH, asJson(UPSERT, 'PUT'))
  const bound = { ...seen, ...UPSERT, updated_at: time() }
  assert.equal([put.status, await put.json()], [200, bound])
  assert.equal(await read(), bound)

  pass()
  assert.is((await fetch(`${open.url}/pxe/${MAC}/done`, post)).status, 204)
  const heard = { last_seen_at: time(), last_seen_ip: '127.0.0.1', last_flashed_at: time() }
  const flashed = { ...bound, ...heard, updated_at: time() }
  assert.equal(await read(), flashed)

  pass()
  // Left out: null, none and local again; what happened to the machine stays.
  const { image, hostname, cijoe_workflow_ref, provisioning_mode } = first
  const nulls = { image, hostname, cijoe_workflow_ref, provisioning_mode, boot_policy: 'local' }
  const bare = await ask(PATH, asJson({}, 'PUT'))
  assert.equal(await bare.json(), { ...flashed, ...nulls, updated_at: time() })

  assert.is((await ask(PATH, { method: 'DELETE' })).status, 204)
  for (const method of ['GET', 'DELETE']) assert.is((await ask(PATH, { method })).status, 404)
})

test('a record made by PUT alone was never discovered, seen or flashed', async () => {
  await using timed = await createTimed()
  const { ask, time } = timed
  const made = await ask(PATH, asJson({}, 'PUT'))
  const never = { discovered_at: null, last_seen_at: null, last_seen_ip: null }
  const expected = { ...found(time()), ...never, boot_policy: 'local' }
  assert.equal([made.status, await made.json()], [200, expected])
  assert.equal(await (await ask('/machines')).json(), [expected])
})

test('each mode and policy of the tables is taken, any other is 422', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const rows = {
    provisioning_mode: ['none', 'cloud-init', 'cijoe', 'cijoe-online'],
    boot_policy: ['local', 'flash', 'tui'],
  }
  for (const [field, values] of Object.entries(rows)) {
    for (const value of values) {
      const answer = await ask(PATH, asJson({ [field]: value }, 'PUT'))
      assert.equal([answer.status, (await answer.json())[field]], [200, value])
    }
    const other = await ask(PATH, asJson({ [field]: 'other' }, 'PUT'))
    assert.is(other.status, 422, field)
  }
})

const SCRIPTS = [
  [{ boot_policy: 'local' }, 'disk'],
  [{ boot_policy: 'local', image: 'a.img' }, 'disk'],
  [{ boot_policy: 'flash' }, 'disk'],
  [{ boot_policy: 'flash', image: 'a.img' }, 'flash'],
  [{ boot_policy: 'tui' }, 'tui'],
  [{}, 'disk'],
] as const

test('GET /pxe/{mac} as the policy says, by HTTP from the address that was asked', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  for (const [body, boots] of SCRIPTS) {
    await ask(PATH, asJson(body, 'PUT'))
    const answer = await server.request(`/pxe/${MAC}`)
    assert.match(answer.headers.get('content-type') ?? '', /^text\/plain/)
    const script = await answer.text()
    const words = /^kernel (.*) \|\| /m.exec(script)?.[1]?.split(' ') ?? []
    const said = JSON.stringify(body)
    if (boots === 'disk') {
      assert.equal([words, /^sanboot .*--drive 0x80/m.test(script)], [[], true], said)
      continue
    }
    const base = 'http://flasher.test:8080'
    assert.ok(words[0]?.startsWith(`${base}/boot/flasher-live-x86_64.vmlinuz`), said)
    const expected = [`flasher.server=${base}`, `flasher.mac=${MAC}`]
    if (boots === 'flash') {
      expected.push(`flasher.image_url=${base}/images/a.img`, 'flasher.provisioning=none')
    }
    for (const word of expected) assert.ok(words.includes(word), `${said}: ${word}`)
    assert.is(words.includes('flasher.mode=interactive'), boots === 'tui', said)
  }
})

test('GET /images: each recognised format, by its name', async () => {
  await using server = await createEarlierServer()
  for (const name of ['a.img', 'b.img.zst', 'c.qcow2']) await server.putImage(name, name)
  const listed = await (await server.request('/images')).json()
  const entry = (name: string, format: string) => ({
    name,
    path: join(server.images, name),
    format,
    size_bytes: name.length,
  })
  assert.equal(listed, [
    entry('a.img', 'img'),
    entry('b.img.zst', 'img.zst'),
    entry('c.qcow2', 'qcow2'),
  ])
})

const form = (fields: Readonly<Record<string, string>>) => ({
  method: 'POST',
  body: new URLSearchParams(fields),
})

test('/events/machines: the rows of the table on connect, and after each form post', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  const events = readEvents(await ask('/events/machines'))
  const first = await events.next()
  assert.is(first?.name, 'machines-update')
  assert.match(first?.data ?? '', /<tr id="row-52-54-00-12-34-56"/)
  await ask(`/ui/machines/${MAC}`, form({ hostname: 'renamed', boot_policy: 'local' }))
  assert.ok(await events.until(({ data }) => data.includes('renamed')))
  await ask(`/ui/machines/${MAC}/delete`, form({}))
  assert.ok(await events.until(({ data }) => !data.includes('row-52-54')))
  await events.close()
})

test('/ui/boot: of each file whether it is there, its size and its time; a form with latest', async () => {
  await using server = await createEarlierServer({
    env: { FLASHER_RELEASES_BASE_URL: 'http://site.test', FLASHER_BOOT_RELEASE_REPO: 'a/b' },
  })
  const name = 'flasher-live-x86_64.initrd'
  await server.putBootFile(name, 'x'.repeat(1234))
  const time = new Date('2026-11-20T08:00:00.000Z')
  await utimes(join(server.boot, name), time, time)
  const page = await (await (await server.operator())('/ui/boot')).text()
  const row = new RegExp(`<code>${name}</code>.*?</tr>`, 's').exec(page)?.[0] ?? ''
  assert.match(row, '>present<')
  assert.match(row, '1234')
  assert.match(row, '2026-11-20T08:00:00')
  assert.match(page, /action="\/ui\/boot\/fetch-release"[^]*name="tag"[^>]*value="latest"/)
})

test('/ui/machines/{mac}: what is known, and a form with each field of MachineUpsert', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  await ask(PATH, asJson(UPSERT, 'PUT'))
  const page = await (await ask(`/ui/machines/${MAC}`)).text()
  for (const name of Object.keys(UPSERT)) assert.match(page, `name="${name}"`)
  for (const shown of [MAC, 'debian.img.zst', 'box-1', '/srv/smoke.yaml']) {
    assert.match(page, shown)
  }
})

test('/ui/images: the catalog, by name, format and size', async () => {
  await using server = await createEarlierServer()
  await server.putImage('b.img.zst', 'x'.repeat(1234))
  const page = await (await (await server.operator())('/ui/images')).text()
  assert.match(page, 'b.img.zst')
  assert.match(page, '<data value="1234"')
})

test('/ui/settings: Authentication is words alone, beside PXE proxy-DHCP', async () => {
  await using server = await createEarlierServer()
  const page = await (await (await server.operator())('/ui/settings')).text()
  assert.match(page, 'passwd flasher')
  assert.not.match(page, 'type="password"')
  assert.match(page, 'id="authentication"')
  assert.match(page, 'id="pxe"')
})

test('the posts of pages change nothing without a session', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  await ask(PATH, asJson(UPSERT, 'PUT'))
  const before = await (await ask(PATH)).text()
  for (const path of [
    `machines/${MAC}`,
    `machines/${MAC}/delete`,
    'boot/fetch-release',
    'settings/pxe-activate',
  ]) {
    const answer = await server.request(`/ui/${path}`, post)
    assert.is(answer.status, 303, path)
    assert.match(answer.headers.get('location') ?? '', /^\/ui\/login/, path)
  }
  assert.is(await (await ask(PATH)).text(), before)
  const upload: RequestInit = { method: 'PUT', body: 'x' }
  for (const path of ['/boot/a', '/images/a.img']) {
    assert.is((await server.request(path, upload)).status, 401, path)
  }
})

/** Both servers sign with it: what tells them apart is whom they know. */
const env = { FLASHER_SERVER_SESSION_SECRET: 'a-key-that-both-of-these-servers-have' }

const put = (body: string) => ({ method: 'PUT', body })

async function openScene() {
  await using undo = new AsyncDisposableStack()
  const other = undo.use(await createCurrentServer(env))
  const server = undo.use(await createEarlierServer({ env }))
  const { state, request, routes, images, boot, dir } = server
  const operator = await server.operator()
  const fields = { hostname: 'canary-host', image: 'canary.img', provisioning_mode: 'cloud-init' }
  for (const [path, init] of [
    [`/machines/${OUTSIDE}`, asJson(fields, 'PUT')],
    [`/machines/${OUTSIDE}/provision/user-data`, put('#cloud-config\ncanary: canary-data')],
    ['/images/canary', put('canary-image')],
    ['/boot/canary', put('canary-boot')],
  ] as const) {
    assert.ok((await operator(path, init)).ok, path)
  }
  const provision = join(dir, 'state/provision')
  const snapshot = async () => [
    server.machines.peekAll().map((machine) => ({ ...machine, last_seen_at: null })),
    (await state.tokens.list()).map((token) => ({ ...token, last_used_at: null })),
    state.runs.list({ limit: 100 }),
    ...(await Promise.all([images, boot, provision].map(readAll))),
  ]
  const strangers = (await openPeople(other, request))
    .filter(({ scopes }) => scopes?.includes('admin'))
    .map((one) => ({ ...one, scopes: null }))
  const held = undo.move()
  return {
    routes,
    askers: [...(await openPrograms(state.tokens, request)), ...strangers],
    expected: EXPECTED.server,
    outside: { macs: [OUTSIDE], ids: [['', ['1']]] },
    snapshot,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  } as const
}

async function readAll(folder: string) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name))
  return await Promise.all(files.map(async (path) => [path, await readFile(path, 'utf8')]))
}

test('a program does what its scope says, and people of a server with the same key are nobody', async () => {
  await using scene = await openScene()
  const { wrong, asked } = await askEverything(scene, null)
  assert.equal(wrong, [])
  assert.ok(asked > 500, `${asked}`)
})

test.run()
