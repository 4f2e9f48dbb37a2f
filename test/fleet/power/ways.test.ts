/** What all ways to a machine's power promise alike, each with a real other end. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import * as http from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { H3, toNodeHandler } from 'h3'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type Bmc, BmcSchema } from '#fleet/power/rules/bmc.ts'
import { createReach } from '#fleet/power/driver.ts'
import { createPower, openPowerBook } from '#fleet/power/power-service.ts'
import { makeFolder } from '#test/support/server/image-cache.ts'
import { printable } from '#kit/foundation/printable.ts'
import { createShell } from '#kit/host/shell.ts'
import { opened } from '#test/support/opened.ts'
import { actWith, createSubject, macOf, NETWORK, PXE, TIMES } from '#test/support/power/acting.ts'
import { startIpmi } from '#test/support/power/ipmi-emulator.ts'
import { BMC_USER, type Lies, startRedfish } from '#test/support/power/redfish-fake.ts'

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

test('a test says what is there, presses nothing and keeps nothing', async () => {
  await using folder = await makeFolder()
  const book = await openPowerBook(join(folder.path, 'power.json'))
  await using power = createPower({
    book,
    shell: createShell({ env: process.env }),
    findAddress: createReach(() => ({ networks: NETWORK, ownPorts: [] })),
    timeoutMs: 10_000,
    times: () => TIMES,
    now: () => new Date(),
  })
  const mac = macOf('52:54:00:00:00:01')
  const ask = (bmc: Bmc, password: string) =>
    power.test(mac, [], { bmc, credential: { user: BMC_USER.user, password } })
  for (const [name, way] of Object.entries(WAYS)) {
    await way.turn(true)
    const seen = await ask(way.bmc(), BMC_USER.password)
    assert.ok(seen.ok, name)
    assert.equal([seen.value.state, seen.value.can.slice(0, 2)], ['on', ['on', 'off']], name)
    if (name === 'redfish')
      assert.equal([seen.value.model, seen.value.firmware], ['Contoso', '2.5'])
    const wrong = name === 'hook' ? null : await ask(way.bmc(), 'wrong')
    assert.is(wrong === null || (!wrong.ok && wrong.refusal.kind), wrong === null || 'login', name)
    assert.is(await way.isOn(), true, name)
  }
  const wake = BmcSchema.parse({ way: 'wake-on-lan', address: '192.0.2.255' })
  const tests = await Promise.all(Array.from({ length: 17 }, () => ask(wake, '')))
  const kinds = tests.map((each) => !each.ok && each.refusal.kind)
  assert.equal([kinds[0], kinds.at(-1)], ['address', 'busy'])
  assert.equal([book.list(), power.lastSeen(mac)], [[], null])
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

const SEEDS = 100
const FAULT_TIMES = { limit: 600, poll: 10, again: 120, rest: 10 }
const PATIENCE_MS = 6000

const faultsTest = suite('seeded faults')
const fake = opened(faultsTest, () => startRedfish())

/** Mulberry32: the same faults for the same seed. */
function createDice(seed: number): (sides: number) => number {
  let state = seed
  return (sides) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * sides)
  }
}

const FAULTS: readonly ((dice: (sides: number) => number) => Partial<Lies>)[] = [
  (dice) => ({ lagMs: 20 + dice(900) }),
  (dice) => ({ task: dice(2) === 0 ? 'Completed' : 'Exception' }),
  (dice) => ({ lostResets: dice(8) }),
  (dice) => ({ earlyReadings: dice(2), lagMs: dice(200) }),
  (dice) => ({ lostBoots: dice(6) }),
  (dice) => ({ errors: dice(12) }),
  (dice) => ({ cuts: dice(12) }),
  (dice) => ({ cutsAfter: dice(8) }),
  (dice) => ({ maxSessions: dice(2) }),
  (dice) => ({ wantsEtag: true, weakEtags: dice(2) === 0 }),
  (dice) => ({ restartMs: dice(900) }),
  (dice) => ({ slowMs: dice(120) }),
  () => ({ hostile: true }),
  (dice) => ({ garbage: dice(6) }),
]

/** What is tried with a seed, after the faults of it have been put in place. */
function prepare(seed: number) {
  fake().reset()
  const dice = createDice(seed)
  for (let count = 1 + dice(3); count > 0; count -= 1) {
    Object.assign(fake().lies, FAULTS[dice(FAULTS.length)]?.(dice))
  }
  const action = (['on', 'off', 'restart'] as const)[dice(3)] ?? 'on'
  fake().state.isOn = action !== 'on'
  const boot = action !== 'off' && dice(2) === 0 ? PXE : null
  return { action, boot, told: `seed ${seed}, ${action}, ${JSON.stringify(fake().lies)}` }
}

