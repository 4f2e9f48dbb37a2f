/** What a boot token is worth for runs and disks once its flash is done, or its cycle is over. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { diskOf, entryOf, MAC, OTHER_REF, REF } from '#test/support/server/machine-fixture.ts'
import { bodyOf, runIdOf } from '#test/support/server/runs.ts'
import { asJson, createTestServer, type TestServer } from '#test/support/server/server.ts'

const test = suite('boot tokens and runs')

const FLASH = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }

async function open() {
  const clock = { seconds: 1_800_000_000 }
  const server = await createTestServer({
    catalog: [entryOf(REF), entryOf(OTHER_REF)],
    env: { FLASHER_PXE_TOKENS: 'require' },
    now: () => new Date(clock.seconds * 1000),
  })
  const ask = await server.operator()
  const send = async (token: string, path: string, body?: unknown, method = 'POST') => {
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
    plan: async (token: string) => (await send(token, '/plan', undefined, 'GET')).status,
    done: async (token: string) => (await send(token, '/done')).status,
    list: (token: string) => send(token, '/inventory', { disks: [diskOf('S1')] }),
    hardware: async (token: string, id: string) =>
      (await send(token, '/inventory', { disks: [diskOf('S2')], lshw: { id } })).status,
    wait: (seconds: number) => void (clock.seconds += seconds),
    report: (token: string, fields: Parameters<typeof bodyOf>[0]) =>
      send(token, '/progress', bodyOf(fields)),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

test('an earlier boot ends its own run, and begins and lists nothing', async () => {
  await using site = await open()
  await site.put(FLASH)
  const old = await site.boot()
  assert.is(await site.plan(old), 200)
  assert.is((await site.list(old)).status, 204, 'the hardware comes late')
  assert.is((await site.report(old, { bytes_written: 5 })).status, 204)
  await site.put({ ...FLASH, bty_image_ref: OTHER_REF })
  const other = await site.report(old, { run: runIdOf(2) })
  assert.is(other.status, 401)
  assert.match((await other.json()).detail, /of an earlier boot/)
  assert.is((await site.list(old)).status, 401)
  assert.is((await site.report(old, { phase: 'done', bytes_written: 9 })).status, 204)
  assert.equal(
    [site.server.runs.find(MAC, runIdOf(1))?.result, site.server.runs.count({})],
    ['done', 1],
  )
})

test('while its flash goes on, a token holds whatever the clock says, and is over with it', async () => {
  for (const years of [30, -20]) {
    await using site = await open()
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
    await using site = await open()
    await site.put({ ...FLASH, boot_mode })
    const token = await site.boot()
    await site.plan(token)
    await site.report(token, {})
    assert.is(await site.done(token), 204)
    assert.is((await site.report(token, { run: runIdOf(2) })).status, 401)
    site.wait(180)
    const list = await site.list(token)
    assert.is(list.status, 401)
    assert.match((await list.json()).detail, /flash is done|given something else/)
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
    await using site = await open()
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
  await using site = await open()
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
  await using site = await open()
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
  await using site = await open()
  const token = await site.boot()
  assert.is((await site.list(token)).status, 204)
  assert.is(await site.plan(token), 200)
  assert.is((await site.list(token)).status, 204)
})

test.run()
