import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import { makeBytes } from '#test/support/collect.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { findPort } from '#test/support/http/ports.ts'
import { createServerHome, login, passwordIn } from '#test/support/server/flasher-web.ts'
import {
  type CacheProcess,
  makeFolder,
  startCache,
  until,
} from '#test/support/server/image-cache.ts'

const test = suite('flasher-web and the images that its machines are bound to')

const PASSWORD = 'correct horse battery'
const TOKEN = 'a-token-of-the-cache-and-its-server'
const MAC = 'aa:bb:cc:dd:ee:01'

/** `/3/x.img` holds 100,000 bytes. */
const startOrigin = () =>
  startHostileServer((request, response) =>
    sendFile(makeBytes(100_000, Number(request.url?.split('/')[1])), request, response),
  )

const refText = (src: string) => {
  const ref = refOf(src)
  return ref.ok ? ref.value : ''
}

/** Asks the cache with the token of a program that may change what is held. */
const askCache =
  ({ base }: CacheProcess) =>
  (method: string, path: string, body?: object) =>
    fetch(`${base}${path}`, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })

async function listEntries(
  cache: Pick<CacheProcess, 'base'>,
): Promise<Map<string, Record<string, unknown>>> {
  const { entries } = await (await fetch(`${cache.base}/catalog?all`)).json()
  return new Map(entries.map((entry: { name: string }) => [entry.name, entry]))
}

async function bring(cache: CacheProcess, name: string, src: string) {
  const ask = askCache(cache)
  assert.is((await ask('POST', '/catalog/entries', { name, src })).status, 201)
  assert.is((await ask('POST', `/catalog/entries/${name}/download`)).status, 202)
  await until(async () => (await listEntries(cache)).get(name)?.['state'] === 'ready')
}

async function bind(url: string, image: string | null) {
  const answer = await fetch(`${url}/machines/${MAC}`, {
    method: 'PUT',
    headers: { cookie: await cookieOf(url), 'content-type': 'application/json' },
    body: JSON.stringify({ bty_image_ref: image }),
  })
  assert.is(answer.status, 200, await answer.text())
}

async function cookieOf(url: string) {
  const answer = await fetch(`${url}/ui/login`, {
    method: 'POST',
    body: new URLSearchParams({ password: PASSWORD }),
    redirect: 'manual',
  })
  return answer.headers.getSetCookie()[0]?.split(';')[0] ?? ''
}

test('a bound image is neither removed nor makes room; one that is free again does', async () => {
  await using folder = await makeFolder()
  await using origin = await startOrigin()
  await using cache = await startCache(folder.path, {
    FLASHER_CACHE_TOKEN: TOKEN,
    FLASHER_CACHE_MAX_BYTES: '250000',
  })
  await using home = await createServerHome()
  await using server = await home.start([], {
    FLASHER_ADMIN_PASSWORD: PASSWORD,
    FLASHER_WITHCACHE_URL: cache.base,
    FLASHER_WITHCACHE_TOKEN: TOKEN,
  })
  const src = (seed: number) => `${origin.origin}/${seed}/x.img`
  const isPinned = async (name: string) => (await listEntries(cache)).get(name)?.['pinned'] === true

  await bring(cache, 'one', src(1))
  await bind(server.url, refText(src(1)))
  await until(() => isPinned('one'))
  const refused = await askCache(cache)('DELETE', '/catalog/entries/one')
  assert.is(refused.status, 409)
  assert.match(await refused.text(), /machines use one/)

  // It is the one that was not used for longest.
  await bring(cache, 'two', src(2))
  await bring(cache, 'three', src(3))
  const held = await listEntries(cache)
  assert.equal(
    ['one', 'two', 'three'].map((name) => held.get(name)?.['state']),
    ['ready', 'absent', 'ready'],
  )

  await bind(server.url, null)
  await until(async () => !(await isPinned('one')))
  assert.is((await askCache(cache)('DELETE', '/catalog/entries/one')).status, 204)
})

