/** Passwords and tokens that are guessed at the cache: slowed and logged, at the page and as bearers. */
import { copyFileSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseServerLink } from '#cache/rules/image-list.ts'
import { MAC, openCaptureLab, secretOf, SOURCE } from '#test/support/capture/uploads.ts'
import {
  addPerson,
  createCurrentServer,
  PERSON_PASSWORD,
} from '#test/support/people/current-server.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { EXPECTED, listUnmatched } from '#test/support/people/expected-routes.ts'
import { type Ask, askEverything, askWith, openPeople } from '#test/support/people/rights-matrix.ts'
import { PASSWORD as SERVER_PASSWORD } from '#test/support/server/assembled.ts'
import { login } from '#test/support/server/flasher-web.ts'
import {
  makeFolder,
  PASSWORD,
  QUIET,
  serveCache,
  startCache,
  TOKEN,
} from '#test/support/server/image-cache.ts'

const test = suite('guesses at the cache')
const CHOSEN = 'of-the-lab'

async function pin(base: string, token: string) {
  const answer = await fetch(`${base}/pins`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ holder: 'test', refs: [] }),
  })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

const logIn = (base: string, password: string) =>
  fetch(`${base}/ui/login`, {
    method: 'POST',
    body: new URLSearchParams({ password }),
    redirect: 'manual',
  })

