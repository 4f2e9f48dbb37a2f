/** Rows of both specifications on machines and sessions: spellings, times, what `done` leaves, who needs a session. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { LINES, type LineServer } from '#test/support/lines/both-lines.ts'
import { readEvents } from '#test/support/server/event-reader.ts'
import { cookieOf, PASSWORD } from '#test/support/server/assembled.ts'
import { asJson } from '#test/support/server/server.ts'

const MAC = '52:54:00:ab:cd:ef'
const SPELLINGS = [MAC, MAC.toUpperCase(), MAC.replaceAll(':', '-'), '52-54-00-AB-cd-EF']
const HOUR = 3_600_000
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/
/** Says whether an event is about the last of the 100 machines below. */
const isLast = ({ data }: { data: string }) => /52[:-]54[:-]00[:-]00[:-]01[:-]63/.test(data)
const post: RequestInit = { method: 'POST' }
const json = async (answer: Promise<Response>) => (await answer).json()

const logIn = async (server: LineServer) =>
  cookieOf(
    await server.request('/ui/login', {
      method: 'POST',
      body: new URLSearchParams({ password: PASSWORD }),
    }),
  )

for (const line of LINES) {
  const test = suite(`fields of both lines: ${line.name}`)

  test('"mac": any case, with : or -, is one machine, shown in lower case with colons', async () => {
    await using server = await line.create()
    const ask = await server.operator()
    for (const spelled of SPELLINGS) {
      const put = await json(ask(`/machines/${spelled}`, asJson(line.upsert, 'PUT')))
      assert.is(put.mac, MAC)
      assert.is((await json(ask(`/machines/${spelled}`))).mac, MAC)
      await server.request(`/pxe/${spelled}`)
    }
    assert.is(await server.machines.count(), 1)
    assert.is((await ask(`/machines/${SPELLINGS[3]}`, { method: 'DELETE' })).status, 204)
  })

  test('"Timestamps are ISO 8601 strings", or null where nothing has happened', async () => {
    await using server = await line.create()
    const ask = await server.operator()
    const path = `/machines/${MAC}`
    const made = await json(ask(path, asJson(line.upsert, 'PUT')))
    assert.equal([made.discovered_at, made.last_seen_at, made.last_flashed_at], [null, null, null])
    assert.match(made.created_at, ISO)
    assert.match(made.updated_at, ISO)
    await server.request(`/pxe/${MAC}`)
    await server.request(`/pxe/${MAC}/done`, post)
    const seen = await json(ask(path))
    for (const name of ['discovered_at', 'last_seen_at', 'last_flashed_at', 'updated_at']) {
      assert.match(seen[name], ISO, name)
    }
    assert.is(seen.created_at, made.created_at)
  })

  test('POST /pxe/{mac}/done leaves what the operator set; PUT replaces the fields', async () => {
    await using server = await line.create()
    const ask = await server.operator()
    const path = `/machines/${MAC}`
    await ask(path, asJson(line.upsert, 'PUT'))
    await server.request(`/pxe/${MAC}`)
    await server.request(`/pxe/${MAC}/done`, post)
    const done = await json(ask(path))
    for (const [name, value] of Object.entries(line.upsert)) assert.is(done[name], value, name)
    const again = await json(ask(path, asJson({}, 'PUT')))
    assert.is(again.last_flashed_at, done.last_flashed_at)
    const fresh = await json(ask('/machines/52:54:00:00:00:02', asJson({}, 'PUT')))
    for (const name of Object.keys(line.upsert)) assert.is(again[name], fresh[name], name)
  })

  test('"Open routes": no session is asked for', async () => {
    await using server = await line.create()
    await server.putBootFile('vmlinuz', 'kernel')
    for (const [path, status, init] of [
      ['/healthz', 200, {}],
      ['/version', 200, {}],
      [`/pxe/${MAC}`, 200, {}],
      [`/pxe/${MAC}/done`, 204, post],
      ['/pxe-bootstrap.ipxe', 200, {}],
      ['/boot/vmlinuz', 200, {}],
      ['/ui/login', 200, {}],
    ] as const) {
      assert.is((await server.request(path, init)).status, status, path)
    }
  })

  test('"no external network address is contacted": pages load from this server alone', async () => {
    await using server = await line.create()
    const page = await server.request('/ui/login')
    const policy = page.headers.get('content-security-policy') ?? ''
    assert.match(policy, /default-src '(none|self)'/)
    assert.not.match(policy, /https?:|\*/)
  })

  test('the session: a flag in a signed cookie that slides for 7 days', async () => {
    const clock = { at: Date.parse('2026-11-22T12:00:00Z') }
    await using server = await line.create({ now: () => new Date(clock.at) })
    const first = await logIn(server)
    const [claims = ''] = first.slice('flasher-token='.length).split('.')
    assert.is(JSON.parse(Buffer.from(claims, 'base64url').toString()).bty_authed, true)
    const use = (cookie: string) => server.request('/machines', { headers: { cookie } })
    clock.at += 2 * HOUR
    const slid = cookieOf(await use(first))
    assert.ok(slid !== '' && slid !== first)
    clock.at += 7 * 24 * HOUR - HOUR
    assert.is((await use(first)).status, 401)
    assert.is((await use(slid)).status, 200)
    clock.at += 2 * HOUR
    assert.is((await use(slid)).status, 401)
  })

  test('a consumer that does not read holds up nobody, and recovers', async () => {
    await using server = await line.create()
    const ask = await server.operator()
    const asleep = await ask('/events/machines')
    const awake = readEvents(await ask('/events/machines'))
    for (let n = 0; n < 100; n += 1) {
      const mac = `52:54:00:00:01:${n.toString(16).padStart(2, '0')}`
      assert.is((await server.request(`/pxe/${mac}`)).status, 200)
    }
    assert.ok(await awake.until(isLast))
    await awake.close()
    const late = readEvents(asleep)
    assert.ok(await late.until(isLast))
    await late.close()
  })

  test.run()
}
