/** Provisioning from the server: kept for a machine, fetched with the token of its boot. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'
import { bodyOf } from '#test/support/server/runs.ts'
import { asJson } from '#test/support/server/server.ts'

const test = suite('the earlier line: provisioning files')
const MAC = '52:54:00:12:34:56'
const OTHER = '52:54:00:12:34:57'
const SEED = '#cloud-config\npassword: hunter2\n'
const FLASH = { image: 'a.img', boot_policy: 'flash', provisioning_mode: 'cloud-init' }

type Server = Awaited<ReturnType<typeof createEarlierServer>>

/** The token that the machine's script carries. */
async function boot(server: Server, mac = MAC): Promise<string> {
  const script = await (await server.request(`/pxe/${mac}`)).text()
  return / flasher\.token=(\S+)/.exec(script)?.[1] ?? ''
}
const fetchAs = (server: Server, token: string, file = 'user-data', mac = MAC) =>
  server.request(`/pxe/${mac}/provision/${file}`, { headers: { authorization: `Bearer ${token}` } })
const put = (text: string): RequestInit => ({ method: 'PUT', body: text })

async function prepare(server: Server) {
  const ask = await server.operator()
  for (const mac of [MAC, OTHER]) await ask(`/machines/${mac}`, asJson(FLASH, 'PUT'))
  assert.is((await ask(`/machines/${MAC}/provision/user-data`, put(SEED))).status, 204)
  return ask
}

test('the machine that is flashed gets its files, byte by byte', async () => {
  await using server = await createEarlierServer()
  await prepare(server)
  const token = await boot(server)
  assert.ok(token)
  const seed = await fetchAs(server, token)
  assert.equal([seed.status, await seed.text()], [200, SEED])
  assert.is(seed.headers.get('cache-control'), 'no-store')
  // Not kept: the client makes its own.
  assert.is((await fetchAs(server, token, 'meta-data')).status, 404)
  assert.is((await fetchAs(server, token, 'cijoe-workflow')).status, 404)
  assert.is((await fetchAs(server, token, 'passwd')).status, 404)
})

test('without the token of this flash nobody reads anything', async () => {
  await using server = await createEarlierServer()
  const ask = await prepare(server)
  const token = await boot(server)
  const others = await boot(server, OTHER)
  for (const shown of ['', 'x', others, `${token}x`, token.slice(1)]) {
    const answer = await fetchAs(server, shown)
    assert.is(answer.status, 401, shown)
    assert.not.match(await answer.text(), 'hunter2')
  }
  assert.is((await server.request(`/pxe/${MAC}/provision/user-data`)).status, 401)
  assert.is((await fetchAs(server, token, 'user-data', '52:54:00:99:99:99')).status, 401)
  // One time: the end of the flash ends it.
  await server.request(`/pxe/${MAC}/done`, { method: 'POST' })
  assert.is((await fetchAs(server, token)).status, 401)
  const again = await boot(server)
  assert.is((await fetchAs(server, again)).status, 200)
  await ask(`/machines/${MAC}`, asJson({ ...FLASH, image: 'b.img' }, 'PUT'))
  assert.is((await fetchAs(server, again)).status, 401)
})

/** Changes the machine as an operator who has just logged in; returns the status. */
async function give(server: Server, body: object): Promise<number> {
  const ask = await server.operator()
  return (await ask(`/machines/${MAC}`, asJson(body, 'PUT'))).status
}

const YEAR = 365 * 86_400_000
const JUMPS = [3_600_000, -3_600_000, 30 * 86_400_000, 30 * YEAR, -20 * YEAR]

test('a token that is held while the clock is set is good until its flash ends, and void then', async () => {
  for (const jump of JUMPS) {
    for (const tells of [true, false]) {
      const clock = { time: 1_800_000_000_000 }
      const now = () => new Date((clock.time += 1000))
      await using server = await createEarlierServer({ now })
      await prepare(server)
      const token = await boot(server)
      if (tells) {
        assert.is((await server.request(`/pxe/${MAC}/progress`, asJson(bodyOf()))).status, 204)
      }
      clock.time += jump
      assert.is((await fetchAs(server, token)).status, 200, `${jump}`)
      // What an operator does meanwhile counts, whatever its time is.
      assert.is(await give(server, { ...FLASH, hostname: 'box' }), 200)
      assert.is((await fetchAs(server, token)).status, 200)
      const others = await boot(server, OTHER)
      assert.is((await fetchAs(server, others)).status, 401)
      assert.is((await server.request(`/pxe/${MAC}/done`, { method: 'POST' })).status, 204)
      clock.time -= jump
      assert.is((await fetchAs(server, token)).status, 401, 'it is done')
      const again = await boot(server)
      assert.is(await give(server, { ...FLASH, image: 'b.img' }), 200)
      clock.time += jump
      assert.is((await fetchAs(server, again)).status, 401, 'it has something else to do')
    }
  }
})

test('operators keep, read and remove them; a token that may only read may not', async () => {
  await using server = await createEarlierServer()
  const ask = await prepare(server)
  const path = `/machines/${MAC}/provision/user-data`
  assert.is(await (await ask(path)).text(), SEED)
  assert.is((await server.request(path)).status, 401)
  const made = await ask('/tokens', asJson({ name: 'reader', scopes: ['read'] }))
  const { token } = await made.json()
  const headers = { authorization: `Bearer ${token}` }
  assert.is((await server.request(path, { headers })).status, 403)
  assert.is((await ask(path, put('x'.repeat(1024 * 1024 + 1)))).status, 413)
  assert.is((await ask(`/machines/${MAC}/provision/..%2fx`, put('x'))).status, 404)
  assert.is((await ask(`/machines/52:54:00:99:99:99/provision/user-data`, put('x'))).status, 404)
  assert.is((await ask(path, { method: 'DELETE' })).status, 204)
  assert.is((await ask(path)).status, 404)
})

test('they lie in the state directory for its owner alone, and go with the machine', async () => {
  await using server = await createEarlierServer()
  const ask = await prepare(server)
  const folder = join(server.dir, 'state/provision')
  const [own = ''] = await readdir(folder)
  const { mode } = await stat(join(folder, own, 'user-data'))
  assert.is(mode & 0o777, 0o600)
  assert.is((await ask(`/machines/${MAC}`, { method: 'DELETE' })).status, 204)
  await ask(`/machines/${MAC}`, asJson(FLASH, 'PUT'))
  assert.is((await ask(`/machines/${MAC}/provision/user-data`)).status, 404)
})

test('what is in them is in no event', async () => {
  await using server = await createEarlierServer()
  await prepare(server)
  await fetchAs(server, await boot(server))
  const events = await server.journal.list({ limit: 100 })
  assert.ok(events.some(({ kind }) => kind === 'machine.provision_file.saved'))
  assert.not.match(JSON.stringify(events), 'hunter2')
})

test.run()
