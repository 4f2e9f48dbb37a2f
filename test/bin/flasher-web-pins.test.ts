import { mkdir } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import { makeBytes } from '#test/support/collect.ts'
import { createServerHome } from '#test/support/server/flasher-web.ts'
import { findPort } from '#test/support/http/ports.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import {
  makeFolder,
  startCache,
  until,
  type CacheProcess,
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
  assert.match(await refused.text(), /machines are bound to one/)

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

test.run()
