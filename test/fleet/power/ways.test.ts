/** What all ways to a machine's power promise alike, each with a real other end. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { BmcSchema, type Bmc } from '#fleet/power/rules/bmc.ts'
import { actWith, createSubject, macOf, PXE, TIMES } from '#test/support/power/acting.ts'
import { opened } from '#test/support/opened.ts'
import { startIpmi } from '#test/support/power/ipmi-emulator.ts'
import { startOutlet } from '#test/support/power/outlet-fake.ts'
import { BMC_USER, startRedfish } from '#test/support/power/redfish-fake.ts'

const test = suite('ways to power')
const redfish = opened(test, () => startRedfish())
const ipmi = opened(test, () => startIpmi())
const outlet = opened(test, () => startOutlet())
const packets: Buffer[] = []
const listener = opened(test, async (stack) => {
  const socket = createSocket('udp4').on('message', (packet) => packets.push(packet))
  stack.defer(() => void socket.close())
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return { port: socket.address().port }
})

interface Way {
  bmc(): Bmc
  isOn(): boolean | Promise<boolean>
  turn(on: boolean): void | Promise<void>
  /** What it boots from next. */
  boot(): unknown
  /** How often the other end was asked. */
  count(): number | Promise<number>
  readonly confirms: boolean
}

const WAYS: Readonly<Record<string, Way>> = {
  redfish: {
    bmc: () => BmcSchema.parse({ way: 'redfish', address: redfish().address }),
    isOn: () => redfish().state.isOn,
    turn: (on) => void (redfish().state.isOn = on),
    boot: () => redfish().state.boot['BootSourceOverrideTarget'],
    count: () => redfish().asked.length,
    confirms: true,
  },
  ipmi: {
    bmc: () => BmcSchema.parse({ way: 'ipmi', address: ipmi().address }),
    isOn: () => ipmi().isOn(),
    turn: (on) => ipmi().turn(on),
    boot: () => ipmi().boot(),
    count: async () => (await ipmi().log()).split('\n').length,
    confirms: true,
  },
  hook: {
    bmc: () => BmcSchema.parse(outlet().hook),
    isOn: () => outlet().state.isOn,
    turn: (on) => void (outlet().state.isOn = on),
    boot: () => outlet().state.boot,
    count: () => outlet().asked.length,
    confirms: false,
  },
}

test.before.each(async () => {
  redfish().reset()
  await ipmi().reset()
  Object.assign(outlet().state, {
    isOn: false,
    boot: 'none',
    status: 200,
    answer: 'json',
    words: [],
  })
})

/** Programs of BMCs answer late on a machine that is busy, and no test here is of a limit. */
const act = (...[subject, request]: Parameters<typeof actWith>) =>
  actWith(subject, request, { ...TIMES, limit: 30_000 })

for (const [name, way] of Object.entries(WAYS)) {
  const subject = () => createSubject(way.bmc(), BMC_USER)

  test(`${name}: reads what is, turns on and off, and changes nothing that is so already`, async () => {
    const read = await act(subject(), { action: 'read', boot: null })
    assert.equal(read, {
      ok: true,
      value: { state: 'off', confirmed: true, changed: false, boot: null },
    })
    for (const action of ['on', 'off'] as const) {
      const done = await act(subject(), { action, boot: null })
      assert.equal(done, {
        ok: true,
        value: { state: action, confirmed: true, changed: true, boot: null },
      })
      assert.is(await way.isOn(), action === 'on')
      const before = await way.count()
      assert.is((await act(subject(), { action, boot: null })).ok, true)
      // A reading, and nothing that turns anything.
      assert.ok((await way.count()) - before <= 6)
    }
  })

  test(`${name}: restarts by off and on, from the network once`, async () => {
    await way.turn(true)
    const done = await act(subject(), { action: 'restart', boot: PXE })
    const boot = way.confirms ? 'set' : 'sent'
    assert.equal(done, { ok: true, value: { state: 'on', confirmed: true, changed: true, boot } })
    assert.is(String(await way.boot()).toLowerCase(), 'pxe')
    assert.is(await way.isOn(), true)
  })

  test(`${name}: one that is on is not restarted where only turning on was asked`, async () => {
    await way.turn(true)
    const done = await act(subject(), { action: 'on', boot: PXE })
    assert.is(done.ok, false)
    assert.is(await way.isOn(), true)
  })

  test(`${name}: a wrong password ends it at once, and the failure says what to do`, async () => {
    const started = performance.now()
    const wrong = createSubject(way.bmc(), { user: 'admin', password: 'wrong' })
    const done = await act(wrong, { action: 'on', boot: null })
    assert.is(done.ok ? null : done.refusal.kind, 'login')
    assert.match(done.ok ? '' : done.refusal.fix, /user and password/i)
    assert.is(await way.isOn(), false)
    assert.ok(performance.now() - started < 10_000)
  })

  test(`${name}: nothing outside the networks is asked`, async () => {
    const before = await way.count()
    for (const networks of [[], ['192.0.2.0/24']]) {
      const outside = createSubject(way.bmc(), BMC_USER, { networks })
      const done = await act(outside, { action: 'on', boot: null })
      assert.is(done.ok ? null : done.refusal.kind, 'address')
    }
    assert.is(await way.count(), before)
  })
}

