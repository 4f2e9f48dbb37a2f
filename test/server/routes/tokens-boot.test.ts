/** Boot tokens over HTTP: which machines are let in, what refused ones get, and what a replay achieves. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { TokenPolicy } from '#server/current/machines/rules/token.ts'
import { diskOf, entryOf, MAC, OTHER_REF, REF } from '#test/support/server/machine-fixture.ts'
import { bodyOf, runIdOf } from '#test/support/server/runs.ts'
import { asJson, createTestServer, type TestServer } from '#test/support/server/server.ts'

const test = suite('boot tokens')

const FLASH = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }
const DISKS = { disks: [diskOf('S1'), diskOf('S2')] }
const NEIGHBOUR = '52:54:00:12:34:57'

async function open(tokens: TokenPolicy) {
  const clock = { seconds: 1_800_000_000 }
  const server = await createTestServer({
    catalog: [entryOf(REF), entryOf(OTHER_REF)],
    env: { FLASHER_PXE_TOKENS: tokens },
    now: () => new Date(clock.seconds * 1000),
  })
  const ask = await server.operator()
  const put = async (body: unknown, mac: string = MAC) => {
    clock.seconds += 1
    assert.is((await ask(`/machines/${mac}`, asJson(body, 'PUT'))).status, 200)
  }
  return { server, clock, put, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

/** What `GET /pxe/{mac}` puts on the kernel command line; null: nothing. */
async function boot(server: TestServer, mac: string = MAC): Promise<string | null> {
  const script = await (await server.request(`/pxe/${mac}`)).text()
  assert.match(script, /\nkernel /)
  return / flasher\.token=(\S+) /.exec(script)?.[1] ?? null
}

/** Each request of a machine, in the order of a flash. */
const ASKS = {
  inventory: [`/pxe/${MAC}/inventory`, asJson(DISKS)],
  plan: [`/pxe/${MAC}/plan`, {}],
  failed: [`/pxe/${MAC}/status`, asJson({ status: 'failed', reason: 'why' })],
  done: [`/pxe/${MAC}/done`, { method: 'POST' }],
} as const satisfies Record<string, readonly [string, RequestInit]>

async function send(server: TestServer, what: keyof typeof ASKS, token: string | null) {
  const [path, init] = ASKS[what]
  const headers = new Headers('headers' in init ? init.headers : {})
  if (token !== null) headers.set('authorization', `Bearer ${token}`)
  return await server.request(path, { ...init, headers })
}

async function statuses(server: TestServer, token: string | null) {
  const all: Record<string, number> = {}
  for (const what of ['inventory', 'plan', 'failed', 'done'] as const) {
    all[what] = (await send(server, what, token)).status
  }
  return all
}

const LET_IN = { inventory: 204, plan: 200, failed: 204, done: 204 }
const KEPT_OUT = { inventory: 401, plan: 401, failed: 401, done: 401 }

test('off: scripts carry none, and none is looked at', async () => {
  await using site = await open('off')
  await site.put(FLASH)
  assert.is(await boot(site.server), null)
  assert.equal(await statuses(site.server, null), LET_IN)
  assert.equal(await statuses(site.server, 'whatever'), LET_IN)
})

test('require: with the token of the boot all goes well, without one nothing does', async () => {
  await using site = await open('require')
  await site.put(FLASH)
  const token = await boot(site.server)
  assert.ok(token)
  assert.equal(await statuses(site.server, null), KEPT_OUT)
  const before = await site.server.machines.find(MAC)
  assert.equal(
    [before?.known_disks, before?.last_flashed_at, before?.cycle.planned],
    [null, null, false],
  )
  assert.equal(await statuses(site.server, token), LET_IN)
  const after = await site.server.machines.find(MAC)
  assert.is(after?.known_disks?.length, 2)
  assert.ok(after?.last_flashed_at)
})

test('require: a new machine is discovered by its script, not by asking for a plan', async () => {
  await using site = await open('require')
  assert.is((await send(site.server, 'plan', null)).status, 401)
  assert.is(await site.server.machines.find(MAC), null)
  const token = await boot(site.server)
  assert.is((await send(site.server, 'inventory', token)).status, 204)
})