/** Its clock stands still unless it is set forward. */
async function open() {
  const folder = await makeFolder()
  const clock = { now: 1_800_000_000_000 }
  const said: string[] = []
  const served = await serveCache(folder.path, {
    now: () => new Date(clock.now),
    log: { ...QUIET, warn: (line) => void said.push(line) },
    chosen: CHOSEN,
  })
  return {
    clock,
    said,
    pin: (token: string) => pin(served.base, token),
    logIn: (password: string) => logIn(served.base, password),
    async [Symbol.asyncDispose]() {
      await served[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}

test('guessed bearers wait, those that are right among them', async () => {
  await using site = await open()
  assert.is((await site.pin(CHOSEN)).status, 204)
  for (let n = 0; n < 4; n++) assert.is((await site.pin(`guess-${n}`)).status, 401)
  const slowed = await site.pin(CHOSEN)
  assert.equal([slowed.status, slowed.headers.get('retry-after')], [429, '1'])
  assert.match(slowed.text, 'too many wrong tokens from this address')
  assert.is((await site.logIn(PASSWORD)).status, 429, 'the page is no way around it')
  assert.is((await site.pin(TOKEN)).status, 204, 'its own token cannot be guessed')
  site.clock.now += 1000
  assert.is((await site.pin('guess')).status, 401)
  assert.is((await site.pin('guess')).headers.get('retry-after'), '2')
  site.clock.now += 2000
  assert.is((await site.pin(CHOSEN)).status, 204)
  assert.equal(site.said, Array(5).fill('Wrong token (127.0.0.1)'))
})

test('wrong passwords at the page are logged, and slow bearers as well', async () => {
  await using site = await open()
  for (let n = 0; n < 4; n++) assert.is((await site.logIn('letmein')).status, 401)
  assert.is((await site.pin(CHOSEN)).status, 429)
  assert.equal(site.said, Array(4).fill('Failed login: wrong password (127.0.0.1)'))
})

test('of hundreds of guesses at once the program looks at a handful, and logs those', async () => {
  await using folder = await makeFolder()
  await using program = await startCache(join(folder.path, 'state'), {
    FLASHER_CACHE_TOKEN: CHOSEN,
    FLASHER_ADMIN_PASSWORD: 'correct-horse',
  })
  assert.is((await pin(program.base, CHOSEN)).status, 204)
  assert.is((await pin(program.base, 'correct-horse')).status, 204)
  const guesses = Array.from({ length: 500 }, (_, n) => pin(program.base, `guess-${n}`))
  const statuses = (await Promise.all(guesses)).map(({ status }) => status)
  const looked = statuses.filter((status) => status === 401).length
  assert.ok(looked >= 4 && looked <= 12, `${looked} were looked at`)
  assert.is(statuses.filter((status) => status === 429).length, 500 - looked)
  assert.is(program.said().match(/Wrong token \(127\.0\.0\.1\)/g)?.length, looked)
  assert.not.match(program.said(), 'guess-')
  assert.is((await pin(program.base, program.token)).status, 204)
})

/** `shares`: the state directory of the server, too; else its key alone. */
async function openScene(shares: boolean) {
  await using undo = new AsyncDisposableStack()
  const server = undo.use(await createCurrentServer())
  const other = undo.use(await createCurrentServer())
  const lab = undo.use(
    await openCaptureLab({
      ...(shares && { beside: join(server.dir, 'state.db') }),
      prepare(folder) {
        mkdirSync(dirname(secretOf(folder)), { recursive: true })
        copyFileSync(join(server.dir, 'session-secret'), secretOf(folder))
      },
    }),
  )
  const { base, cache, routes } = lab
  const request: Ask = (path, init) => fetch(`${base}${path}`, { redirect: 'manual', ...init })
  const people = (await openPeople(server, request)).map((one) =>
    // A token of the server is none of the cache.
    one.isToken ? { ...one, scopes: null, isScoped: false } : one,
  )
  const { cookie: foreign } = await other.logIn({ password: SERVER_PASSWORD })
  await addPerson(server, 'lea', 'administrate')
  const { cookie } = await server.logIn({ username: 'lea', password: PERSON_PASSWORD })
  await server.state.peopleStore.remove(server.state.peopleStore.findByName('lea')?.id ?? '')
  const key = askWith(request, 'authorization', `Bearer ${TOKEN}`)
  const one = { isToken: false, isScoped: false, scopes: null } as const
  const wrong = `Bearer ${lab.sign('canary.img.zst')}`
  await cache.add({ src: 'https://images.invalid/debian-13.img.zst' })
  const token = lab.sign('canary-outside.img.zst')
  const source = { ...SOURCE, hostname: 'canary-host' }
  const begun = await lab.machine(token).begin('canary-outside.img.zst', source)
  const upload = { name: 'other.img', sha256: 'a'.repeat(64), size_bytes: 9 }
  const sent = await lab.operator.post('/uploads', upload)
  const [capture = '', uploaded = ''] = [begun, sent].map(({ body }) => String(body['id']))
  const held = undo.move()
  return {
    routes,
    askers: [
      { ...one, name: 'nobody', ask: request },
      { ...one, name: 'a wrong key', ask: askWith(request, 'authorization', wrong) },
      { ...one, name: 'its key', isToken: true, scopes: ['admin'], ask: key },
      ...people,
      { ...one, name: 'of another server', ask: askWith(request, 'cookie', foreign) },
      // Who has the key alone learns nothing of a removal, and ends as the session says.
      ...(shares
        ? [{ ...one, name: 'who was removed', ask: askWith(request, 'cookie', cookie) }]
        : []),
    ],
    expected: EXPECTED.cache,
    outside: {
      macs: [MAC],
      ids: [
        ['/uploads/', [uploaded]],
        ['', [capture]],
      ],
      fields: { id: capture },
    },
    snapshot: async () => [cache.rows(), cache.captures.list(), cache.uploads.list()],
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  } as const
}

for (const [what, shares] of [
  ['key', false],
  ['key and its state', true],
] as const) {
  test(`with the ${what} of a server: people do what their role says, and see nothing outside`, async () => {
    await using scene = await openScene(shares)
    assert.equal(listUnmatched(EXPECTED.cache, scene.routes), [])
    const { wrong, asked } = await askEverything(scene, null)
    assert.equal(wrong, [])
    assert.ok(asked > 400, `${asked}`)
  })
}

test('only an address on the host of the cache itself is linked to', () => {
  const own = 'lab.example:8081'
  const rows = [
    ['http://lab.example:8080', 'http://lab.example:8080'],
    ['https://LAB.example/', 'https://lab.example'],
    ['http://evil.example:8080', null],
    ['http://lab.example.evil.example', null],
    ['http://lab.example@evil.example', null],
    ['http://user@lab.example', null],
    ['http://lab.example/path', null],
    ['http://lab.example?x', null],
    ['javascript:alert(1)//lab.example', null],
    ['ftp://lab.example', null],
    ['//lab.example', null],
    ['', null],
    [`http://lab.example:8080${'/'.repeat(400)}`, null],
  ] as const
  for (const [text, expected] of rows) assert.is(parseServerLink(text, own), expected, text)
  assert.is(parseServerLink('http://[::1]:8080', '[::1]:8081'), 'http://[::1]:8080')
})

async function visit(base: string, path: string, more = '') {
  const { cookie } = await login(base, PASSWORD)
  const headers = { cookie: [cookie, more].filter(Boolean).join('; ') }
  return fetch(`${base}${path}`, { headers, redirect: 'manual' })
}

test('a link is remembered, a foreign one ignored, and the setting counts more', async () => {
  await using folder = await makeFolder()
  {
    await using served = await serveCache(folder.path)
    const server = 'http://127.0.0.1:8080'
    const led = await visit(served.base, `/ui/dashboard?server=${encodeURIComponent(server)}`)
    assert.equal([led.status, led.headers.get('location')], [303, '/ui/dashboard'])
    const kept = led.headers.getSetCookie().find((each) => each.startsWith('flasher-server='))
    assert.match(kept ?? '', /; HttpOnly; SameSite=Strict$/)
    const page = await (await visit(served.base, '/ui/dashboard', kept?.split(';')[0])).text()
    assert.match(page, `href="${server}/ui/cache/back?to=%2Fui%2Fmachines"`)

    const evil = encodeURIComponent('http://evil.example')
    const ignored = await visit(
      served.base,
      `/ui/dashboard?server=${evil}`,
      `flasher-server=${evil}`,
    )
    assert.is(ignored.status, 200)
    // What leads back to this page has its address.
    assert.not.match(await ignored.text(), /href="(?!\/)[^"]*evil/)
  }
  await using served = await serveCache(folder.path, { serverUrl: 'https://flasher.example/lab/' })
  const page = await (await visit(served.base, '/ui/dashboard')).text()
  assert.match(page, 'href="https://flasher.example/lab/ui/cache/back?to=%2Fui%2Fdashboard"')
})

test('a server beside is found and asked what the side bar shows; where none answers, the cache has its own', async () => {
  await using folder = await makeFolder()
  const said = {
    open: ['/ui/dashboard', '/ui/machines', '/ui/cache', '/ui/events'],
    alarms: 3,
    batches: 2,
  }
  const server = await startHostileServer((_, response) => response.end(JSON.stringify(said)))
  const portBeside = Number(new URL(server.origin).port)
  await using served = await serveCache(folder.path, { portBeside })
  const answer = await visit(served.base, '/ui/dashboard', 'other=secret')
  const page = await answer.text()
  assert.match(page, `href="${server.origin}/ui/cache/back?to=%2Fui%2Fmachines"`)
  assert.match(page, /title="Events that need attention"\s*>3</)
  assert.not.match(page, '>Settings<')
  assert.match(answer.headers.get('set-cookie') ?? '', 'flasher-server=')
  const [asked] = server.seen
  assert.equal([asked?.url, /other/.test(asked?.headers.cookie ?? '')], ['/ui/cache/frame', false])
  const way = await (await visit(served.base, '/ui/find?q=box%201')).text()
  assert.match(way, `url=${server.origin}/ui/find?q=box+1`)
  await server[Symbol.asyncDispose]()
  const alone = await (await visit(served.base, '/ui/dashboard')).text()
  assert.not.match(alone, '/ui/cache/back')
  assert.match(alone, '<span>Images</span>')
  const found = await visit(served.base, '/ui/find?q=box')
  assert.is(found.headers.get('location'), '/ui/dashboard?q=box')
})

test.run()
