/** First-boot templates over HTTP: kept, shown without secrets, and handed to a live system once. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseFirstBoot } from '#engine/first-boot/rules/seed.ts'
import { DOTS } from '#engine/first-boot/rules/template.ts'
import type { TokenPolicy } from '#server/current/machines/rules/token.ts'
import { diskOf, entryOf, MAC, REF } from '#test/support/server/machine-fixture.ts'
import { asJson, createTestServer } from '#test/support/server/server.ts'

const test = suite('first-boot templates')

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB ada@example'
const TEMPLATE = { hostname: '{{name}}', users: [{ name: 'ada', ssh_keys: [KEY], sudo: true }] }
const SECRET = { commands: ['join {{secret.token}}'], secrets: { token: 'geheim-77' } }
const FLASH = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }
const PLAN = `/pxe/${MAC}/plan`
const KNOWS = `${PLAN}?features=first-boot`
const FETCH = `/pxe/${MAC}/first-boot`

async function open(tokens: TokenPolicy = 'off') {
  const clock = { seconds: 1_800_000_000 }
  const server = await createTestServer({
    catalog: [entryOf(REF)],
    env: { FLASHER_PXE_TOKENS: tokens },
    now: () => new Date(clock.seconds * 1000),
  })
  const ask = await server.operator()
  return {
    server,
    clock,
    ask,
    /** Expects a success. */
    async put(path: string, body: unknown) {
      const answer = await ask(path, asJson(body, 'PUT'))
      assert.is(answer.status, 200, await answer.clone().text())
      return await answer.json()
    },
    /** Fetches the plan, with the boot token of the script where it has one. */
    async plan(path = KNOWS) {
      const script = await (await server.request(`/pxe/${MAC}`)).text()
      const token = / flasher\.token=(\S+) /.exec(script)?.[1]
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
      const plan = await (await server.request(path, { headers })).json()
      return { plan, headers }
    },
    fetch: (token: string, headers: Readonly<Record<string, string>> = {}) =>
      server.request(FETCH, {
        ...asJson({ token }),
        headers: { 'content-type': 'application/json', ...headers },
      }),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** A template that is stored under a condition. */
const only = (name: string, value: string) => ({
  ...asJson({}, 'PUT'),
  headers: { 'content-type': 'application/json', [name]: value },
})

test('a template is created, listed without its secrets, replaced and removed', async () => {
  await using site = await open()
  const made = await site.put('/first-boot/web', { ...TEMPLATE, ...SECRET })
  assert.is(made.name, 'web')
  assert.equal(made.secrets, { token: DOTS })
  const again = await site.put('/first-boot/web', { ...SECRET, secrets: { token: DOTS } })
  assert.equal(again.users, [])
  const listed = await (await site.ask('/first-boot')).json()
  assert.equal(
    listed.map((one: { name: string; machines: number }) => [one.name, one.machines]),
    [['web', 0]],
  )
  await site.put(`/machines/${MAC}`, { ...FLASH, name: 'web-1', first_boot: 'web' })
  const kept = await site.ask('/first-boot/web', { method: 'DELETE' })
  assert.is(kept.status, 409)
  await site.put(`/machines/${MAC}`, { ...FLASH, first_boot: null })
  assert.is((await site.ask('/first-boot/web', { method: 'DELETE' })).status, 204)
  assert.is((await site.ask('/first-boot/web')).status, 404)
  const events = JSON.stringify(await site.server.journal.list({ limit: 50 }))
  assert.match(events, 'settings.first_boot.saved')
  assert.not.match(events, 'geheim')
  assert.not.match(site.server.log.join('\n'), 'geheim')
})

test('what is wrong is named, field by field', async () => {
  await using site = await open()
  const answer = await site.ask('/first-boot/web', asJson({ hostname: '{{nam}}' }, 'PUT'))
  assert.is(answer.status, 422)
  const { detail } = await answer.json()
  assert.equal(detail[0].loc, ['body', 'hostname'])
  assert.match(detail[0].msg, /^\{\{nam\}\} is not a placeholder/)
  assert.is((await site.ask('/first-boot/..%2fx', asJson({}, 'PUT'))).status, 422)
  assert.is((await site.ask('/first-boot/only', only('if-match', '*'))).status, 412)
  assert.is((await site.ask('/first-boot/only', only('if-none-match', '*'))).status, 200)
  assert.is((await site.ask('/first-boot/only', only('if-none-match', '*'))).status, 412)
  assert.is((await site.ask('/first-boot/only', only('if-match', '*'))).status, 200)
  const unknown = await site.ask(`/machines/${MAC}`, asJson({ first_boot: 'none' }, 'PUT'))
  assert.is(unknown.status, 422)
  assert.match(await unknown.text(), 'There is no first-boot template none')
})

test('one machine and many get a template; a PUT without the field keeps it', async () => {
  await using site = await open()
  await site.put('/first-boot/web', TEMPLATE)
  await site.put(`/machines/${MAC}`, FLASH)
  const bulk = (first_boot: string | null) =>
    site.ask(
      '/machines/bulk',
      asJson({ action: 'first-boot', macs: [MAC], parameters: { first_boot } }),
    )
  const refused = await (await bulk('none')).json()
  assert.equal(refused.results[0].reason, 'There is no first-boot template none.')
  assert.is((await (await bulk('web')).json()).done, 1)
  const kept = await site.put(`/machines/${MAC}`, FLASH)
  assert.is(kept.first_boot, 'web')
  const preview = await site.ask(`/machines/${MAC}/first-boot`)
  assert.is(preview.status, 409)
  assert.match(await preview.text(), 'the machine has no name')
  await site.put(`/machines/${MAC}`, { ...FLASH, name: 'web-1' })
  const shown = await (await site.ask(`/machines/${MAC}/first-boot`)).json()
  assert.match(shown.cloud_init['meta-data'], 'local-hostname: "web-1"')
  assert.match(shown.ignition, 'sshAuthorizedKeys')
})

