/** The rows that both specifications have in the same words, against the servers of both lines. */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseSettings as parseCache, SETTINGS as CACHE } from '#cache/rules/settings.ts'
import { TRIO } from '#fleet/boot/rules/boot-set.ts'
import { listSettings, SECTIONS, type SettingsTable } from '#kit/config/rules/setting.ts'
import {
  parseSettings as parseCurrent,
  SETTINGS as CURRENT,
} from '#server/current/settings/rules/settings.ts'
import {
  parseSettings as parseEarlier,
  SETTINGS as EARLIER,
} from '#server/earlier/rules/settings.ts'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
import {
  askAs,
  type ClusterServer,
  startServer,
  until as untilWithin,
} from '#test/support/cluster/servers.ts'
import { LINES, type LineServer } from '#test/support/lines/both-lines.ts'
import { cookieOf, PASSWORD } from '#test/support/server/assembled.ts'
import { partName, sha256 } from '#test/support/server/boot-folder.ts'
import { readEvents } from '#test/support/server/event-reader.ts'
import { asJson } from '#test/support/server/server.ts'

const MAC = '52:54:00:12:34:56'
const post: RequestInit = { method: 'POST' }

for (const line of LINES) {
  const test = suite(`rows of both lines: ${line.name}`)
  const with_ = (work: (server: LineServer) => Promise<void>) => async () => {
    await using server = await line.create()
    await work(server)
  }

  test(
    'GET /healthz and GET /version',
    with_(async ({ request }) => {
      assert.equal(await (await request('/healthz')).json(), { status: 'ok' })
      assert.equal(await (await request('/version')).json(), { version: '1.2.3' })
    }),
  )

  test(
    'GET /pxe-bootstrap.ipxe: one chain command, to the host that was asked',
    with_(async ({ request }) => {
      const answer = await request('/pxe-bootstrap.ipxe', { headers: { host: '10.0.0.7:8080' } })
      assert.match(answer.headers.get('content-type') ?? '', /^text\/plain/)
      const chains = (await answer.text()).match(/^chain .*$/gm) ?? []
      assert.is(chains.length, 1)
      assert.match(chains[0] ?? '', /^chain http:\/\/10\.0\.0\.7:8080\/pxe\/\$\{net0\/mac:hexhyp\}/)
    }),
  )

  test(
    'GET /pxe/{mac}: an unknown machine is recorded, and seen again',
    with_(async ({ request, operator }) => {
      const ask = await operator()
      const script = await request(`/pxe/${MAC.toUpperCase().replaceAll(':', '-')}`)
      assert.match(script.headers.get('content-type') ?? '', /^text\/plain/)
      assert.match(await script.text(), /^#!ipxe\n/)
      const first = await (await ask(`/machines/${MAC}`)).json()
      assert.is(first.mac, MAC)
      assert.ok(first.discovered_at)
      await request(`/pxe/${MAC}`)
      const again = await (await ask(`/machines/${MAC}`)).json()
      assert.is(again.discovered_at, first.discovered_at)
      assert.ok(again.last_seen_at >= first.last_seen_at)
      assert.is((await request('/pxe/not-a-mac')).status, 400)
    }),
  )

  test(
    'POST /pxe/{mac}/done: last_flashed_at is set; nothing is made of an unknown machine',
    with_(async ({ request, operator, machines }) => {
      const ask = await operator()
      assert.is((await request(`/pxe/${MAC}/done`, post)).status, 404)
      assert.is(await machines.count(), 0)
      await request(`/pxe/${MAC}`)
      assert.is((await request(`/pxe/${MAC}/done`, post)).status, 204)
      assert.ok((await (await ask(`/machines/${MAC}`)).json()).last_flashed_at)
    }),
  )

  test(
    'PUT, GET and DELETE /machines/{mac}',
    with_(async ({ operator }) => {
      const ask = await operator()
      assert.is((await ask(`/machines/${MAC}`)).status, 404)
      const made = await ask(`/machines/${MAC}`, asJson(line.upsert, 'PUT'))
      assert.is(made.status, 200)
      const machine = await made.json()
      assert.equal(await (await ask(`/machines/${MAC}`)).json(), machine)
      assert.equal(await (await ask('/machines')).json(), [machine])
      assert.is(machine.discovered_at, null)
      const refused = await ask(`/machines/${MAC}`, asJson(line.wrong, 'PUT'))
      assert.is(refused.status, 422)
      const [field] = (await refused.json()).detail
      assert.equal(field.loc, ['body', ...Object.keys(line.wrong)])
      assert.is((await ask('/machines/zz', asJson(line.upsert, 'PUT'))).status, 400)
      assert.is((await ask(`/machines/${MAC}`, { method: 'DELETE' })).status, 204)
      assert.is((await ask(`/machines/${MAC}`, { method: 'DELETE' })).status, 404)
    }),
  )

  test(
    'protected routes: 401 as JSON, pages lead to the login',
    with_(async ({ request, machines }) => {
      for (const [method, path] of [
        ['GET', '/machines'],
        ['GET', `/machines/${MAC}`],
        ['PUT', `/machines/${MAC}`],
        ['DELETE', `/machines/${MAC}`],
        ['PUT', '/boot/x'],
        ['GET', '/events/machines'],
      ] as const) {
        const answer = await request(path, { method })
        assert.is(answer.status, 401, `${method} ${path}`)
        assert.equal(await answer.json(), { detail: 'login required' })
      }
      const page = await request('/ui/dashboard')
      assert.is(page.status, 303)
      assert.match(page.headers.get('location') ?? '', /^\/ui\/login/)
      assert.is((await request('/ui')).headers.get('location'), '/ui/dashboard')
      assert.is(await machines.count(), 0)
    }),
  )

  test(
    'the session: its cookie, a wrong password, the end of it',
    with_(async ({ request }) => {
      const login = (password: string) =>
        request('/ui/login', { method: 'POST', body: new URLSearchParams({ password }) })
      const wrong = await login('wrong')
      assert.equal([wrong.status, cookieOf(wrong)], [401, ''])
      const right = await login(PASSWORD)
      const header = right.headers.getSetCookie().join()
      for (const part of ['flasher-token=', 'SameSite=Strict', 'HttpOnly', 'Max-Age=604800']) {
        assert.match(header.toLowerCase(), part.toLowerCase())
      }
      const headers = { cookie: cookieOf(right) }
      assert.is((await request('/machines', { headers })).status, 200)
      const out = await request('/ui/logout', { method: 'POST', headers })
      assert.match(out.headers.getSetCookie().join(), /flasher-token=;/)
      assert.is((await request('/machines', { headers })).status, 401)
      assert.is(
        (await request('/machines', { headers: { cookie: 'flasher-token=x' } })).status,
        401,
      )
    }),
  )

  test(
    'GET /boot/{name}: open, in parts, and never outside its folder',
    with_(async ({ request, operator, putBootFile }) => {
      await putBootFile('vmlinuz', '0123456789')
      const part = await request('/boot/vmlinuz', { headers: { range: 'bytes=1-3' } })
      assert.equal([part.status, await part.text()], [206, '123'])
      const head = await request('/boot/vmlinuz', { method: 'HEAD' })
      assert.equal([head.status, head.headers.get('content-length')], [200, '10'])
      assert.is((await request('/boot/none')).status, 404)
      assert.is((await request('/boot/%2e%2e%2fstate.db')).status, 400)
      const ask = await operator()
      assert.is((await ask('/boot/new', { method: 'PUT', body: 'bytes' })).status, 200)
      assert.is(await (await request('/boot/new')).text(), 'bytes')
    }),
  )

  test(
    'GET /events/machines: the table on connect, and after every change',
    with_(async ({ request, operator }) => {
      const ask = await operator()
      const answer = await ask('/events/machines')
      assert.match(answer.headers.get('content-type') ?? '', /^text\/event-stream/)
      const events = readEvents(answer)
      const row = MAC.replaceAll(':', '-')
      const isShown = ({ name, data }: { name: string; data: string }) =>
        name === 'machines-update' && (data.includes(MAC) || data.includes(row))
      assert.is((await events.next())?.name, 'machines-update')
      await request(`/pxe/${MAC}`)
      assert.ok(await events.until(isShown), 'discovery')
      await ask(`/machines/${MAC}`, { method: 'DELETE' })
      assert.ok(await events.until((event) => !isShown(event)), 'DELETE')
      await ask(`/machines/${MAC}`, asJson(line.upsert, 'PUT'))
      assert.ok(await events.until(isShown), 'PUT')
      await events.close()
    }),
  )

  test(
    'an InfiniBand card and a processor without a live system get the disk',
    with_(async ({ request, machines }) => {
      const port = '00-02-c9-03-00-29-26-df'
      const cards = [port, `80-00-02-08-fe-80-00-00-00-00-00-00-${port}`]
      for (const card of [
        ...cards,
        ...cards.map((each) => each.replaceAll('-', ':').toUpperCase()),
      ]) {
        for (const path of [`/pxe/${card}`, `/pxe/${card}?buildarch=x86_64`]) {
          const answer = await request(path)
          assert.is(answer.status, 200, path)
          assert.match(await answer.text(), /^#!ipxe\n[^]*sanboot .*\|\| exit\n$/)
        }
        assert.match(await (await request(`/pxe/${card}.grub`)).text(), 'chainloader')
      }
      assert.is(await machines.count(), 0)
      assert.is((await request(`/pxe/${cards[0]}-00`)).status, 400)
      for (const arch of ['riscv64', 'riscv32', 'arm32', 'loong64']) {
        const script = await (await request(`/pxe/${MAC}?buildarch=${arch}`)).text()
        assert.match(script, 'boots its own disk', arch)
        assert.not.match(script, /^kernel /m)
      }
    }),
  )

  test(
    'another site can send no form, and a bad Host gets no script',
    with_(async ({ request, operator, machines }) => {
      const ask = await operator()
      const put = asJson(line.upsert, 'PUT')
      const headers = { ...put.headers, origin: 'http://evil.test' }
      assert.is((await ask(`/machines/${MAC}`, { ...put, headers })).status, 403)
      for (const host of ['x y', 'x;reboot', 'evil@x', '${net0/mac}']) {
        assert.is((await request(`/pxe/${MAC}`, { headers: { host } })).status, 400, host)
      }
      assert.is(await machines.count(), 0)
    }),
  )

  test(
    'HEAD answers wherever GET does, but for plans',
    with_(async ({ routes, request, operator, putBootFile }) => {
      const ask = await operator()
      await request(`/pxe/${MAC}`)
      await putBootFile('vmlinuz', 'bytes')
      for (const { method, path, answersHead } of routes) {
        if (method !== 'GET' || answersHead === false) continue
        const target = path.replace(':mac', MAC).replace(':name', 'vmlinuz')
        const [head, got] = [await ask(target, { method: 'HEAD' }), await ask(target)]
        await got.body?.cancel()
        assert.is(head.status, got.status, path)
        assert.is(await head.text(), '', path)
      }
    }),
  )

  test(
    'the API document names every route that is no page, and schemas that are there',
    with_(async ({ routes, request }) => {
      const document = await (await request('/openapi.json')).json()
      for (const { method, path, doc } of routes) {
        if (doc === undefined) continue
        const entry = document.paths[path.replaceAll(/:(\w+)/g, '{$1}')]
        assert.is(entry?.[method.toLowerCase()]?.summary, doc.summary, `${method} ${path}`)
      }
      for (const [, name = ''] of JSON.stringify(document).matchAll(
        /#\/components\/schemas\/(\w+)/g,
      )) {
        assert.ok(document.components.schemas[name], name)
      }
    }),
  )

  test(
    'no body and no path makes any route fail',
    with_(async ({ routes, log, operator }) => {
      const ask = await operator()
      const names = fc.oneof(fc.constant(MAC), fc.string({ unit: 'binary', maxLength: 12 }))
      const bodies = fc.oneof(fc.json(), fc.string({ unit: 'binary' }))
      const rows = routes.filter(({ path }) => !/logout|\*\*|events\/machines/.test(path))
      await fc.assert(
        fc.asyncProperty(fc.constantFrom(...rows), names, bodies, async (route, name, body) => {
          const path = route.path.replaceAll(/:\w+/g, () => encodeURIComponent(name.toWellFormed()))
          const headers =
            route.takes === 'json' ? { 'content-type': 'application/json' } : undefined
          const init: RequestInit = {
            method: route.method,
            ...(route.method === 'GET' ? {} : { body, ...(headers && { headers }) }),
          }
          const answer = await ask(path, init)
          await answer.body?.cancel()
          assert.ok(answer.status < 500, `${route.method} ${path}: ${answer.status}`)
        }),
        { numRuns: 300 },
      )
      assert.equal(
        log.filter((text) => text.includes('a bug')),
        [],
      )
    }),
  )

  test.run()
}

const FIELDS_MAC = '52:54:00:ab:cd:ef'
const SPELLINGS = [
  FIELDS_MAC,
  FIELDS_MAC.toUpperCase(),
  FIELDS_MAC.replaceAll(':', '-'),
  '52-54-00-AB-cd-EF',
]
const HOUR = 3_600_000
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/
/** Says whether an event is about the last of the 100 machines below. */
const isLast = ({ data }: { data: string }) => /52[:-]54[:-]00[:-]00[:-]01[:-]63/.test(data)
const json = async (answer: Promise<Response>) => (await answer).json()

const logIn = async (server: LineServer) =>
  cookieOf(
    await server.request('/ui/login', {
      method: 'POST',
      body: new URLSearchParams({ password: PASSWORD }),
    }),
  )

for (const line of LINES) {
  const test = suite(`fields of both lines: ${line.name}`)

  test('"mac": any case, with : or -, is one machine, shown in lower case with colons', async () => {
    await using server = await line.create()
    const ask = await server.operator()
    for (const spelled of SPELLINGS) {
      const put = await json(ask(`/machines/${spelled}`, asJson(line.upsert, 'PUT')))
      assert.is(put.mac, FIELDS_MAC)
      assert.is((await json(ask(`/machines/${spelled}`))).mac, FIELDS_MAC)
      await server.request(`/pxe/${spelled}`)
    }
    assert.is(await server.machines.count(), 1)
    assert.is((await ask(`/machines/${SPELLINGS[3]}`, { method: 'DELETE' })).status, 204)
  })

  test('"Timestamps are ISO 8601 strings", or null where nothing has happened', async () => {
    await using server = await line.create()
    const ask = await server.operator()
    const path = `/machines/${FIELDS_MAC}`
    const made = await json(ask(path, asJson(line.upsert, 'PUT')))
    assert.equal([made.discovered_at, made.last_seen_at, made.last_flashed_at], [null, null, null])
    assert.match(made.created_at, ISO)
    assert.match(made.updated_at, ISO)
    await server.request(`/pxe/${FIELDS_MAC}`)
    await server.request(`/pxe/${FIELDS_MAC}/done`, post)
    const seen = await json(ask(path))
    for (const name of ['discovered_at', 'last_seen_at', 'last_flashed_at', 'updated_at']) {
      assert.match(seen[name], ISO, name)
    }
    assert.is(seen.created_at, made.created_at)
  })

  test('POST /pxe/{mac}/done leaves what the operator set; PUT replaces the fields', async () => {
    await using server = await line.create()
    const ask = await server.operator()
    const path = `/machines/${FIELDS_MAC}`
    await ask(path, asJson(line.upsert, 'PUT'))
    await server.request(`/pxe/${FIELDS_MAC}`)
    await server.request(`/pxe/${FIELDS_MAC}/done`, post)
    const done = await json(ask(path))
    for (const [name, value] of Object.entries(line.upsert)) assert.is(done[name], value, name)
    const again = await json(ask(path, asJson({}, 'PUT')))
    assert.is(again.last_flashed_at, done.last_flashed_at)
    const fresh = await json(ask('/machines/52:54:00:00:00:02', asJson({}, 'PUT')))
    for (const name of Object.keys(line.upsert)) assert.is(again[name], fresh[name], name)
  })

  test('"Open routes": no session is asked for', async () => {
    await using server = await line.create()
    await server.putBootFile('vmlinuz', 'kernel')
    for (const [path, status, init] of [
      ['/healthz', 200, {}],
      ['/version', 200, {}],
      [`/pxe/${FIELDS_MAC}`, 200, {}],
      [`/pxe/${FIELDS_MAC}/done`, 204, post],
      ['/pxe-bootstrap.ipxe', 200, {}],
      ['/boot/vmlinuz', 200, {}],
      ['/ui/login', 200, {}],
    ] as const) {
      assert.is((await server.request(path, init)).status, status, path)
    }
  })

  test('"no external network address is contacted": pages load from this server alone', async () => {
    await using server = await line.create()
    const page = await server.request('/ui/login')
    const policy = page.headers.get('content-security-policy') ?? ''
    assert.match(policy, /default-src '(none|self)'/)
    assert.not.match(policy, /https?:|\*/)
  })

  test('the session: a flag in a signed cookie that slides for 7 days', async () => {
    const clock = { at: Date.parse('2026-11-22T12:00:00Z') }
    await using server = await line.create({ now: () => new Date(clock.at) })
    const first = await logIn(server)
    const [claims = ''] = first.slice('flasher-token='.length).split('.')
    assert.is(JSON.parse(Buffer.from(claims, 'base64url').toString()).bty_authed, true)
    const use = (cookie: string) => server.request('/machines', { headers: { cookie } })
    clock.at += 2 * HOUR
    const slid = cookieOf(await use(first))
    assert.ok(slid !== '' && slid !== first)
    clock.at += 7 * 24 * HOUR - HOUR
    assert.is((await use(first)).status, 401)
    assert.is((await use(slid)).status, 200)
    clock.at += 2 * HOUR
    assert.is((await use(slid)).status, 401)
  })

  test('a consumer that does not read holds up nobody, and recovers', async () => {
    await using server = await line.create()
    const ask = await server.operator()
    const asleep = await ask('/events/machines')
    const awake = readEvents(await ask('/events/machines'))
    for (let n = 0; n < 100; n += 1) {
      const mac = `52:54:00:00:01:${n.toString(16).padStart(2, '0')}`
      assert.is((await server.request(`/pxe/${mac}`)).status, 200)
    }
    assert.ok(await awake.until(isLast))
    await awake.close()
    const late = readEvents(asleep)
    assert.ok(await late.until(isLast))
    await late.close()
  })

  test.run()
}

const shared = suite('what both lines share')
const PROGRAMS = [
  ['flasher-web', CURRENT, parseCurrent],
  ['the earlier line', EARLIER, parseEarlier],
  ['flasher-cache', CACHE, parseCache],
] as const
const TABLES: readonly SettingsTable[] = [CURRENT, EARLIER, CACHE]

shared('every section of every program has its words', () => {
  const sections = new Set(TABLES.flatMap((table) => Object.keys(table)))
  assert.equal([...sections].toSorted(), Object.keys(SECTIONS).toSorted())
})

for (const [name, own, parse] of PROGRAMS) {
  shared(`${name} knows the sections that are not its own, and its own keys`, () => {
    const foreign = TABLES.flatMap(listSettings).filter(
      ({ section }) => !Object.hasOwn(own, section),
    )
    const values = Object.groupBy(foreign, ({ section }) => section)
    const text = Object.keys(values).map((section) => `[${section}]\n`)
    const layer = {
      path: '/etc/flasher/flasher.toml',
      text: text.join(''),
      values: Object.fromEntries(
        Object.entries(values).map(([section, rows = []]) => [
          section,
          Object.fromEntries(rows.map(({ key, row }) => [key, row.toToml(row.fallback)])),
        ]),
      ),
    }
    assert.ok(foreign.length > 0)
    assert.equal(parse({ env: {}, saved: {}, layers: [layer] }).problems, [])
    const misspelt = {
      path: '/a',
      text: '[admin]\npasword = 1\n',
      values: { admin: { pasword: 1 } },
    }
    assert.is(parse({ env: {}, saved: {}, layers: [misspelt] }).problems.length, 1)
  })
}

const postgres = lendDatabases(shared)
const KEY = { FLASHER_DATABASE_KEY: 'a key of at least thirty-two characters' }

/** A machine with much other work takes its time. */
const until = <T>(ask: () => Promise<T | null | false>) => untilWithin(ask, 60_000)

type Ask = Awaited<ReturnType<typeof askAs>>

/** As the page of live systems does: the list first, and the files are compared with it. */
async function upload(ask: Ask, version: string): Promise<void> {
  const parts = new Map(TRIO.map((part) => [partName(version, part), `${part} ${version}`]))
  const list = [...parts].map(([name, text]) => `${sha256(text)}  ${name}\n`).join('')
  for (const [name, body] of [[partName(version, 'sha256'), list], ...parts] as const) {
    const answer = await ask(`/boot/${name}`, { method: 'PUT', body })
    assert.is(answer.status, 200, await answer.text())
  }
}

const namesOf = ({ home }: ClusterServer) => readdir(home.at('state/boot'))
const hasSet = async (server: ClusterServer, version: string) => {
  const names = await namesOf(server)
  return TRIO.every((part) => names.includes(partName(version, part)))
}
const shows = async (ask: Ask, text: string) =>
  (await (await ask('/ui/netboot')).text()).includes(text)
const statusOf = async ({ home }: ClusterServer, url: string) =>
  (await home.run(['database', 'status'], { FLASHER_DATABASE_URL: url, ...KEY })).stdout

/** A server tells the others what it has with its next sign of life. */
const awaitStatus = (server: ClusterServer, url: string, wanted: RegExp) =>
  until(async () => {
    const status = await statusOf(server, url)
    return wanted.test(status) && status
  })

shared(
  'a set that was uploaded by way of any server is on all of them, and is what the next leader gives out',
  async () => {
    const url = postgres.urlOf(await postgres.create())
    await using first = await startServer(url, KEY)
    await first.leads()
    await using second = await startServer(url, KEY)
    await second.standsBy()
    await upload(await askAs(second), '1.0.0')
    await until(() => hasSet(second, '1.0.0'))
    await second.process().saw('machines boot 1.0.0 (x86_64) here as well')
    const ask = await askAs(first)
    await until(() => shows(ask, 'All 2 servers have it'))
    assert.match(await (await ask('/ui/settings')).text(), /Live system/)
    const status = await awaitStatus(
      second,
      url,
      /has the netboot files[\s\S]*has the netboot files/,
    )
    assert.match(status, /Netboot +1\.0\.0 \(x86_64\); 4 files, \d+ B/)

    // Somebody overwrites a file there: machines get what the leader has, and it is mended.
    await writeFile(second.home.at(`state/boot/${partName('1.0.0', 'squashfs')}`), 'damaged')
    await until(async () => {
      const path = second.home.at(`state/boot/${partName('1.0.0', 'squashfs')}`)
      return (await readFile(path, 'utf8')) === 'squashfs 1.0.0'
    })

    first.kill('SIGKILL')
    await second.leads()
    const asSecond = await askAs(second)
    assert.match(await (await asSecond('/ui/netboot')).text(), /1\.0\.0/)
    await upload(asSecond, '1.1.0')
    // Its files were deleted, and it was away when the set was changed.
    await rm(first.home.at('state/boot'), { recursive: true })
    first.restart()
    await first.standsBy()
    await until(() => hasSet(first, '1.1.0'))
    await first.process().saw('machines boot 1.1.0 (x86_64) here as well')
  },
)

shared(
  'who leads and has lost its files, and no other server has them, says so and keeps what it has',
  async () => {
    const url = postgres.urlOf(await postgres.create())
    await using first = await startServer(url, KEY)
    await first.leads()
    const ask = await askAs(first)
    await upload(ask, '1.0.0')
    await until(() => shows(ask, 'This server has it'))
    first.kill('SIGTERM')
    await first.process().ended
    await rm(first.home.at(`state/boot/${partName('1.0.0', 'initrd')}`))
    first.restart()
    await first.leads()
    await first.process().saw('no connected server has all files of 1.0.0 (x86_64)')
    await awaitStatus(first, url, /lacks netboot files: no connected server/)
    const again = await askAs(first)
    await upload(again, '1.2.0')
    await until(() => shows(again, 'This server has it'))
  },
)

shared.run()