test('ipmi: the cipher suite that worked is remembered, and the password is in no argument', async () => {
  const subject = createSubject(BmcSchema.parse({ way: 'ipmi', address: ipmi().address }), BMC_USER)
  assert.is((await act(subject, { action: 'read', boot: null })).ok, true)
  assert.is(subject.learned().suite, 3)
  await subject.learn({ suite: 17 })
  assert.is((await act(subject, { action: 'read', boot: null })).ok, true)
  assert.is(subject.learned().suite, 3)
})

test('ipmi: a boot device that reads back as another is said', async () => {
  await ipmi().forgetBoots()
  const subject = createSubject(BmcSchema.parse({ way: 'ipmi', address: ipmi().address }), BMC_USER)
  const done = await act(subject, { action: 'on', boot: PXE })
  assert.is(done.ok ? null : done.refusal.kind, 'boot-lost')
  assert.is(await ipmi().isOn(), false)
})

test('ipmi: a password of 200 characters is refused before a byte is sent', async () => {
  const bmc = BmcSchema.parse({ way: 'ipmi', address: ipmi().address })
  const subject = createSubject(bmc, { user: 'admin', password: 'x'.repeat(200) })
  const done = await act(subject, { action: 'on', boot: null })
  assert.match(done.ok ? '' : done.refusal.seen, /at most 20 bytes/)
})

test('hook: reads a word as well, and says what a broken one answers', async () => {
  const subject = createSubject(BmcSchema.parse(outlet().hook), BMC_USER)
  Object.assign(outlet().state, { answer: 'text', isOn: true })
  const read = await act(subject, { action: 'read', boot: null })
  assert.is(read.ok && read.value.state, 'on')
  outlet().state.status = 404
  const done = await act(subject, { action: 'off', boot: null })
  assert.match(done.ok ? '' : done.refusal.seen, /answered 404/)
})

test('hook: what is neither on nor off is quoted without its secrets, and nothing is pressed', async () => {
  const said = '{"output":true,"key":"hunter22","user":"s3cret"}'
  const state = `${outlet().hook.state}?key=hunter22`
  const subject = createSubject(BmcSchema.parse({ ...outlet().hook, state }), BMC_USER)
  for (const action of ['read', 'on'] as const) {
    outlet().state.words = [said]
    const done = await act(subject, { action, boot: null })
    assert.is(done.ok ? null : done.refusal.kind, 'answer')
    const shown = done.ok ? '' : done.refusal.seen
    assert.ok(shown.endsWith('the hook answered {"output":true,"key":"…","user":"…"}'), shown)
  }
  assert.is(outlet().state.isOn, false)
  Object.assign(outlet().state, { status: 409, words: ['The relay is stuck'] })
  const refused = await act(subject, { action: 'read', boot: null })
  assert.match(refused.ok ? '' : refused.refusal.seen, /answered 409: The relay is stuck/)
})

test('hook: once it was pressed, other words are waited out', async () => {
  const subject = createSubject(BmcSchema.parse(outlet().hook), BMC_USER)
  outlet().state.words = ['off', 'warming up', 'warming up']
  const done = await act(subject, { action: 'on', boot: null })
  assert.is(done.ok && done.value.state, 'on')
})

test('hook: without a URL for the state it says that it cannot tell', async () => {
  const hook = BmcSchema.parse({ ...outlet().hook, state: null, network: null })
  const done = await act(createSubject(hook, BMC_USER), { action: 'restart', boot: PXE })
  assert.equal(done, {
    ok: true,
    value: { state: 'unknown', confirmed: false, changed: true, boot: 'own' },
  })
  assert.is(outlet().state.isOn, true)
})

test('Wake-on-LAN: sends the MAC sixteen times, and promises nothing', async () => {
  const { port } = listener()
  const bmc = BmcSchema.parse({ way: 'wake-on-lan', address: `127.0.0.1:${port}` })
  const subject = createSubject(bmc, null)
  const done = await act(subject, { action: 'on', boot: PXE })
  assert.equal(done, {
    ok: true,
    value: { state: 'unknown', confirmed: false, changed: true, boot: 'own' },
  })
  await new Promise((resolve) => setTimeout(resolve, 50))
  assert.is(packets.length, 3)
  const mac = macOf('52:54:00:00:00:01').replaceAll(':', '')
  assert.is(packets[0]?.toString('hex'), 'ff'.repeat(6) + mac.repeat(16))
  const off = await act(subject, { action: 'off', boot: null })
  assert.is(off.ok ? null : off.refusal.kind, 'unsupported')
  const outside = createSubject(bmc, null, { networks: ['192.0.2.0/24'] })
  const refused = await act(outside, { action: 'on', boot: null })
  assert.is(refused.ok ? null : refused.refusal.kind, 'address')
  assert.is(packets.length, 3)
})

test.run()