test('the plan has an address and a token, which is good for one answer', async () => {
  await using site = await open()
  await site.put('/first-boot/web', TEMPLATE)
  await site.put(`/machines/${MAC}`, { ...FLASH, name: 'web-1', first_boot: 'web' })
  const { plan } = await site.plan()
  assert.is(plan.mode, 'flash')
  assert.is(plan.first_boot.url, `http://flasher.test:8080${FETCH}`)
  assert.not.match(JSON.stringify(plan), 'ssh-ed25519')
  const answer = await site.fetch(plan.first_boot.token)
  assert.is(answer.headers.get('cache-control'), 'no-store')
  const parsed = parseFirstBoot(await answer.json())
  assert.ok(parsed.ok)
  assert.match(parsed.value.cloudInit?.['user-data'] ?? '', KEY)
  assert.match(parsed.value.cloudInit?.['meta-data'] ?? '', /^instance-id: "flasher-[0-9a-f]{12}"/)
  const second = await site.fetch(plan.first_boot.token)
  assert.is(second.status, 401)
  assert.match(await second.text(), 'used already')
  // The answer may have been lost: a new plan of the same moment brings another.
  assert.is((await site.fetch((await site.plan()).plan.first_boot.token)).status, 200)
})

test('a machine that a person flashes learns of its template, and gets a token', async () => {
  await using site = await open()
  const ask = async () => await site.server.request(FETCH)
  assert.is((await ask()).status, 404)
  await site.put('/first-boot/web', TEMPLATE)
  await site.put(`/machines/${MAC}`, { boot_mode: 'flasher-tui', name: 'web-1' })
  assert.is((await ask()).status, 404)
  await site.put(`/machines/${MAC}`, { boot_mode: 'flasher-tui', name: null, first_boot: 'web' })
  assert.match(await (await ask()).text(), 'the machine has no name')
  await site.put(`/machines/${MAC}`, { boot_mode: 'ipxe-exit', name: 'web-1' })
  assert.is((await ask()).status, 409)
  await site.put(`/machines/${MAC}`, { boot_mode: 'flasher-tui' })
  const before = await (await site.ask(`/machines/${MAC}`)).text()
  const offer = await (await ask()).json()
  assert.equal(Object.keys(offer), ['template', 'token'])
  assert.is(offer.template, 'web')
  assert.is(await (await site.ask(`/machines/${MAC}`)).text(), before)
  assert.is((await site.fetch(offer.token)).status, 200)
  assert.is((await site.fetch(offer.token)).status, 401)
  const again = await (await ask()).json()
  assert.is((await site.fetch(again.token)).status, 200)
})

test('a token is of its machine, its server and its time', async () => {
  await using site = await open()
  await site.put('/first-boot/web', TEMPLATE)
  await site.put(`/machines/${MAC}`, { ...FLASH, name: 'web-1', first_boot: 'web' })
  const { plan } = await site.plan()
  const { token } = plan.first_boot
  assert.match(await (await site.fetch('x')).text(), 'not the token of a plan')
  const forged = `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`
  assert.match(await (await site.fetch(forged)).text(), 'for another server or machine')
  site.clock.seconds += 601
  assert.match(await (await site.fetch(token)).text(), 'expired')
})

test('a client that does not announce that it knows templates gets the wizard with the reason', async () => {
  await using site = await open()
  await site.put('/first-boot/web', TEMPLATE)
  await site.put(`/machines/${MAC}`, { ...FLASH, name: 'web-1', first_boot: 'web' })
  for (const path of [PLAN, `${PLAN}?features=other`]) {
    const { plan } = await site.plan(path)
    assert.is(plan.mode, 'interactive')
    assert.match(plan.reason, 'too old for first-boot templates')
  }
  // What does not fit is said before anything is fetched.
  await site.put(`/machines/${MAC}`, { ...FLASH, name: null })
  assert.match(
    (await site.plan()).plan.reason,
    'does not fit this machine: hostname: {{name}}: the machine has no name.',
  )
})

for (const tokens of ['off', 'prefer'] as const) {
  test(`[pxe] tokens = ${tokens}: a template with secrets is not handed out`, async () => {
    await using site = await open(tokens)
    await site.put('/first-boot/web', TEMPLATE)
    await site.put(`/machines/${MAC}`, { ...FLASH, name: 'web-1', first_boot: 'web' })
    const { plan } = await site.plan()
    await site.put('/first-boot/web', SECRET)
    assert.match((await site.plan()).plan.reason, 'has secrets. Set [pxe] tokens = require')
    // The token of the plan before is not one for what the template has become.
    const answer = await site.fetch(plan.first_boot.token)
    assert.is(answer.status, 409)
    assert.not.match(await answer.text(), 'geheim')
  })
}

test('[pxe] tokens = require: only the boot of this cycle gets the secrets', async () => {
  await using site = await open('require')
  await site.put('/first-boot/web', SECRET)
  await site.put(`/machines/${MAC}`, { ...FLASH, first_boot: 'web' })
  const inventory = { disks: [diskOf('S1')] }
  await site.server.request(`/pxe/${MAC}/inventory`, asJson(inventory))
  const { plan, headers } = await site.plan()
  assert.is((await site.fetch(plan.first_boot.token)).status, 401)
  assert.is((await site.server.request(FETCH)).status, 401)
  const answer = await site.fetch(plan.first_boot.token, headers)
  assert.match(await answer.text(), 'join geheim-77')
  const machine = JSON.stringify(await (await site.ask(`/machines/${MAC}`)).json())
  assert.not.match(machine, 'geheim')
})

test.run()
