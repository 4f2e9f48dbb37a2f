/** The real server: a restored backup, by page and by command, and an older state.db that was put back. */
import { copyFile, readFile, rm } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'

const test = suite('an older state arms nothing')
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
  assert.not.match(await server.script(), 'arms no machine')
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
  assert.match(question, /loses its order[^]*rack-1[^]*52:54:00:00:00:01/)
  const confirm = /T(\d\d-\d\d)-/.exec(id)?.[1] ?? ''
  const posted = await server.ask(`/ui/backups/${id}/restore`, {
    method: 'POST',
    body: new URLSearchParams({ confirm }),
  })
  const result = await (await server.ask(posted.headers.get('location') ?? '')).text()
  assert.match(result, /not flashed or captured until[^]*rack-1/)
  assert.match(await server.script(), 'arms no machine')
  const { mode } = await server.json(`/pxe/${MAC}/plan`)
  assert.is(mode, 'exit')
  const { events } = await server.json('/events?kind=backup.restored')
  assert.equal(events[0].details.disarmed, [{ mac: MAC, name: 'rack-1' }])
  assert.match(await (await server.ask(`/ui/machines/${MAC}`)).text(), 'do/flash')

  await server.json(`/machines/${MAC}/flash`, 'POST', {})
  assert.not.match(await server.script(), 'arms no machine')
  const restored = await server.json(`/workers/backups/${id}/restore`, 'POST')
  assert.equal(restored.disarmed, [{ mac: MAC, name: 'rack-1' }])
  assert.match(await server.script(), 'arms no machine')
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
    assert.match(stdout.replaceAll(/\s+/g, ' '), 'Flash again on their pages): rack-1 (52:54')
    await using server = await start(home)
    assert.match(await server.script(), 'arms no machine')
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
    assert.not.match(await server.script(), 'arms no machine', 'a restart keeps orders')
    await server.ask(`/pxe/${MAC}/done`, { method: 'POST' })
  }
  const ways = [
    async () => copyFile(home.at('older.db'), path),
    async () => rm(home.at('state/changes.json')),
  ]
  for (const change of ways) {
    await change()
    await using server = await start(home)
    assert.match(await server.script(), 'arms no machine')
    const { events } = await server.json('/events?kind=system.state.disarmed&limit=1')
    assert.equal(events[0].details.disarmed, [{ mac: MAC, name: 'rack-1' }])
    assert.match(events[0].summary, /changes\.json .*Flash again: rack-1/)
    const dashboard = await (await server.ask('/ui/dashboard')).text()
    assert.match(dashboard, 'Flash again: rack-1')
    await server.json(`/machines/${MAC}/flash`, 'POST', {})
  }
  assert.match(await readFile(home.at('state/changes.json'), 'utf8'), /"count":\d+/)
})

test.run()
