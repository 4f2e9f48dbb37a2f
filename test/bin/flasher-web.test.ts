import { mkdir, readFile, stat } from 'node:fs/promises'
import { Agent, get } from 'node:http'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login, passwordIn } from '#test/support/server/flasher-web.ts'
import { findPort } from '#test/support/http/ports.ts'
import { EXITED, openTerminal } from '#test/support/terminal/tmux.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('flasher-web')

const machines = async (url: string, cookie: string) =>
  (await fetch(`${url}/machines`, { headers: { cookie } })).status

test('the first start makes a password and prints it once; the state is its own', async () => {
  await using home = await createServerHome()
  let password = ''
  {
    await using server = await home.start()
    password = passwordIn(server.stdout())
    assert.match(password, /^[a-z2-9]{4}(?:-[a-z2-9]{4}){3}$/)
    assert.equal(await (await fetch(`${server.url}/healthz`)).json(), { status: 'ok' })
    assert.is((await login(server.url, 'wrong')).status, 401)
    const { status, cookie } = await login(server.url, password)
    assert.equal([status, await machines(server.url, cookie)], [303, 200])
  }
  await using again = await home.start()
  assert.is(passwordIn(again.stdout()), '')
  assert.is((await login(again.url, password)).status, 303)
  assert.is((await stat(home.at('state'))).mode & 0o777, 0o700)
  for (const name of ['admin-password', 'session-secret']) {
    assert.is((await stat(home.at(`state/${name}`))).mode & 0o777, 0o600, name)
    assert.not.match(await home.text(`state/${name}`), password)
  }
})

test('SIGTERM ends it with code 0, live channels and idle connections included', async () => {
  await using home = await createServerHome()
  const server = await home.start()
  const { cookie } = await login(server.url, passwordIn(server.stdout()))
  const channel = await new Promise<{ readonly ended: Promise<void> }>((resolve, reject) => {
    get(`${server.url}/events/machines`, { headers: { cookie } }, (answer) => {
      answer.once('data', () =>
        resolve({
          ended: new Promise((done) => {
            answer.resume().once('close', () => done())
          }),
        }),
      )
    }).once('error', reject)
  })
  const before = performance.now()
  server.child.kill('SIGTERM')
  const { code } = await server.ended
  await channel.ended
  assert.is(code, 0)
  assert.ok(performance.now() - before < 10_000)
})

test('with a page open it ends at once: its stream, its idle connections, and one that never asked', async () => {
  await using home = await createServerHome()
  const server = await home.start([], { FLASHER_SERVER_KEEP_ALIVE_SECONDS: '600' })
  const health = await fetch(`${server.url}/healthz`)
  assert.is(health.headers.get('keep-alive'), 'timeout=600')
  const { cookie } = await login(server.url, passwordIn(server.stdout()))
  const agent = new Agent({ keepAlive: true })
  const spare = connect(Number(new URL(server.url).port), '127.0.0.1')
  spare.on('error', () => {})
  const ask = (path: string, until: 'data' | 'end') =>
    new Promise<void>((resolve, reject) => {
      get(`${server.url}${path}`, { agent, headers: { cookie } }, (answer) => {
        answer.once(until, () => resolve()).on('error', () => {})
        answer.resume()
      }).on('error', reject)
    })
  await ask('/ui/machines', 'end')
  await ask('/events/machines?q=', 'data')
  const before = performance.now()
  server.child.kill('SIGTERM')
  assert.is((await server.ended).code, 0)
  const took = performance.now() - before
  agent.destroy()
  spare.destroy()
  // A second on a free machine; 8 s is what answers under way would be given.
  assert.ok(took < 5000, `${took} ms`)
})

test('who logged out stays logged out over a restart, who did not stays in', async () => {
  await using home = await createServerHome()
  const cookies: string[] = []
  {
    await using server = await home.start([], { FLASHER_ADMIN_PASSWORD: 'secret words' })
    for (const _ of [1, 2]) cookies.push((await login(server.url, 'secret words')).cookie)
    const headers = { cookie: cookies[0] ?? '' }
    await fetch(`${server.url}/ui/logout`, { method: 'POST', headers, redirect: 'manual' })
  }
  await using server = await home.start([], { FLASHER_ADMIN_PASSWORD: 'secret words' })
  const seen = await Promise.all(cookies.map((cookie) => machines(server.url, cookie)))
  assert.equal(seen, [401, 200])
})