test('prefer: nothing need be shown, which is noted; what is shown must be right', async () => {
  await using site = await open('prefer')
  await site.put(FLASH)
  assert.ok(await boot(site.server))
  assert.equal(await statuses(site.server, null), LET_IN)
  assert.is(
    (await site.server.journal.list({ kind: 'machine.token.missing', limit: 10 })).length,
    1,
  )
  assert.equal(await statuses(site.server, 'monkruo0.mom5bzbn.forged'), KEPT_OUT)
  await site.put({ ...FLASH, bty_image_ref: OTHER_REF })
  assert.equal(await statuses(site.server, await boot(site.server)), LET_IN)
})

test('each refusal says why, and is put on record', async () => {
  await using site = await open('require')
  await site.put(FLASH)
  await site.put(FLASH, NEIGHBOUR)
  const [token, foreign] = [await boot(site.server), await boot(site.server, NEIGHBOUR)]
  const why = async (shown: string | null) => {
    const answer = await send(site.server, 'plan', shown)
    assert.is(answer.status, 401)
    assert.is(answer.headers.get('www-authenticate'), 'Bearer')
    const { detail } = await answer.json()
    return detail
  }
  assert.match(await why(null), /requires one \(\[pxe\] tokens = require\)/)
  assert.match(await why('x'), /not a boot token/)
  assert.match(await why(foreign), /for another server or machine/)
  await site.put({ ...FLASH, bty_image_ref: OTHER_REF })
  assert.match(await why(token), /the machine was changed since/)
  const fresh = await boot(site.server)
  site.clock.seconds += 24 * 3600 + 1
  assert.match(await why(fresh), /has expired/)
  const [event] = await site.server.journal.list({ kind: 'machine.token.refused', limit: 1 })
  assert.match(event?.summary ?? '', /was not admitted: the boot token/)
})

test('a token that was caught is worth nothing once the machine was given something else to do', async () => {
  await using site = await open('require')
  await site.put(FLASH)
  const caught = await boot(site.server)
  assert.is((await send(site.server, 'plan', caught)).status, 200)
  await send(site.server, 'done', caught)
  const flashed = await site.server.machines.find(MAC)
  site.clock.seconds += 60
  await site.put({ ...FLASH, bty_image_ref: OTHER_REF })
  await boot(site.server)
  assert.is((await send(site.server, 'plan', caught)).status, 401, 'no plan')
  assert.is((await send(site.server, 'done', caught)).status, 204, 'told again')
  const after = await site.server.machines.find(MAC)
  assert.is(after?.cycle.finished_at, null, 'it does not end what is asked for now')
  assert.is.not(after?.last_flashed_at, flashed?.last_flashed_at, 'each done is noted')
  await site.put({ ...FLASH, target_disk_serial: 'S2' })
  assert.is((await send(site.server, 'done', caught)).status, 401, 'nor anything later')
})

test('a flash that was under way while its image was changed may tell its end', async () => {
  await using site = await open('require')
  await site.put(FLASH)
  const token = await boot(site.server)
  await send(site.server, 'plan', token)
  await site.put({ ...FLASH, bty_image_ref: OTHER_REF })
  await site.put({ ...FLASH, target_disk_serial: 'S2' })
  assert.is((await send(site.server, 'plan', token)).status, 401)
  assert.is((await send(site.server, 'done', token)).status, 204)
  const machine = await site.server.machines.find(MAC)
  assert.ok(machine?.last_flashed_at)
  assert.equal([machine?.cycle.finished_at, machine?.cycle.carried], [null, false])
})

test('flash-always: done twice with one token is one flash', async () => {
  await using site = await open('require')
  await site.put({ ...FLASH, boot_mode: 'flasher-flash-always' })
  const first = await boot(site.server)
  await send(site.server, 'plan', first)
  site.clock.seconds += 60
  assert.is((await send(site.server, 'done', first)).status, 204)
  const once = await site.server.machines.find(MAC)
  site.clock.seconds += 60
  const second = await boot(site.server)
  await send(site.server, 'plan', second)
  assert.is((await send(site.server, 'done', first)).status, 204, 'its answer was lost')
  const twice = await site.server.machines.find(MAC)
  assert.is.not(twice?.last_flashed_at, once?.last_flashed_at, 'each done is noted')
  assert.ok(twice?.cycle.planned, 'the second flash goes on')
})

