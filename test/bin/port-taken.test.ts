/** Two servers on the same port: the second says in a sentence what is wrong, and how to fix it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome } from '#test/support/server/flasher-web.ts'
import { findPort } from '#test/support/http/ports.ts'
import { cacheEnv, makeFolder, startCache } from '#test/support/server/image-cache.ts'

const CACHE = new URL('../../runtime/bin/flasher-cache.mjs', import.meta.url).pathname

const sentence = (program: string, port: number | string) =>
  `${program}: cannot listen: port ${port} on 127.0.0.1 is already in use by another program\n` +
  `  Stop that program ("ss -ltnp sport = :${port}" names it), or choose another port. `

const test = suite('port taken')

test('flasher-web', async () => {
  await using home = await createServerHome()
  const port = String(await findPort())
  await using _server = await home.start([], { FLASHER_SERVER_PORT: port })
  const second = { FLASHER_SERVER_PORT: port, FLASHER_PATHS_STATE_DIR: home.at('other') }
  const { code, stderr } = await home.run([], second)
  assert.is(code, 1)
  assert.match(stderr, sentence('flasher-web', port))
  assert.match(stderr, 'Set them with FLASHER_SERVER_HOST and FLASHER_SERVER_PORT, or [server]')
  assert.not.match(stderr, /EADDRINUSE|FLASHER_DEBUG/)
})

test('pnpm start says that one thing, and nothing of the cache that it ended itself', async () => {
  await using home = await createServerHome()
  const port = String(await findPort())
  await using _server = await home.start([], { FLASHER_SERVER_PORT: port })
  const second = {
    FLASHER_SERVER_PORT: port,
    FLASHER_CACHE_PORT: String(await findPort()),
    FLASHER_PATHS_STATE_DIR: home.at('other'),
  }
  const { code, stderr } = await home.run([], second, '', 'start.ts')
  assert.is(code, 1)
  assert.match(stderr, sentence('flasher-web', port))
  assert.not.match(stderr, 'flasher-cache has ended')
})

test('flasher-cache', async () => {
  await using state = await makeFolder()
  await using other = await makeFolder()
  await using program = await startCache(state.path)
  const port = Number(new URL(program.base).port)
  const child = spawn(process.execPath, [CACHE], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...cacheEnv(other.path, port) },
  })
  const [stderr] = await Promise.all([text(child.stderr), once(child, 'close')])
  assert.is(child.exitCode, 1)
  assert.match(stderr, sentence('flasher-cache', port))
  assert.match(stderr, 'Set them with FLASHER_CACHE_HOST and FLASHER_CACHE_PORT, or [cache]')
  assert.not.match(stderr, /EADDRINUSE|FLASHER_DEBUG/)
})

test.run()
