/** Listening: clients that are there before the server is, ports that browsers refuse. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listen } from '#bin/listen.ts'
import { isUnsafePort } from '#kit/net/rules/host-header.ts'
import { findPort } from '#test/support/http/ports.ts'
import { createServerHome } from '#test/support/server/flasher-web.ts'
import { cacheEnv, makeFolder, startCache } from '#test/support/server/image-cache.ts'

const test = suite('listening')
const CLIENTS = new URL('../support/net/impatient-clients.ts', import.meta.url).pathname
const HANDLER = (_: unknown, response: { end(text: string): void }) => response.end('here')

test('whoever connects while a server starts is answered, and keeps it from nothing', async () => {
  const port = await findPort()
  const clients = spawn(process.execPath, [CLIENTS, String(port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let met = ''
  clients.stdout.setEncoding('utf8').on('data', (said: string) => {
    met += said
  })
  try {
    for (let round = 0; round < 20; round += 1) {
      const started = listen(HANDLER, { host: '127.0.0.1', port, tls: null })
      const before = met.length
      const listening = await Promise.race([started, pause(20_000, null, { ref: false })])
      assert.ok(listening, `it waits for its clients: ${met.slice(-100)}`)
      assert.equal([listening.port, listening.urls], [port, [`http://127.0.0.1:${port}/`]])
      for (let tries = 0; !met.includes('answered', before) && tries < 1000; tries += 1)
        await pause(10)
      assert.match(met.slice(before), /^answered/, 'the first one that connected')
      const closed = new Promise((resolve) => listening.server.close(resolve))
      listening.server.closeAllConnections()
      await closed
      // Nobody connects now; what those say whose connections were closed must not count for the next round.
      for (let said = -1; said !== met.length;) {
        said = met.length
        await pause(300)
      }
    }
  } finally {
    clients.kill('SIGKILL')
  }
})

test('what is unavailable is said in the words of the system', async () => {
  const port = await findPort()
  const { server } = await listen(HANDLER, { host: '127.0.0.1', port, tls: null })
  try {
    await rejects(() => listen(HANDLER, { host: '127.0.0.1', port, tls: null }), /EADDRINUSE/)
    await rejects(() => listen(HANDLER, { host: '192.0.2.1', port, tls: null }), /EADDRNOTAVAIL/)
    await rejects(() => listen(HANDLER, { host: '127.0.0.1', port: 6000, tls: null }), /browsers/)
  } finally {
    server.close()
  }
})

async function rejects(act: () => Promise<unknown>, words: RegExp) {
  const [settled] = await Promise.allSettled([act()])
  assert.is(settled.status, 'rejected')
  if (settled.status === 'rejected') assert.match(String(settled.reason), words)
}

test('the ports that browsers refuse are known, among them all that listhen knows', () => {
  const listhen = createRequire(import.meta.url).resolve('listhen')
  const required: unknown = createRequire(listhen)('get-port-please')
  const { isSafePort } = Object(required)
  const all = Array.from({ length: 65_535 }, (_, n) => n + 1)
  const missing = all.filter((port) => isSafePort(port) === false && !isUnsafePort(port))
  assert.equal(missing, [])
  assert.equal([22, 80, 443, 4190, 6000, 8080].filter(isUnsafePort), [22, 4190, 6000])
})

const CACHE = new URL('../../runtime/bin/flasher-cache.mjs', import.meta.url).pathname

const sentence = (program: string, port: number | string) =>
  `${program}: cannot listen: port ${port} on 127.0.0.1 is already in use by another program\n` +
  `  Stop that program ("ss -ltnp sport = :${port}" names it), or choose another port. `

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
  assert.not.match(stderr, 'flasher-cache has stopped')
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
