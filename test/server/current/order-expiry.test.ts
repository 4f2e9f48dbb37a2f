/** `[pxe] armed_hours`: an order ends at its time, never once it has begun, and a clock that is wrong only ends it earlier. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createOrderClock, startOrderExpiry } from '#server/current/flash-gate.ts'
import { openBatchLab, RACK } from '#test/support/batch/batch-lab.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('the end of orders')
const [MAC = '', OTHER = ''] = RACK
const HOUR = 3600
const FLASH = { boot_mode: 'flasher-flash-once' }

async function open(armed_hours = 8) {
  const clock = { ms: Date.parse('2026-11-27T01:00:00Z'), elapsed: 0 }
  const lab = await openBatchLab({
    now: () => new Date(clock.ms),
    elapsed: () => clock.elapsed,
    env: { FLASHER_PXE_ARMED_HOURS: String(armed_hours) },
  })
  return {
    ...lab,
    set: (seconds: number) => void (clock.ms += seconds * 1000),
    pass(seconds: number) {
      clock.ms += seconds * 1000
      clock.elapsed += seconds * 1000
    },
    [Symbol.asyncDispose]: () => lab[Symbol.asyncDispose](),
  }
}

test('ends an order that nobody began; the mode stays, and it stays ended', async () => {
  await using lab = await open()
  await lab.put(MAC, FLASH)
  lab.pass(7.9 * HOUR)
  await lab.put(OTHER, FLASH)
  lab.pass(0.2 * HOUR)
  assert.is((await lab.plan(MAC)).mode, 'exit')
  assert.is(await lab.boot(MAC), 'expired')
  lab.set(-5 * HOUR)
  assert.is(await lab.boot(MAC), 'expired')
  assert.is(lab.server.machines.peek(macOf(lab, MAC))?.boot_mode, 'flasher-flash-once')
  assert.is(await lab.boot(OTHER), 'flash')
})

const macOf = (lab: Awaited<ReturnType<typeof open>>, mac: string) => {
  const found = lab.server.machines.peekAll().find((machine) => machine.mac === mac)
  if (found === undefined) throw new Error(mac)
  return found.mac
}

for (const [what, options] of [
  ['a live boot was offered', async (lab) => void (await lab.boot(MAC))],
  ['a plan was given', async (lab) => void (await lab.plan(MAC))],
] as const satisfies readonly (readonly [
  string,
  (lab: Awaited<ReturnType<typeof open>>) => Promise<void>,
])[]) {
  test(`never ends once ${what}`, async () => {
    await using lab = await open()
    await lab.put(MAC, FLASH)
    await options(lab)
    lab.pass(100 * HOUR)
    assert.match(await lab.boot(MAC), /^flash(-retry)?$/)
    assert.is((await lab.plan(MAC)).mode, 'flash')
  })
}

test('is off by default, and never ends what flashes always', async () => {
  await using off = await open(0)
  await off.put(MAC, FLASH)
  off.pass(1000 * HOUR)
  assert.is(await off.boot(MAC), 'flash')
  await using always = await open()
  await always.put(MAC, { boot_mode: 'flasher-flash-always' })
  always.pass(1000 * HOUR)
  assert.is(await always.boot(MAC), 'flash')
})

test('a clock that is set back ends nothing later, one that is set ahead only earlier', async () => {
  await using lab = await open()
  await lab.put(MAC, FLASH)
  lab.pass(4 * HOUR)
  assert.is((await lab.plan(OTHER)).mode, 'exit')
  lab.set(-3 * HOUR)
  lab.pass(4.1 * HOUR)
  assert.is(await lab.boot(MAC), 'expired')
  await lab.put(OTHER, FLASH)
  lab.set(9 * HOUR)
  assert.is(await lab.boot(OTHER), 'expired')
})

test('a start with a clock that is behind what is stored ends what was there', async () => {
  await using lab = await open()
  await lab.put(MAC, FLASH)
  const fleet = lab.server.machines.peekAll()
  const [{ cycle } = { cycle: { expires_at: null } }] = fleet.filter(({ mac }) => mac === MAC)
  const { expires_at } = cycle
  assert.is(expires_at, '2026-11-27T09:00:00.000Z')
  const at = (now: string) =>
    createOrderClock({ fleet, now: () => new Date(now), elapsed: () => 0 }).isPast(expires_at ?? '')
  assert.is(at('2026-11-27T01:00:01Z'), false)
  assert.is(at('2026-11-27T00:00:00Z'), true)
  assert.is(at('2026-11-27T09:00:00Z'), true)
})

test('is ended and put on record without its machine', async () => {
  await using lab = await open()
  await lab.put(MAC, FLASH)
  lab.pass(9 * HOUR)
  using _expiry = startOrderExpiry(lab.server.site, {})
  const isNoted = async () => (await lab.kinds('&kind=machine.order_expired')).length === 1
  await waitUntil(isNoted, () => 'the event')
  assert.is(await lab.boot(MAC), 'expired')
})

test.run()
