/** `flasher-web restore` without an argument: the operator chooses, in a real terminal. */
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { EXITED, openTerminal, type TerminalOptions } from '#test/support/terminal/tmux.ts'

const test = suite('flasher-web restore')
const PROGRAM = fileURLToPath(new URL('../../runtime/bin/flasher-web.mjs', import.meta.url))

/** A backup of ours, one of another line made of it, and hardware alone as the ancestor made it. */
async function createFixture() {
  const home = await createServerHome()
  const folder = (id: string) => home.at(`state/backups/${id}`)
  const made = await home.run(['backup'])
  const id = /^Backup (\S+)$/m.exec(made.stdout)?.[1] ?? ''
  const strange = '2026-03-04T05-06-07Z'
  const bare = '2026-01-02T03-04-05Z'
  const manifest = await readFile(`${folder(id)}/manifest.json`, 'utf8')
  await mkdir(folder(strange))
  await writeFile(
    `${folder(strange)}/manifest.json`,
    manifest.replaceAll(id, strange).replace('"line": "current"', '"line": "earlier\\u001b[2J"'),
  )
  await mkdir(folder(bare))
  const inventory = await readFile(`${folder(id)}/inventory.json`, 'utf8')
  await writeFile(`${folder(bare)}/inventory.json`, inventory)
  return { home, id, strange, bare, open: (options?: TerminalOptions) => open(home.env, options) }
}

const open = (env: Readonly<Record<string, string>>, options: TerminalOptions = {}) =>
  openTerminal([process.execPath, PROGRAM, 'restore'], {
    columns: 100,
    ...options,
    env: { ...env, ...options.env },
  })

