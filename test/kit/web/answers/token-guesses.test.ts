/** Wrong bearers of the server: slowed and on record; right ones, sessions and machines never wait. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { entryOf, MAC, REF } from '#test/support/server/machine-fixture.ts'
import { PASSWORD } from '#test/support/server/assembled.ts'
import { asJson, createTestServer } from '#test/support/server/server.ts'

const test = suite('guessed tokens')

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

test('each wrong one after the third waits longer; a right one passes regardless', async () => {
  const clock = { now: Date.now() }
  await using server = await createTestServer({ now: () => new Date(clock.now) })
  const ask = await server.operator()
  const made = await ask('/tokens', asJson({ name: 'ci', scopes: ['read'] }))
  const { token } = await made.json()
  const guess = (n: number) => server.request('/machines', bearer(`guess-${n}`))
  for (let n = 0; n < 4; n++) assert.is((await guess(n)).status, 401)
  const slowed = await guess(4)
  assert.is(slowed.status, 429)
  assert.is(slowed.headers.get('retry-after'), '1')
  assert.match((await slowed.json()).detail, 'too many wrong tokens')
  assert.is((await server.request('/machines', bearer(token))).status, 200)
  assert.is((await ask('/machines')).status, 200)
  const form = new URLSearchParams({ password: PASSWORD })
  const login = await server.request('/ui/login', { method: 'POST', body: form })
  assert.is(login.status, 303, 'no bearer is a password here')
  clock.now += 1000
  assert.is((await guess(5)).status, 401)
  assert.is((await guess(6)).headers.get('retry-after'), '2')
  const noted = await server.journal.list({ kind: 'auth.token.failed', limit: 20 })
  assert.ok(noted.length > 0)
  assert.not.match(JSON.stringify(noted), 'guess')
})

test('thousands of guesses at once are a handful of checks', async () => {
  await using server = await createTestServer()
  const answers = await Promise.all(
    Array.from({ length: 2000 }, async (_, n) => {
      const answer = await server.request('/machines', bearer(`guess-${n}`))
      return answer.status
    }),
  )
  const checked = answers.filter((status) => status === 401)
  assert.ok(checked.length >= 4 && checked.length <= 12, `${checked.length} were looked at`)
})

test('a rack that shows wrong boot tokens is counted, and its done is taken', async () => {
  await using server = await createTestServer({
    catalog: [entryOf(REF)],
    env: { FLASHER_PXE_TOKENS: 'require' },
    now: () => new Date(1_800_000_000_000),
  })
  const ask = await server.operator()
  const flash = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }
  await ask(`/machines/${MAC}`, asJson(flash, 'PUT'))
  const script = await (await server.request(`/pxe/${MAC}`)).text()
  const token = / flasher\.token=(\S+) /.exec(script)?.[1] ?? ''
  for (let n = 0; n < 30; n++) {
    assert.is((await server.request(`/pxe/${MAC}/plan`, bearer(`stale-${n}`))).status, 401)
    await server.request('/machines', bearer(`guess-${n}`))
  }
  assert.is((await server.request('/machines', bearer('guess'))).status, 429)
  assert.is((await server.request(`/pxe/${MAC}/plan`, bearer(token))).status, 200)
  const done = await server.request(`/pxe/${MAC}/done`, { method: 'POST', ...bearer(token) })
  assert.is(done.status, 204)
  const metrics = await (await ask('/metrics')).text()
  assert.match(metrics, /flasher_boot_tokens_refused_total\{request="plan"\} 30\n/)
})

test.run()