async function tryOnce(seed: number): Promise<boolean> {
  const { action, boot, told } = prepare(seed)
  const started = performance.now()
  const bmc = BmcSchema.parse({ way: 'redfish', address: fake().address })
  const done = await actWith(createSubject(bmc, BMC_USER), { action, boot }, FAULT_TIMES)
  assert.ok(performance.now() - started < PATIENCE_MS, `it took too long: ${told}`)
  if (done.ok) {
    assert.is(fake().state.isOn, action !== 'off', told)
    assert.is(done.value.state, action === 'off' ? 'off' : 'on', told)
    if (boot !== null) assert.is(fake().state.boot['BootSourceOverrideTarget'], 'Pxe', told)
    return true
  }
  const { asked, seen, fix } = done.refusal
  assert.match(asked, / failed$/, told)
  assert.ok(seen !== '' && fix.endsWith('.'), told)
  assert.is(printable(seen + fix), seen + fix, told)
  return false
}

faultsTest(
  `${SEEDS} seeds: done is done, and a failure says what was asked, seen and to be done`,
  async () => {
    let overcome = 0
    for (let seed = 1; seed <= SEEDS; seed += 1) if (await tryOnce(seed)) overcome += 1
    assert.ok(overcome > SEEDS / 2, `${overcome} of ${SEEDS} were overcome`)
  },
)

const SUSHY = `
import sys
import sushy
from sushy import auth
login = auth.SessionOrBasicAuth('admin', 's3cret')
root = sushy.Sushy(sys.argv[1], auth=login)
system = root.get_system('/redfish/v1/Systems/1')
assert system.power_state == sushy.PowerState.OFF, system.power_state
system.set_system_boot_options(
    sushy.BootSource.PXE, enabled=sushy.BootSourceOverrideEnabled.ONCE, mode=sushy.BootSourceOverrideMode.UEFI)
system.refresh()
assert system.boot.target == sushy.BootSource.PXE, system.boot.target
assert system.boot.enabled == sushy.BootSourceOverrideEnabled.ONCE
system.reset_system(sushy.ResetType.ON)
system.refresh()
assert system.power_state == sushy.PowerState.ON
media = root.get_manager('/redfish/v1/Managers/1').virtual_media.get_members()
media[0].insert_media('http://192.0.2.1/x.iso')
login.close()
print('agreed')
`

const judgesTest = suite('judges of the Redfish BMC of the tests')
const judged = opened(judgesTest, () => startRedfish())
const shell = createShell({ env: process.env })
judgesTest.before.each(() => judged().reset())

judgesTest('sushy turns it on from the network and inserts a CD', async () => {
  const ran = await shell.run(['/usr/bin/python3', '-c', SUSHY, judged().address], {
    timeout: 60_000,
  })
  assert.match(ran.stdout, /agreed/, ran.stderr)
  assert.is(judged().state.isOn, true)
  assert.is(judged().state.image, 'http://192.0.2.1/x.iso')
  assert.is(judged().sessions(), 0)
})

judgesTest('redfishtool turns it on and reads that it is', async () => {
  const tool = ['redfishtool', '-r', `127.0.0.1:${judged().port}`, '-S', 'Never', '-u', 'admin']
  const login = ['-p', 's3cret', '-A', 'Basic', 'Systems', '-I', '1']
  const set = await shell.run([...tool, ...login, 'reset', 'On'], { timeout: 60_000 })
  assert.is(set.exitCode, 0, set.stderr + set.stdout)
  assert.is(judged().state.isOn, true)
  const read = await shell.run([...tool, ...login, 'get'], { timeout: 60_000 })
  assert.match(read.stdout, /"PowerState": "On"/, read.stderr)
})

/** Starts it on a free port of 127.0.0.1; it wants the user `admin` with the password `s3cret`. */
async function startOutlet() {
  const state = {
    isOn: false,
    boot: 'none',
    status: 200,
    answer: 'json' as 'json' | 'text',
    /** What it says instead of its state, or beside another status, one after the other. */
    words: [] as string[],
  }
  const asked: string[] = []
  const app = new H3()
  const wanted = `Basic ${Buffer.from('admin:s3cret').toString('base64')}`
  app.use((event, next) => {
    asked.push(`${event.req.method} ${event.url.pathname}`)
    if (event.req.headers.get('authorization') !== wanted) return new Response('', { status: 401 })
    if (state.status !== 200) return new Response(state.words.shift(), { status: state.status })
    return next()
  })
  const turn = (on: boolean) => () => {
    state.isOn = on
    return 'OK'
  }
  app.post('/:mac/on', turn(true))
  app.post('/:mac/off', turn(false))
  app.post('/:mac/pxe', () => {
    state.boot = 'pxe'
    return 'OK'
  })
  app.get('/:mac/state', () => {
    const other = state.words.shift()
    if (other !== undefined) return other
    const word = state.isOn ? 'ON' : 'OFF'
    return state.answer === 'json' ? { POWER: word } : `${word}\n`
  })
  const server = http.createServer(toNodeHandler(app))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const url = (verb: string) => `http://127.0.0.1:${port}/{mac}/${verb}`
  return {
    state,
    asked,
    hook: { way: 'hook', on: url('on'), off: url('off'), state: url('state'), network: url('pxe') },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

test.run()
faultsTest.run()
judgesTest.run()
