/** First boots over HTTP: from the configuration that a live system fetches to the word of the new system. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseFirstBoot } from '#engine/first-boot/rules/seed.ts'
import { diskOf, entryOf, MAC, REF } from '#test/support/server/machine-fixture.ts'
import { bodyOf, runIdOf } from '#test/support/server/runs.ts'
import { waitUntil } from '#test/support/waiting.ts'
import { asJson, createTestServer, readJson } from '#test/support/server/server.ts'

const test = suite('proof of the first boot')

const TEMPLATE = { hostname: 'web', commands: ['true'] }
const FLASH = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }
const OTHER = '52:54:00:00:00:99'

async function open({ enabled = true, url = '' } = {}) {
  const clock = { ms: Date.parse('2026-11-26T08:00:00.000Z') }
  const server = await createTestServer({
    catalog: [entryOf(REF)],
    now: () => new Date(clock.ms),
    env: {
      FLASHER_PROOF_ENABLED: String(enabled),
      FLASHER_PROOF_LIMIT: '1800',
      FLASHER_PROOF_URL: url,
      FLASHER_PROOF_PORT: '0',
    },
  })
  const ask = await server.operator()
  await ask('/first-boot/web', asJson(TEMPLATE, 'PUT'))
  await ask(`/machines/${MAC}`, asJson({ ...FLASH, first_boot: 'web' }, 'PUT'))
  await server.request(`/pxe/${MAC}/inventory`, asJson({ disks: [diskOf('S1')] }))
  const contact = () => server.request(`/pxe/${MAC}`)
  let runs = 0

  /** The machine fetches plan and configuration; returns the address that its new system calls, null: none. */
  async function fetchCall(): Promise<string | null> {
    await contact()
    const plan = await readJson(server.request(`/pxe/${MAC}/plan?features=first-boot`))
    const { token } = plan.first_boot
    const answer = await server.request(`/pxe/${MAC}/first-boot`, asJson({ token }))
    const parsed = parseFirstBoot(await answer.json())
    assert.ok(parsed.ok)
    const [, given = null] =
      /"url": "([^"]+)"/.exec(parsed.value.cloudInit?.['vendor-data'] ?? '') ?? []
    if (given !== null) assert.match(parsed.value.ignition ?? '', given)
    return given
  }
  async function write(phase: 'done' | 'failed' = 'done'): Promise<void> {
    runs += 1
    const post = (fields: Parameters<typeof bodyOf>[0]) =>
      server.request(`/pxe/${MAC}/progress`, asJson(bodyOf({ run: runIdOf(runs), ...fields })))
    await post({ phase: 'started' })
    clock.ms += 60_000
    await post({ phase })
    await server.request(`/pxe/${MAC}/status?run=${runIdOf(runs)}`, asJson({ status: phase }))
  }
  return {
    server,
    clock,
    tellAgain: () =>
      server.request(`/pxe/${MAC}/status?run=${runIdOf(runs)}`, asJson({ status: 'done' })),
    ask,
    contact,
    fetchCall,
    write,
    call: (address: string, body = 'instance_id=x', headers = {}) =>
      server.request(new URL(address).pathname, { method: 'POST', body, headers }),
    boot: async () => (await readJson(ask(`/machines/${MAC}/runs/${runIdOf(runs)}`))).proof,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

test('the new system calls its address once: the run has booted, and events and metrics say it', async () => {
  await using site = await open({ url: 'http://192.0.2.1:8080' })
  const address = (await site.fetchCall()) ?? ''
  assert.match(address, `http://192.0.2.1:8080/pxe/${MAC}/booted/`)
  await site.write()
  assert.is((await site.boot()).state, 'watching')
  site.clock.ms += 20_000
  await site.contact()
  site.clock.ms += 75_000
  const answer = await site.call(address)
  assert.equal([answer.status, await answer.text()], [204, ''])
  const proof = await site.boot()
  assert.equal([proof.state, proof.how, proof.seconds, proof.contacts], ['booted', 'call', 95, 1])
  const events = await readJson(site.ask('/events?kind=machine.booted'))
  assert.match(events.events[0].summary, `${MAC} booted its new system 95 s after its flash`)
  const metrics = await (await site.ask('/metrics')).text()
  assert.match(metrics, 'flasher_boot_total{result="booted",how="call"} 1')
  assert.is((await readJson(site.ask('/runs?boot=booted'))).total, 1)
  assert.match(await (await site.ask('/runs.csv')).text(), ',booted,call,95')
})

test('an address that is guessed, repeated, copied or too late changes nothing', async () => {
  await using site = await open()
  const address = (await site.fetchCall()) ?? ''
  const isSilent = async (path: string) => {
    const answer = await site.call(path)
    assert.equal([answer.status, await answer.text()], [204, ''], path)
  }
  // The live system knows it, and the flash is not over.
  await isSilent(address)
  await site.write()
  assert.is((await site.boot()).state, 'watching')
  await isSilent(
    address.replace(/\.([\w-])([\w-]+)$/, (_all, a, rest) => `.${a === 'A' ? 'B' : 'A'}${rest}`),
  )
  await isSilent(address.replace(MAC, OTHER))
  await isSilent(address.replace(/booted\/.*/, 'booted/guess'))
  await isSilent(address.replace(/booted\/[0-9a-z]+\./, 'booted/0.'))
  assert.is((await site.boot()).state, 'watching')
  site.clock.ms += 1801_000
  await site.server.proofs.sweep()
  assert.is((await site.boot()).state, 'not-seen')
  await isSilent(address)
  assert.is((await site.boot()).state, 'not-seen')
})

test('the address of the flash before is not of this one', async () => {
  await using site = await open()
  const first = (await site.fetchCall()) ?? ''
  await site.write()
  await site.ask(`/machines/${MAC}/flash`, asJson({}))
  site.clock.ms += 30_000
  const second = (await site.fetchCall()) ?? ''
  assert.is.not(first, second)
  await site.write()
  await site.call(first)
  assert.is((await site.boot()).state, 'watching')
  await site.call(second)
  assert.is((await site.boot()).state, 'booted')
  const events = await readJson(site.ask('/events?kind=machine.boot_not_seen'))
  assert.match(events.events[0].summary, 'The machine started another run')
})

test('a machine that boots from the network again and again failed to boot, until its system calls', async () => {
  await using site = await open()
  const address = (await site.fetchCall()) ?? ''
  await site.write()
  for (let boots = 0; boots < 3; boots++) {
    site.clock.ms += 40_000
    await site.contact()
  }
  await waitUntil(
    async () => (await site.boot()).state === 'failed',
    () => 'it failed to boot',
  )
  const failed = await readJson(site.ask('/events?failed=1'))
  assert.match(failed.events[0].summary, `${MAC} failed to boot its new system`)
  await site.call(address)
  assert.is((await site.boot()).state, 'booted')
})

test('a flash that failed is not waited for, nor one where nobody set it', async () => {
  await using site = await open()
  await site.fetchCall()
  await site.write('failed')
  assert.is(await site.boot(), null)
  await using off = await open({ enabled: false })
  assert.is(await off.fetchCall(), null)
  await off.write()
  assert.is(await off.boot(), null)
})

test('an end that is reported again begins the wait that a killed server never began, once and not much later', async () => {
  await using site = await open({ enabled: false })
  await site.write()
  site.server.set({ FLASHER_PROOF_ENABLED: 'true' })
  await site.tellAgain()
  assert.is((await site.boot()).state, 'watching')
  await site.server.proofs.leave(MAC)
  await site.tellAgain()
  assert.is((await site.boot()).state, 'not-seen')
  await using late = await open({ enabled: false })
  await late.write()
  late.server.set({ FLASHER_PROOF_ENABLED: 'true' })
  late.clock.ms += 16 * 60_000
  await late.tellAgain()
  assert.is(await late.boot(), null)
})

test('a call is short, and one address makes few', async () => {
  await using site = await open()
  const address = (await site.fetchCall()) ?? ''
  await site.write()
  assert.is((await site.call(address, 'x'.repeat(5000))).status, 413)
  const answers = []
  for (let calls = 0; calls < 302; calls++) {
    answers.push((await site.call(address.replace(/booted\/.*/, 'booted/guess'))).status)
  }
  assert.equal(new Set(answers), new Set([204, 429]))
  assert.is((await site.boot()).state, 'watching')
})

test('who asked for until booted gets the answer once the system was seen', async () => {
  await using site = await open()
  const order = asJson({ wait: 60, until: 'booted' })
  const waiting = readJson(site.ask(`/machines/${MAC}/flash`, order))
  await new Promise(setImmediate)
  const address = (await site.fetchCall()) ?? ''
  await site.write()
  site.clock.ms += 90_000
  await site.call(address)
  const answered = await waiting
  assert.equal([answered.outcome, answered.run, answered.proof.how], ['booted', runIdOf(1), 'call'])
  await using off = await open({ enabled: false })
  const refused = await off.ask(`/machines/${MAC}/flash`, order)
  assert.is(refused.status, 422)
  assert.match(await refused.text(), '[proof] enabled')
})

test('until booted says that it failed to boot, and that a flash failed', async () => {
  await using site = await open()
  const order = asJson({ wait: 60, until: 'booted' })
  const waiting = readJson(site.ask(`/machines/${MAC}/flash`, order))
  await new Promise(setImmediate)
  await site.fetchCall()
  await site.write()
  for (let boots = 0; boots < 3; boots++) {
    site.clock.ms += 40_000
    await site.contact()
  }
  assert.is((await waiting).outcome, 'failed-to-boot')
  const again = readJson(site.ask(`/machines/${MAC}/flash`, order))
  await new Promise(setImmediate)
  await site.fetchCall()
  await site.write('failed')
  assert.is((await again).outcome, 'failed')
})

test.run()
