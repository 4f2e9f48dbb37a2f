/** `FLASHER_LINE=earlier flasher-web`, as a process: its variables, its state, and what a crash leaves. */
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { findPort } from '#test/support/http/ports.ts'
import { createSystemAccount, hashOf } from '#test/support/system/system-account.ts'

const test = suite('flasher-web of the earlier line')
type Home = Awaited<ReturnType<typeof createServerHome>>
const PASSWORD = 'pass word äöü'

/** A server that root runs, whose password is known. */
async function createHome() {
  const stack = new AsyncDisposableStack()
  const { prefix } = stack.use(await createSystemAccount({ shadow: hashOf(PASSWORD) }))
  const home = stack.use(await createServerHome({ prefix }))
  return { ...home, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

const askAs = async (url: string, cookie: string) =>
  (await fetch(`${url}/machines`, { headers: { cookie } })).status

/** The variables of the specification, and no others. */
async function variables(home: Home) {
  const port = String(await findPort())
  return {
    FLASHER_LINE: 'earlier',
    FLASHER_PATHS_STATE_DIR: '',
    FLASHER_SERVER_HOST: '',
    FLASHER_STATE_DIR: home.at('earlier'),
    FLASHER_IMAGE_ROOT: home.at('images'),
    FLASHER_BOOT_DIR: home.at('netboot'),
    FLASHER_WEB_HOST: '127.0.0.1',
    FLASHER_WEB_PORT: port,
    // Where the harness looks for it.
    FLASHER_SERVER_PORT: port,
  }
}

test('it listens where the variables say, and keeps its state there', async () => {
  await using home = await createHome()
  const env = await variables(home)
  await mkdir(home.at('images'))
  await writeFile(home.at('images/a.img'), 'bytes')
  {
    await using server = await home.start([], env)
    const { version } = JSON.parse(await readFile('package.json', 'utf8'))
    assert.equal(await (await fetch(`${server.url}/version`)).json(), { version })
    const { cookie, status } = await login(server.url, PASSWORD)
    assert.is(status, 303)
    const headers = { cookie, 'content-type': 'application/json' }
    const body = JSON.stringify({ image: 'a.img', boot_policy: 'flash' })
    const mac = `${server.url}/machines/52:54:00:12:34:56`
    assert.is((await fetch(mac, { method: 'PUT', headers, body })).status, 200)
    assert.is(await (await fetch(`${server.url}/images/a.img`)).text(), 'bytes')
    assert.ok((await stat(home.at('netboot'))).isDirectory())
    assert.ok((await stat(home.at('earlier/state.db'))).isFile())
    // Exactly one process serves a state folder.
    const second = await home.run([], { ...env, FLASHER_WEB_PORT: String(await findPort()) })
    assert.is(second.code, 1)
    assert.match(second.stderr, /process \d+ already serves/)
  }
  await using again = await home.start([], env)
  const script = await (await fetch(`${again.url}/pxe/52-54-00-12-34-56`)).text()
  assert.match(script, `flasher.image_url=${again.url}/images/a.img`)
})

test('deleting the key file and restarting ends all sessions; an empty one is refused', async () => {
  await using home = await createHome()
  const env = await variables(home)
  const key = home.at('earlier/session-secret')
  const logIn = async () => {
    await using server = await home.start([], env)
    return (await login(server.url, PASSWORD)).cookie
  }
  const cookie = await logIn()
  assert.is((await stat(key)).mode & 0o777, 0o600)
  {
    await using server = await home.start([], env)
    assert.is(await askAs(server.url, cookie), 200)
  }
  await rm(key)
  {
    await using server = await home.start([], env)
    assert.is(await askAs(server.url, cookie), 401)
  }
  await writeFile(key, '')
  const refused = await home.run([], env)
  assert.is(refused.code, 2)
  assert.match(refused.stderr, /session-secret/)
})

test('the state of one line is refused by the other, and stays as it is', async () => {
  await using home = await createHome()
  const env = { ...(await variables(home)), FLASHER_STATE_DIR: home.at('state') }
  {
    await using _current = await home.start()
  }
  const refused = await home.run([], env)
  assert.is(refused.code, 1)
  assert.match(refused.stderr, /current/)
  await using _again = await home.start()
})

test('a value that cannot be used is named by its variable', async () => {
  await using home = await createHome()
  const env = await variables(home)
  const ended = await home.run([], { ...env, FLASHER_WEB_PORT: 'many' })
  assert.is(ended.code, 2)
  assert.match(ended.stderr, /FLASHER_WEB_PORT: server\.port must be/)
  const asked = await home.run(['export', 'x'], env)
  assert.equal([asked.code, /unknown command: export/.test(asked.stderr)], [2, true])
})

test('kill -9 in the middle of an upload leaves the image of before, and nothing else', async () => {
  await using home = await createHome()
  const env = await variables(home)
  await mkdir(home.at('images'))
  await writeFile(home.at('images/a.img'), 'before')
  {
    await using server = await home.start([], env)
    const { cookie } = await login(server.url, PASSWORD)
    const upload = request(`${server.url}/images/a.img`, { method: 'PUT', headers: { cookie } })
    upload.on('error', () => {})
    upload.write(Buffer.alloc(1024 * 1024))
    for (let tries = 0; tries < 1000; tries += 1) {
      if ((await readdir(home.at('images'))).length === 2) break
      await pause(10)
    }
    assert.is((await readdir(home.at('images'))).length, 2)
    server.child.kill('SIGKILL')
    await server.ended
  }
  await using server = await home.start([], env)
  assert.is(await (await fetch(`${server.url}/images/a.img`)).text(), 'before')
  assert.equal(await readdir(home.at('images')), ['a.img'])
})

test.run()