test('an old failure does not make what is under way now a failed one', async () => {
  await using site = await open('require')
  await site.put(FLASH)
  const first = await boot(site.server)
  await send(site.server, 'plan', first)
  await site.put({ ...FLASH, bty_image_ref: OTHER_REF })
  await send(site.server, 'plan', await boot(site.server))
  assert.is((await send(site.server, 'failed', first)).status, 204)
  const machine = await site.server.machines.find(MAC)
  assert.equal([machine?.cycle.failure, machine?.cycle.planned], [null, true])
})

test('what is on record and on the log holds no token', async () => {
  await using site = await open('require')
  await site.put(FLASH)
  const token = await boot(site.server)
  await statuses(site.server, token)
  const events = JSON.stringify(await site.server.journal.list({ limit: 100 }))
  assert.not.ok(events.includes(token ?? '?'))
  assert.not.ok(site.server.log.join('\n').includes(token ?? '?'))
})

async function openRuns() {
  const clock = { seconds: 1_800_000_000 }
  const server = await createTestServer({
    catalog: [entryOf(REF), entryOf(OTHER_REF)],
    env: { FLASHER_PXE_TOKENS: 'require' },
    now: () => new Date(clock.seconds * 1000),
  })
  const ask = await server.operator()
  const sendAs = async (token: string, path: string, body?: unknown, method = 'POST') => {
    clock.seconds += 1
    const init = body === undefined ? { method } : asJson(body, method)
    const headers = new Headers(init.headers)
    headers.set('authorization', `Bearer ${token}`)
    return await server.request(`/pxe/${MAC}${path}`, { ...init, headers })
  }
  return {
    server,
    put: async (body: object) => {
      clock.seconds += 1
      assert.is((await ask(`/machines/${MAC}`, asJson(body, 'PUT'))).status, 200)
    },
    boot: async () => {
      clock.seconds += 1
      const script = await (await server.request(`/pxe/${MAC}`)).text()
      return / flasher\.token=(\S+) /.exec(script)?.[1] ?? ''
    },
    plan: async (token: string) => (await sendAs(token, '/plan', undefined, 'GET')).status,
    done: async (token: string) => (await sendAs(token, '/done')).status,
    list: (token: string) => sendAs(token, '/inventory', { disks: [diskOf('S1')] }),
    hardware: async (token: string, id: string) =>
      (await sendAs(token, '/inventory', { disks: [diskOf('S2')], lshw: { id } })).status,
    wait: (seconds: number) => void (clock.seconds += seconds),
    report: (token: string, fields: Parameters<typeof bodyOf>[0]) =>
      sendAs(token, '/progress', bodyOf(fields)),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

test('an earlier boot ends its own run, and begins and lists nothing', async () => {
  await using site = await openRuns()
  await site.put(FLASH)
  const old = await site.boot()
  assert.is(await site.plan(old), 200)
  assert.is((await site.list(old)).status, 204, 'the hardware comes late')
  assert.is((await site.report(old, { bytes_written: 5 })).status, 204)
  await site.put({ ...FLASH, bty_image_ref: OTHER_REF })
  const other = await site.report(old, { run: runIdOf(2) })
  assert.is(other.status, 401)
  assert.match((await other.json()).detail, /for an earlier boot/)
  assert.is((await site.list(old)).status, 401)
  assert.is((await site.report(old, { phase: 'done', bytes_written: 9 })).status, 204)
  assert.equal(
    [site.server.runs.find(MAC, runIdOf(1))?.result, site.server.runs.count({})],
    ['done', 1],
  )
})

test('while its flash goes on, a token holds whatever the clock says, and is over with it', async () => {
  for (const years of [30, -20]) {
    await using site = await openRuns()
    await site.put(FLASH)
    const token = await site.boot()
    await site.plan(token)
    assert.is((await site.report(token, { bytes_written: 5 })).status, 204)
    site.wait(years * 365 * 86_400)
    assert.is((await site.report(token, { bytes_written: 7 })).status, 204)
    assert.is((await site.report(token, { phase: 'done', bytes_written: 9 })).status, 204)
    assert.is(await site.done(token), 204)
    assert.is(site.server.runs.find(MAC, runIdOf(1))?.result, 'done')
    site.wait(-years * 365 * 86_400 + 24 * 3600)
    assert.is(await site.plan(token), 401)
  }
})

test('after done, the token of that boot begins and lists nothing', async () => {
  for (const boot_mode of ['flasher-flash-once', 'flasher-flash-always']) {
    await using site = await openRuns()
    await site.put({ ...FLASH, boot_mode })
    const token = await site.boot()
    await site.plan(token)
    await site.report(token, {})
    assert.is(await site.done(token), 204)
    assert.is((await site.report(token, { run: runIdOf(2) })).status, 401)
    site.wait(180)
    const list = await site.list(token)
    assert.is(list.status, 401)
    assert.match((await list.json()).detail, /flash of this boot is done|machine was changed/)
    assert.is((await site.report(token, { phase: 'done' })).status, 204, 'told again')
    assert.is(site.server.runs.count({}), 1)
  }
})

/** What the server has of the machine's hardware and disks. */
async function recordOf({ machines }: TestServer) {
  const [hardware, machine] = await Promise.all([machines.findHardware(MAC), machines.find(MAC)])
  const { known_disks, known_disks_at, cycle } = machine ?? {}
  return { hardware: hardware?.json, known_disks, known_disks_at, cycle }
}

test('hardware that was read longer than the flash took is kept, and nothing else', async () => {
  for (const boot_mode of ['flasher-flash-once', 'flasher-flash-always']) {
    await using site = await openRuns()
    await site.put({ ...FLASH, boot_mode })
    const token = await site.boot()
    await site.list(token)
    await site.plan(token)
    assert.is(await site.done(token), 204)
    const kept = { ...(await recordOf(site.server)), hardware: '{"id":"box"}' }
    assert.is(await site.hardware(token, 'box'), 204)
    assert.equal(await recordOf(site.server), kept)
    const [told, refused] = await Promise.all(
      ['machine.inventory', 'machine.token.refused'].map((kind) =>
        site.server.journal.list({ kind, limit: 1 }),
      ),
    )
    assert.equal(refused, [])
    assert.is(told?.[0]?.summary, `${MAC} reported its hardware after its flash`)
    site.wait(180)
    assert.is(await site.hardware(token, 'later'), 401)
    assert.equal(await recordOf(site.server), kept)
  }
})

test('hardware of an earlier boot does not replace what a new one told', async () => {
  await using site = await openRuns()
  await site.put({ ...FLASH, boot_mode: 'flasher-flash-always' })
  const old = await site.boot()
  await site.plan(old)
  assert.is(await site.done(old), 204)
  const fresh = await site.boot()
  assert.is(await site.hardware(fresh, 'new'), 204)
  assert.is(await site.hardware(old, 'old'), 401)
  assert.is((await recordOf(site.server)).hardware, '{"id":"new"}')
})

test('the done of an earlier boot leaves the run of now alone, and makes none', async () => {
  await using site = await openRuns()
  await site.put({ ...FLASH, boot_mode: 'flasher-flash-always' })
  const [first] = [await site.boot()]
  await site.plan(first)
  assert.is(await site.done(first), 204)
  const second = await site.boot()
  await site.plan(second)
  assert.is(await site.done(first), 204, 'its answer was lost')
  assert.is(site.server.runs.count({}), 1)
  assert.is((await site.report(second, { run: runIdOf(2) })).status, 204)
  assert.is(await site.done(first), 204)
  assert.is(site.server.runs.findRunning(MAC)?.id, runIdOf(2))
})

test('a machine whose disks are asked for lists them, then its hardware', async () => {
  await using site = await openRuns()
  const token = await site.boot()
  assert.is((await site.list(token)).status, 204)
  assert.is(await site.plan(token), 200)
  assert.is((await site.list(token)).status, 204)
})

test.run()
