/** `flasher-web flash` against a server behind a real socket. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { diskOf, entryOf, MAC, REF } from '#test/support/server/machine-fixture.ts'
import { bodyOf, runIdOf } from '#test/support/server/runs.ts'
import { asJson, createTestServer, listen, readJson } from '#test/support/server/server.ts'
import { waitUntil } from '#test/support/waiting.ts'

const PROGRAM = new URL('../../../../runtime/bin/flasher-web.mjs', import.meta.url).pathname
const test = suite('flasher-web flash over HTTP')

async function open(env: Readonly<Record<string, string>> = {}) {
  const server = await createTestServer({
    catalog: [entryOf(REF)],
    env,
  })
  const socket = await listen(server)
  const ask = await server.operator()
  const fields = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }
  await ask(`/machines/${MAC}`, asJson(fields, 'PUT'))
  await server.request(`/pxe/${MAC}/inventory`, asJson({ disks: [diskOf('S1')] }))
  const made = await (
    await ask('/tokens', asJson({ name: 'ci', scopes: ['read', 'flash'] }))
  ).json()
  const said = { out: '', err: '' }
  const children: ChildProcess[] = []

  /** Resolves to the exit code. */
  async function run(...argv: readonly string[]): Promise<unknown> {
    const isNamed = argv.includes('--server') || argv.includes('--config')
    const where = isNamed ? [] : ['--server', socket.url]
    const child = spawn(process.execPath, [PROGRAM, 'flash', MAC, ...where, ...argv], {
      env: { ...process.env, FLASHER_TOKEN: made.token },
    })
    children.push(child)
    child.stdout.on('data', (piece: Buffer) => void (said.out += piece.toString()))
    child.stderr.on('data', (piece: Buffer) => void (said.err += piece.toString()))
    const [code] = await once(child, 'close')
    return code
  }
  const post = (phase: 'started' | 'done' | 'failed') =>
    server.request(`/pxe/${MAC}/progress`, asJson(bodyOf({ run: runIdOf(1), phase })))
  const isListening = () =>
    waitUntil(
      async () => said.err.includes('armed'),
      () => said.err,
    )
  return {
    server,
    said,
    stop: () => children.at(-1)?.kill('SIGTERM'),
    run,
    isListening,
    async write(phase: 'done' | 'failed') {
      await server.request(`/pxe/${MAC}`)
      await server.request(`/pxe/${MAC}/plan`)
      await post('started')
      await post(phase)
      await server.request(`/pxe/${MAC}/status?run=${runIdOf(1)}`, asJson({ status: phase }))
    },
    async [Symbol.asyncDispose]() {
      await socket[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

test('without --wait it arms the machine, with the image by its name', async () => {
  await using site = await open()
  assert.is(await site.run('--image', 'debian.img.zst'), 0)
  assert.is(site.said.out, 'armed\n')
  assert.is(await site.run('--image', 'nothing.img'), 1)
  assert.match(site.said.err, 'no image, or several images, nothing.img')
})

test('with --wait it says how far it is, and ends with what became of it', async () => {
  await using site = await open()
  const code = site.run('--wait', '--json')
  await site.isListening()
  await site.write('done')
  assert.is(await code, 0, site.said.err)
  assert.is(JSON.parse(site.said.out).outcome, 'flashed')
  assert.match(site.said.err, 'armed\n')
})

test('a flash that failed, a wait that is over, and an order that is refused have codes of their own', async () => {
  await using failed = await open()
  const code = failed.run('--wait')
  await failed.isListening()
  await failed.write('failed')
  assert.is(await code, 3)
  await using late = await open()
  assert.is(await late.run('--wait', '--limit', '1'), 5)
  assert.is(late.said.out, 'timeout\n')
  assert.is(await late.run('--limit', 'soon'), 2)
  assert.is(await late.run('--until', 'booted'), 1)
  assert.match(late.said.err, '[proof] enabled')
})

test('--until booted goes on after the flash', async () => {
  await using site = await open({
    FLASHER_PROOF_ENABLED: 'true',
    FLASHER_PROOF_LIMIT: '1800',
    FLASHER_PROOF_PORT: '0',
  })
  const code = site.run('--until', 'booted')
  await site.isListening()
  await site.write('done')
  await waitUntil(
    async () => site.said.err.includes('first boot: watching'),
    () => site.said.err,
  )
  await site.server.proofs.leave(MAC)
  assert.is(await code, 4)
  assert.is(site.said.out, 'not-seen\n')
})

test('a wait that is cancelled leaves the machine armed', async () => {
  await using site = await open()
  const code = site.run('--wait')
  await site.isListening()
  site.stop()
  assert.is.not(await code, 0)
  const plan = await readJson(site.server.request(`/pxe/${MAC}/plan`))
  assert.is(plan.mode, 'flash')
})

test('why a machine was not turned on is said, and that a connection broke', async () => {
  const answers = [
    (response: ServerResponse) => {
      response.writeHead(502, { 'content-type': 'application/json' })
      const detail = 'Armed, but not booted. The BMC\u001b is away.'
      response.end(JSON.stringify({ outcome: 'not-booted', detail }))
    },
    (response: ServerResponse) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('event: armed\ndata: {}\n\n', () => response.destroy())
    },
  ]
  const fake = createServer((_request, response) => answers.shift()?.(response))
  await once(fake.listen(0, '127.0.0.1'), 'listening')
  const bound = fake.address()
  const port = typeof bound === 'object' ? bound?.port : 0
  await using site = await open()
  try {
    const argv = ['--server', `http://127.0.0.1:${port}`, '--wait']
    assert.is(await site.run(...argv), 3)
    assert.match(site.said.err, /but not booted\. The BMC.* is away\./)
    assert.not.match(site.said.err, '\u001b')
    assert.is(await site.run(...argv), 1)
    assert.match(site.said.err, /the server: .*\n.*will still be flashed/)
  } finally {
    fake.close()
  }
})

test('without an address it asks the server of the configuration that is named', async () => {
  await using site = await open()
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-flash-'))
  const path = join(folder.path, 'flasher.toml')
  await writeFile(path, '[server]\nport = 1\n')
  assert.is(await site.run('--config', path), 1)
  assert.match(site.said.err, 'the server at http://127.0.0.1:1: connection refused')
})

test.run()