test('lists the newest first, says why one cannot be restored, and restores the chosen one', async () => {
  const fixture = await createFixture()
  await using _home = fixture.home
  await using terminal = await fixture.open()
  const screen = await terminal.waitFor('Esc leaves')
  const rows = screen.filter((line) => /\d{4}-\d\d-\d\dT/.test(line))
  assert.match(screen.join('\n'), /\? Restore which backup\?\n {2}Backup +Made {2}Machines +Size/)
  assert.equal(
    rows.map((row) => row.slice(0, 22)),
    [`❯ ${fixture.id}`, `- ${fixture.strange}`, `  ${fixture.bare}`],
  )
  assert.match(rows[0] ?? '', /Z +(now|\d+ (s|min) ago) +0 +[\d.]+ kB$/)
  assert.match(rows[1] ?? '', /d ago +0 +[\d.]+ kB +\(of the earlier\\x1b\[2J line\)$/)
  assert.match(rows[2] ?? '', /d ago +hardware only$/)
  await terminal.press('Down', 'Enter')
  await terminal.waitFor('That one cannot be chosen.')
  await terminal.press('Up', 'Enter')
  const after = (await terminal.waitFor(EXITED)).join('\n')
  assert.match(after, `✔ Restore which backup? ${fixture.id}`)
  assert.match(after.replaceAll('\n', ''), `Restored 0 machines from ${fixture.id}`)
  assert.match(after, `${EXITED}0`)
})

test('is left by Ctrl-C, Esc and Ctrl-D, and nothing has changed then', async () => {
  const fixture = await createFixture()
  await using home = fixture.home
  for (const key of ['C-c', 'Escape', 'C-d']) {
    await using terminal = await fixture.open({ env: { LANG: 'C' } })
    const screen = await terminal.waitFor('Esc: leave')
    assert.ok(screen.some((line) => line.startsWith(`> ${fixture.id}`)))
    await terminal.press(key)
    const after = (await terminal.waitFor(EXITED)).join('\n')
    assert.match(after, 'flasher-web: cancelled')
    assert.match(after, `${EXITED}1`)
  }
  assert.match((await home.run(['restore', fixture.id])).stdout, fixture.id)
})

test('takes the place of a database that is damaged', async () => {
  const fixture = await createFixture()
  await using home = fixture.home
  const damaged = Buffer.alloc(20_000, 'no database')
  await writeFile(home.at('state/state.db'), damaged)
  const bare = await home.run(['restore', fixture.bare])
  assert.match(bare.stderr, /has only hardware data, and .*state\.db is damaged/)
  assert.equal(await readFile(home.at('state/state.db')), damaged)
  const restored = await home.run(['restore', fixture.id])
  const archive = /kept as (state\.db\.damaged\.\S+\.bak)/.exec(restored.stdout)?.[1] ?? ''
  assert.equal(await readFile(home.at(`state/${archive}`)), damaged)
  assert.is((await home.run(['backup'])).code, 0)
})

test('names the program that has the database open', async () => {
  const fixture = await createFixture()
  await using home = fixture.home
  using held = new DatabaseSync(home.at('state/state.db'))
  held.prepare('SELECT count(*) FROM machines').get()
  const refused = await home.run(['restore', fixture.id])
  assert.match(refused.stderr, `process ${process.pid} (`)
  assert.match(refused.stderr, /state\.db open.*\n.*End that program and try again/)
  held.close()
  assert.is((await home.run(['restore', fixture.id])).code, 0)
})

test('explains what to do where there is nothing to choose, or nobody to ask', async () => {
  await using home = await createServerHome()
  const alone = await home.run(['restore'])
  assert.equal([alone.code, alone.stdout], [2, ''])
  assert.match(alone.stderr, /^flasher-web: missing: ID\|FILE\n {2}On a terminal, .* lists/)
  const empty = await home.run(['restore', ''])
  assert.equal([empty.code, /ID\|FILE needs a value/.test(empty.stderr)], [2, true])
  await using dumb = await open(home.env, { env: { TERM: 'dumb' } })
  assert.match((await dumb.waitFor(EXITED)).join('\n'), /missing: ID\|FILE[^]*exit code 2/)
  await using terminal = await open(home.env)
  const screen = (await terminal.waitFor(EXITED)).join('\n')
  assert.match(screen, /there are no backups yet\n {2}Make one with "flasher-web backup"/)
  assert.match(screen, `${EXITED}1`)
})

const PASSWORD = 'secret words'
const MAC = '52:54:00:00:00:01'
const ORDER = {
  name: 'rack-1',
  boot_mode: 'flasher-flash-always',
  bty_image_ref: 'a'.repeat(64),
  target_disk_serial: 'S1',
}

type Home = Awaited<ReturnType<typeof createServerHome>>

async function start(home: Home) {
  const server = await home.start([], { FLASHER_ADMIN_PASSWORD: PASSWORD })
  const { cookie } = await login(server.url, PASSWORD)
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${server.url}${path}`, {
      redirect: 'manual',
      ...init,
      headers: { cookie, ...(typeof init.body === 'string' ? JSON_TYPE : {}) },
    })
  return {
    ask,
    json: async (path: string, method = 'GET', body?: unknown) => {
      const init = body === undefined ? {} : { body: JSON.stringify(body) }
      return (await ask(path, { method, ...init })).json()
    },
    reasonOf: async () => /# .*$/m.exec(await (await ask(`/pxe/${MAC}`)).text())?.[0] ?? '',
    script: async () => (await ask(`/pxe/${MAC}`)).text(),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
const JSON_TYPE = { 'content-type': 'application/json' }

async function arm(server: Awaited<ReturnType<typeof start>>) {
  await server.script()
  await server.json(`/machines/${MAC}`, 'PUT', ORDER)
  assert.not.match(await server.script(), 'older state of the server was restored')
}

async function backUp(server: Awaited<ReturnType<typeof start>>): Promise<string> {
  const { backup_id: id } = await server.json('/workers/backups', 'POST', {})
  for (let tries = 0; tries < 200; tries += 1) {
    const { stored } = await server.json('/workers/backups')
    if (stored.some((one: { backup_id: string }) => one.backup_id === id)) return id
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('no backup')
}

test('by page and by API: question, result, event and machine name it', async () => {
  await using home = await createServerHome()
  await using server = await start(home)
  await arm(server)
  const id = await backUp(server)
  const question = await (await server.ask(`/ui/backups/${id}/restore`)).text()
  assert.match(question, /machine is disarmed[^]*rack-1[^]*52:54:00:00:00:01/)
  const confirm = /T(\d\d-\d\d)-/.exec(id)?.[1] ?? ''
  const posted = await server.ask(`/ui/backups/${id}/restore`, {
    method: 'POST',
    body: new URLSearchParams({ confirm }),
  })
  const result = await (await server.ask(posted.headers.get('location') ?? '')).text()
  assert.match(result, /not flashed or captured until[^]*rack-1/)
  assert.match(await server.script(), 'older state of the server was restored')
  const { mode } = await server.json(`/pxe/${MAC}/plan`)
  assert.is(mode, 'exit')
  const { events } = await server.json('/events?kind=backup.restored')
  assert.equal(events[0].details.disarmed, [{ mac: MAC, name: 'rack-1' }])
  assert.match(await (await server.ask(`/ui/machines/${MAC}`)).text(), 'do/flash')

  await server.json(`/machines/${MAC}/flash`, 'POST', {})
  assert.not.match(await server.script(), 'older state of the server was restored')
  const restored = await server.json(`/workers/backups/${id}/restore`, 'POST')
  assert.equal(restored.disarmed, [{ mac: MAC, name: 'rack-1' }])
  assert.match(await server.script(), 'older state of the server was restored')
})

test('by command: a backup and a file, with the names in its output', async () => {
  await using home = await createServerHome()
  let id = ''
  {
    await using server = await start(home)
    await arm(server)
    id = await backUp(server)
  }
  await copyFile(home.at('state/state.db'), home.at('older.db'))
  for (const what of [id, home.at('older.db')]) {
    const { code, stdout } = await home.run(['restore', what])
    assert.is(code, 0)
    assert.match(stdout.replaceAll(/\s+/g, ' '), 'Arm them again when you are ready: rack-1 (52:54')
    await using server = await start(home)
    assert.match(await server.script(), 'older state of the server was restored')
    await server.json(`/machines/${MAC}/flash`, 'POST', {})
  }
})

test('a state.db that is older than the counter beside it, or has none', async () => {
  await using home = await createServerHome()
  const path = home.at('state/state.db')
  {
    await using server = await start(home)
    await arm(server)
  }
  await copyFile(path, home.at('older.db'))
  {
    await using server = await start(home)
    assert.not.match(
      await server.script(),
      'older state of the server was restored',
      'a restart keeps orders',
    )
    await server.ask(`/pxe/${MAC}/done`, { method: 'POST' })
  }
  const ways = [
    async () => copyFile(home.at('older.db'), path),
    async () => rm(home.at('state/changes.json')),
  ]
  for (const change of ways) {
    await change()
    await using server = await start(home)
    assert.match(await server.script(), 'older state of the server was restored')
    const { events } = await server.json('/events?kind=system.state.disarmed&limit=1')
    assert.equal(events[0].details.disarmed, [{ mac: MAC, name: 'rack-1' }])
    assert.match(events[0].summary, /changes\.json .*when you are ready: rack-1/)
    const dashboard = await (await server.ask('/ui/dashboard')).text()
    assert.match(dashboard, 'when you are ready: rack-1')
    await server.json(`/machines/${MAC}/flash`, 'POST', {})
  }
  assert.match(await readFile(home.at('state/changes.json'), 'utf8'), /"count":\d+/)
})

test.run()