test('an empty database is in the log, the events and on the pages', async () => {
  await using home = await createServerHome()
  const password = { FLASHER_ADMIN_PASSWORD: 'secret words' }
  await mkdir(home.at('state'))
  await home.write('state/state.db', '')
  await using server = await home.start([], password)
  await server.saw('state.db was empty')
  const { cookie } = await login(server.url, 'secret words')
  const read = async (path: string) =>
    await (await fetch(`${server.url}${path}`, { headers: { cookie } })).text()
  const found = await read('/events?limit=20')
  assert.match(found, /"kind":"system\.state\.empty"/)
  assert.match(await read('/ui/dashboard'), /title="Events that need attention">1</)
  const events = await read('/ui/events')
  assert.match(events, 'state.db was empty')
})

test('a second server on the same state, or the same port, says so and ends', async () => {
  await using home = await createServerHome()
  const port = String(await findPort())
  await using server = await home.start([], { FLASHER_SERVER_PORT: port })
  const sameState = await home.run([], { FLASHER_SERVER_PORT: String(await findPort()) })
  assert.is(sameState.code, 1)
  assert.match(sameState.stderr, /^flasher-web: process \d+ already serves/)
  const samePort = await home.run([], {
    FLASHER_SERVER_PORT: port,
    FLASHER_PATHS_STATE_DIR: home.at('other'),
  })
  assert.is(samePort.code, 1)
  assert.match(samePort.stderr, `cannot listen: port ${port} on 127.0.0.1 is already in use`)
  assert.is((await fetch(`${server.url}/healthz`)).status, 200)
})

test('what cannot be meant ends with code 2 and a line that names it', async () => {
  await using home = await createServerHome()
  await home.write('broken.toml', '[server]\nport = 80 80\n')
  await home.write('type.toml', '[server]\nport = "x"\n')
  const rows: readonly (readonly [
    argv: readonly string[],
    env: Readonly<Record<string, string>>,
    code: number,
    words: RegExp,
  ])[] = [
    [[], { FLASHER_SERVER_PORT: '0' }, 2, /FLASHER_SERVER_PORT: server\.port must be .* not 0$/m],
    [[], { FLASHER_SERVER_PORT: '99999' }, 2, /must be a whole number from 1 to 65535, not 99999/],
    [[], { FLASHER_SERVER_PORT: 'http' }, 2, /not "http"/],
    [[], { FLASHER_SERVER_PORT: '6000' }, 1, /browsers refuse/],
    [[], { FLASHER_SERVER_TLS_CERT: '/a' }, 2, /belong together/],
    [['--config', home.at('broken.toml')], {}, 2, /broken\.toml:2:\d+: /],
    [
      ['--config', home.at('type.toml')],
      { FLASHER_SERVER_PORT: '' },
      2,
      /type\.toml:2: server\.port must be/,
    ],
    [['--config', home.at('none.toml')], {}, 1, /cannot be read: .*none\.toml does not exist/],
    [['--config', home.at('none.toml'), 'config', 'check'], {}, 1, /none\.toml cannot be read/],
    [['--port', '80'], {}, 2, /unknown flag: --port/],
    [['sreve'], {}, 2, /unknown command: sreve; did you mean serve\?/],
    [['export'], {}, 2, /missing: DIR/],
    [
      [],
      { FLASHER_LINE: 'later' },
      1,
      /FLASHER_LINE=later is unknown; it must be current or earlier$/m,
    ],
    [
      [],
      { FLASHER_PATHS_STATE_DIR: home.at('type.toml') },
      1,
      /state directory .*type\.toml cannot/,
    ],
  ]
  for (const [argv, env, code, words] of rows) {
    const port = String(await findPort())
    const ended = await home.run(argv, { FLASHER_SERVER_PORT: port, ...env })
    assert.match(ended.stderr, words)
    assert.match(ended.stderr, /^flasher-web: /)
    assert.is(ended.code, code, String(words))
    assert.is(ended.stdout, '')
  }
})