test('without the token no pins are sent; with it at once, without a restart', async () => {
  await using home = await createServerHome()
  const seen: string[] = []
  await using cache = await startHostileServer((request, response) => {
    if (request.url === '/pins') seen.push(String(request.headers.authorization))
    request.resume().on('end', () => response.writeHead(204).end())
  })
  const write = (token: string) =>
    home.write('flasher.toml', `[withcache]\nurl = "${cache.origin}"\n${token}`)
  await write('')
  const file = ['--config', home.at('flasher.toml')]
  await using server = await home.start(file, { FLASHER_ADMIN_PASSWORD: PASSWORD })
  await bind(server.url, 'a'.repeat(64))
  await write(`token = "${TOKEN}"\n`)
  server.child.kill('SIGHUP')
  await until(() => seen.length > 0)
  assert.equal(seen, [`Bearer ${TOKEN}`])
})

test('the cache that pnpm start runs gets the pins without a setting', async () => {
  await using home = await createServerHome()
  await mkdir(home.at('state/cache'), { recursive: true })
  await home.write('state/cache/x.img', 'an image\0')
  const port = await findPort()
  await using server = await home.start(
    [],
    { FLASHER_ADMIN_PASSWORD: PASSWORD, FLASHER_CACHE_PORT: String(port) },
    'start.ts',
  )
  await bind(server.url, refText('file:///x.img'))
  const base = `http://127.0.0.1:${port}`
  await until(async () => (await listEntries({ base })).get('x.img')?.['pinned'] === true)
})

const PAGE = 'ui/dashboard'
const SECRET = 'a-key-of-the-tests-0123456789'

const isIn = async (url: string, cookie: string) => {
  const answer = await fetch(new URL(PAGE, url), { headers: { cookie }, redirect: 'manual' })
  await answer.text()
  return answer.status === 200
}

async function logOut(url: string, cookie: string) {
  const init = { method: 'POST', headers: { cookie }, redirect: 'manual' } as const
  assert.is((await fetch(new URL('ui/logout', url), init)).status, 303)
}

/** The cache is asked just before, so that nothing it remembers of then may count. */
async function check(url: string, cacheUrl: string, password: string) {
  for (const [from, other] of [
    [url, cacheUrl],
    [cacheUrl, url],
  ] as const) {
    const { cookie } = await login(url, password)
    assert.equal([await isIn(url, cookie), await isIn(cacheUrl, cookie)], [true, true])
    await logOut(from, cookie)
    assert.equal([await isIn(other, cookie), await isIn(from, cookie)], [false, false])
  }
}

for (const [title, env] of [
  ['the cache beside it', {}],
  ['the cache beside it, with a configured key', { FLASHER_SERVER_SESSION_SECRET: SECRET }],
] as const) {
  test(title, async () => {
    await using home = await createServerHome()
    const port = String(await findPort())
    await using server = await home.start([], { ...env, FLASHER_CACHE_PORT: port }, 'start.ts')
    const cacheUrl = /^Images: +(http:\S+)ui, /m.exec(server.stdout())?.[1] ?? ''
    await check(server.url, cacheUrl, passwordIn(server.stdout()))
    await server[Symbol.asyncDispose]()
    assert.not.match((await server.ended).stderr, 'no such setting')
  })
}

test('a cache with a state of its own, and the same key', async () => {
  await using home = await createServerHome()
  const shared = { FLASHER_SERVER_SESSION_SECRET: SECRET }
  await using cache = await startCache(join(home.dir, 'elsewhere'), shared)
  await using server = await home.start([], { ...shared, FLASHER_WITHCACHE_URL: cache.base })
  const { cookie } = await login(server.url, passwordIn(server.stdout()))
  assert.equal([await isIn(server.url, cookie), await isIn(cache.base, cookie)], [true, true])
  await logOut(server.url, cookie)
  assert.equal([await isIn(server.url, cookie), await isIn(cache.base, cookie)], [false, false])
})

test('a cache with another key, or none that answers, holds nobody up', async () => {
  await using home = await createServerHome()
  await using cache = await startCache(join(home.dir, 'elsewhere'))
  for (const url of [cache.base, `http://127.0.0.1:${await findPort()}`]) {
    await using server = await home.start([], {
      FLASHER_WITHCACHE_URL: url,
      FLASHER_ADMIN_PASSWORD: 'correct horse',
    })
    const { cookie } = await login(server.url, 'correct horse')
    await logOut(server.url, cookie)
    assert.is(await isIn(server.url, cookie), false)
  }
})

