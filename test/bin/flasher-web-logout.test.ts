/** Who logs out of the server is logged out of the cache that takes its sessions, at once. */
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login, passwordIn } from '#test/support/server/flasher-web.ts'
import { findPort } from '#test/support/http/ports.ts'
import { startCache } from '#test/support/server/image-cache.ts'

const test = suite('logging out of server and cache')
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
    const cacheUrl = / add them at (http:\S+)/.exec(server.stdout())?.[1] ?? ''
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

test.run()