test('help and version are printed whatever line is set', async () => {
  await using home = await createServerHome()
  const help = await home.run(['--help'], { FLASHER_LINE: 'later' })
  assert.equal([help.code, help.stderr, help.stdout.includes('FLASHER_LINE')], [0, '', false])
  assert.is((await home.run(['--version'], { FLASHER_LINE: 'earlier' })).code, 0)
})

test('a configuration that is named counts whole, its password too', async () => {
  await using home = await createServerHome()
  const port = await findPort()
  await home.write('a.toml', `[server]\nport = ${port}\n[admin]\npassword = "from the file"\n`)
  const server = await home.start(['--config', home.at('a.toml')], { FLASHER_SERVER_PORT: '' })
  try {
    const url = `http://127.0.0.1:${port}`
    assert.is((await login(url, 'from the file')).status, 303)
    assert.is(passwordIn(server.stdout()), '')
    // Read again while it runs: the password counts at once, the port at the next start.
    await home.write('a.toml', `[server]\nport = 1\n[admin]\npassword = "another"\n`)
    server.child.kill('SIGHUP')
    await server.saw('restart to apply: server.port')
    assert.is((await login(url, 'another')).status, 303)
    await home.write('a.toml', '[server\n')
    server.child.kill('SIGHUP')
    await server.saw('the configuration was not reloaded')
    assert.is((await login(url, 'another')).status, 303)
  } finally {
    server.child.kill('SIGTERM')
  }
  const { stderr } = await server.ended
  assert.not.match(stderr, /from the file|"another"/)
})