test('what is logged holds no password', async () => {
  await using home = await createServerHome()
  const server = await home.start([], { FLASHER_LOG_LEVEL: 'debug' })
  const password = passwordIn(server.stdout())
  await login(server.url, password)
  server.child.kill('SIGTERM')
  const { stderr } = await server.ended
  assert.not.match(stderr, password)
})

test('no page, event, document or figure shows a secret, an edit included', async () => {
  await using home = await createServerHome()
  const secret = 'hunter2-hunter2-hunter2'
  await home.write(
    'a.toml',
    `[admin]\npassword = "${secret}"\n[withcache]\ntoken = "${secret}"\n[backup]\ndriver_options = { key = "${secret}" }\n`,
  )
  await using server = await home.start(['--config', home.at('a.toml')], {
    FLASHER_SERVER_SESSION_SECRET: secret,
    FLASHER_LOG_LEVEL: 'debug',
  })
  const { cookie } = await login(server.url, secret)
  const post = (fields: Readonly<Record<string, string>>) =>
    fetch(`${server.url}/ui/settings/config/edit`, {
      method: 'POST',
      headers: { cookie },
      body: new URLSearchParams(fields),
    })
  const edited = await post({ section: 'pxe', key: 'loop_limit', value: '9' })
  const refused = await post({ section: 'admin', key: 'password', value: 'hunter2-new' })
  assert.match(await home.text('a.toml'), 'loop_limit = 9')
  assert.not.match(await home.text('a.toml'), 'hunter2-new')
  const paths = [
    'ui/settings',
    'ui/events',
    'ui/dashboard',
    'ui/account',
    'ui/backups',
    'ui/netboot',
    'events',
    'metrics',
    'openapi.json',
    'workers/backups',
    'tokens',
  ]
  const texts = await Promise.all(
    paths.map(async (path) => {
      const answer = await fetch(`${server.url}/${path}`, { headers: { cookie } })
      assert.is(answer.status, 200, path)
      return answer.text()
    }),
  )
  paths.push('edited', 'refused')
  texts.push(await edited.text(), await refused.text())
  const leaks = paths.filter((_, index) => texts[index]?.includes('hunter2'))
  assert.equal(leaks, [])
  server.child.kill('SIGTERM')
  const { stdout, stderr } = await server.ended
  assert.not.match(`${stdout}${stderr}`, 'hunter2')
})

test('config show tells every value and its source, and no secret', async () => {
  await using home = await createServerHome()
  await home.write('a.toml', '[admin]\npassword = "hunter2"\n[pxe]\nloop_limit = 7\nlop = 1\n')
  const env = {
    FLASHER_CONFIG_FILE: home.at('a.toml'),
    FLASHER_SERVER_SESSION_SECRET: 'hunter2'.repeat(3),
  }
  const text = await home.run(['config', 'show'], env)
  assert.is(text.code, 0)
  assert.match(text.stdout, /^admin\.password +set +\/.*a\.toml$/m)
  assert.match(text.stdout, /^pxe\.loop_limit +7 +\/.*a\.toml$/m)
  assert.match(
    text.stdout,
    /^server\.host +127\.0\.0\.1 +environment variable FLASHER_SERVER_HOST$/m,
  )
  assert.match(text.stderr, /a\.toml:5: no such setting: pxe\.lop/)
  const json = await home.run(['config', 'show', '--json'], env)
  const document: unknown = JSON.parse(json.stdout)
  assert.ok(typeof document === 'object' && document !== null && 'settings' in document)
  const checked = await home.run(['config', 'check'], env)
  assert.is(checked.code, 0)
  for (const { stdout, stderr } of [text, json, checked]) {
    assert.not.match(`${stdout}${stderr}`, 'hunter2')
  }
  // Looking makes nothing.
  assert.not.ok((await readdir(home.dir)).includes('state'))
})

test.run()