test('a new password counts at once and ends all sessions', async () => {
  await using home = await createServerHome()
  await using server = await home.start()
  const { cookie } = await login(server.url, passwordIn(server.stdout()))
  assert.is(await machines(server.url, cookie), 200)
  const changed = await home.run(['password'], {}, 'a longer one\n')
  assert.equal([changed.code, changed.stderr], [0, ''])
  assert.not.match(changed.stdout, 'a longer one')
  assert.is((await login(server.url, 'a longer one')).status, 303)
  const until = performance.now() + 20_000
  while ((await machines(server.url, cookie)) === 200 && performance.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  assert.is(await machines(server.url, cookie), 401)
  const short = await home.run(['password'], {}, 'short\n')
  assert.equal([short.code, /at least 8/.test(short.stderr)], [2, true])
  const configured = await home.run(['password'], { FLASHER_ADMIN_PASSWORD: 'x' })
  assert.is(configured.code, 2)
  assert.match(configured.stderr, /set by environment variable FLASHER_ADMIN_PASSWORD/)
})

test('a password that is mistyped is asked for again', async () => {
  const program = fileURLToPath(new URL('../../runtime/bin/flasher-web.mjs', import.meta.url))
  await using terminal = await openTerminal([process.execPath, program, 'password', '--print'])
  await terminal.waitFor('New password:')
  await terminal.press('short', 'Enter')
  await terminal.waitFor('The password needs at least 8 characters. Try again.')
  await terminal.press('a longer one', 'Enter')
  await terminal.waitFor('Repeat password:')
  await terminal.press('another one', 'Enter')
  await terminal.waitFor('The two passwords differ. Try again.')
  await terminal.press('a longer one', 'Enter')
  await terminal.waitFor(/differ[^]*Repeat password:/)
  await terminal.press('a longer one', 'Enter')
  const screen = (await terminal.waitFor(`${EXITED}0`)).join('\n')
  assert.match(screen, 'scrypt')
  assert.not.match(screen, 'a longer one')
})

test('export, import, backup and restore, beside the server and without it', async () => {
  await using home = await createServerHome()
  const mac = '52:54:00:12:34:56'
  let id = ''
  {
    await using server = await home.start()
    await fetch(`${server.url}/pxe/${mac}`)
    const exported = await home.run(['export', home.at('bundle')])
    assert.match(exported.stdout, /export -> .*bundle: 1 machines/)
    assert.match(await home.text('bundle/inventory.json'), mac)
    assert.match((await home.run(['import', home.at('bundle')])).stdout, /import: 1 machines/)
    const backup = await home.run(['backup'])
    id = /^Backup (\S+)$/m.exec(backup.stdout)?.[1] ?? ''
    assert.match(id, /^\d{4}-/)
    const refused = await home.run(['restore', id])
    assert.is(refused.code, 1)
    assert.match(refused.stderr, /process \d+ already serves/)
  }
  const restored = await home.run(['restore', id])
  assert.equal([restored.code, restored.stderr], [0, ''])
  assert.match(restored.stdout, /^Restored 1 machines from .*\.bak$/m)
  const unknown = await home.run(['restore', '2020-01-01T00-00-00Z'])
  assert.equal([unknown.code, unknown.stdout], [1, ''])
  const nothing = await home.run(['restore', 'nope'])
  assert.match(nothing.stderr, /^flasher-web: nope is neither a backup nor a file\n  On a terminal/)
  const copy = await home.run(['restore', home.at(`state/backups/${id}/state.db`)])
  assert.match(copy.stdout, 'Restored 1 machines')
  const inventory = await home.run(['restore', home.at('bundle/inventory.json')])
  assert.match(inventory.stdout, 'Restored 1 machines')
  const nonsense = await home.run(['restore', home.at('state/admin-password')])
  assert.is(nonsense.code, 2)
})

const MANUAL = '.\\" Made by "flasher-web manual"'
test('version and help', async () => {
  await using home = await createServerHome()
  assert.match((await home.run(['--version'])).stdout, /^flasher-web \d+\.\d+\.\d+\n$/)
  const help = await home.run(['--help'])
  for (const word of ['export', 'restore', 'password', 'config check', 'Exit codes']) {
    assert.match(help.stdout, word)
  }
  assert.match((await home.run(['restore', '--help'])).stdout, /--config PATH/)
  const manual = await home.run(['manual'])
  assert.equal([manual.code, manual.stderr, manual.stdout.split(';')[0]], [0, '', MANUAL])
  const script = await home.run(['completion', 'fish'])
  assert.equal([script.code, script.stdout.split(',')[0]], [0, '# fish completion of flasher-web'])
  assert.is((await home.run(['completion', 'csh'])).code, 2)
})

test('pnpm start brings a cache service along and ends it too', async () => {
  await using home = await createServerHome()
  const port = await findPort()
  const env = { FLASHER_CACHE_PORT: String(port) }
  const server = await home.start([], env, 'start.ts')
  try {
    assert.match(passwordIn(server.stdout()), /-/)
    await server.saw('Next:')
    assert.is((await fetch(`http://127.0.0.1:${port}/healthz`)).status, 200)
    assert.equal(await (await fetch(`${server.url}/images`)).json(), [])
  } finally {
    server.child.kill('SIGINT')
  }
  assert.is((await server.ended).code, 0)
  const gone = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => null)
  assert.is(gone, null)
})

test('a cache that does not answer does not hold up the end', async () => {
  await using home = await createServerHome()
  const isCache = "process.argv[1].endsWith('flasher-cache.mjs')"
  await home.write('hung.mjs', `if (${isCache}) await new Promise((end) => setTimeout(end, 1e6))`)
  const env = {
    NODE_OPTIONS: `--import ${home.at('hung.mjs')}`,
    FLASHER_SERVER_PORT: String(await findPort()),
    FLASHER_CACHE_PORT: String(await findPort()),
  }
  const { child, ended } = home.begin([], env, 'start.ts')
  await waitUntil(
    async () => (await readFile(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')) !== '',
    () => 'no cache was started',
  )
  child.kill('SIGTERM')
  const { code, stderr } = await ended
  assert.is(code, 0, stderr)
  assert.not.match(stderr, 'does not answer')
})

test.run()
