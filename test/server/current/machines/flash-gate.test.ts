/** A fleet at the gate: never more than may flash, first come first served, nobody forgotten. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { FlashSlot } from '#engine/inventory/rules/machine.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import {
  createFlashGate,
  createOrderClock,
  startOrderExpiry,
} from '#server/current/machines/flash-gate.ts'
import { type BootRuling, decideBoot, decideSlot } from '#server/current/machines/rules/boot.ts'
import * as contacts from '#server/current/machines/rules/contact.ts'
import { type Machine, parseRecord } from '#server/current/machines/rules/machine.ts'
import { startCycle } from '#server/current/machines/rules/operator-edits.ts'
import { openBatchLab, RACK } from '#test/support/batch/batch-lab.ts'
import { createFixture, REF } from '#test/support/server/machine-fixture.ts'
import { macOf } from '#test/support/server/state.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('flash gate')

const START = 1_800_000_000

/** Machines that are to be flashed once, asking at a clock of their own. */
function createFleet(size: number, max_flashes: number, flash_silence = 1800) {
  const records = new Map<Mac, Machine>()
  /** Seconds: of the clock on the wall, and of one that nobody sets. */
  const time = { clock: START, elapsed: 0 }
  const tell = () => new Date(time.clock * 1000).toISOString()
  /** When this process last heard of each machine, in seconds of `elapsed`. */
  const heard = new Map<Mac, number>()
  const { surroundings } = createFixture()
  const settings = { max_flashes, flash_silence }
  const openGate = (stored: readonly Machine[]) =>
    createFlashGate({
      find: (mac) => records.get(mac) ?? null,
      settings: () => settings,
      fleet: stored,
      silenceOf(mac) {
        const at = heard.get(mac)
        return at === undefined ? null : (time.elapsed - at) * 1000
      },
      now: () => new Date(tell()),
      elapsed: () => time.elapsed * 1000,
    })
  const fleet = {
    time,
    settings,
    gate: openGate([]),
    now: tell,
    pass(seconds: number) {
      time.clock += seconds
      time.elapsed += seconds
    },
    restart() {
      heard.clear()
      const stored = [...records.values()].flatMap(
        (machine) => parseRecord(structuredClone(machine)) ?? [],
      )
      for (const machine of stored) records.set(machine.mac, machine)
      fleet.gate = openGate(stored)
    },
    get: (n: number): Machine => {
      const machine = records.get(macOf(n))
      if (machine === undefined) throw new Error(`there is no machine ${n}`)
      return machine
    },
    set(machine: Machine) {
      heard.set(machine.mac, time.elapsed)
      records.set(machine.mac, { ...machine, last_seen_at: fleet.now() })
    },
    assign: (machine: Machine, slot: FlashSlot) => fleet.gate.assign(machine, slot),
    remove: (n: number) => records.delete(macOf(n)),
    /** As the server does it: decided, carried out, and stored. */
    ask(n: number): BootRuling {
      const now = fleet.now()
      const machine = fleet.get(n)
      const placeOf = (asked: Machine) => fleet.gate.placeOf(asked)
      const ruling = decideBoot(machine, { ...surroundings, now, placeOf })
      const offered = contacts.rememberOffer(machine, ruling, now)
      fleet.assign(offered, decideSlot(ruling))
      fleet.set(offered)
      return ruling
    },
    done: (n: number) => fleet.set(contacts.rememberDone(fleet.get(n), fleet.now())),
    failed: (n: number) => fleet.set(contacts.rememberFailure(fleet.get(n), 'why', fleet.now())),
    /** Its plan is no flash: a person is to decide. */
    turnAway(n: number) {
      const plan = { mode: 'interactive', reason: null } as const
      fleet.assign(fleet.get(n), 'released')
      fleet.set(contacts.rememberPlan(fleet.get(n), plan, fleet.now()))
    },
    /** It writes, by what a person picked. */
    begin(n: number) {
      fleet.assign(fleet.get(n), 'planned')
      fleet.set(contacts.rememberRunBegan(fleet.get(n), fleet.now()))
    },
    edit: (n: number) => fleet.set(startCycle(fleet.get(n), fleet.now())),
    places: (...numbers: readonly number[]) =>
      numbers.map((n) => fleet.ask(n).place?.place ?? 'flash'),
  }
  for (let n = 1; n <= size; n++) {
    const fixture = createFixture()
    fixture.flash('flasher-flash-once')
    fleet.set({ ...fixture.machine, mac: macOf(n), bty_image_ref: REF })
  }
  fleet.restart()
  return fleet
}

test('no limit, no line', () => {
  const fleet = createFleet(50, 0)
  for (let n = 1; n <= 50; n++) assert.is(fleet.ask(n).rule, 'flash')
  assert.equal(fleet.gate.count(), { flashing: 50, waiting: 0 })
})

test('first come, first served, and a place that is free goes to who waits longest', () => {
  const fleet = createFleet(6, 2)
  assert.equal(fleet.places(1, 2, 3, 4, 5), ['flash', 'flash', 1, 2, 3])
  fleet.pass(20)
  assert.equal(fleet.places(5, 4, 3), [3, 2, 1], 'whoever asks first')
  fleet.done(1)
  assert.equal(fleet.places(5, 4), [3, 2], 'the place is kept for the one who sleeps')
  assert.equal(fleet.places(6), [4], 'nobody overtakes')
  assert.equal(fleet.places(3), ['flash'])
  assert.equal(fleet.places(4, 5, 6), [1, 2, 3])
  fleet.done(2)
  fleet.done(3)
  assert.equal(fleet.places(5), ['flash'], 'two are free, and one is ahead')
  assert.equal(fleet.places(4), ['flash'])
  assert.equal(fleet.places(6), [1])
})

test('places are given back by failures, edits, deletion and silence', () => {
  for (const free of [
    (fleet: ReturnType<typeof createFleet>) => fleet.failed(1),
    (fleet: ReturnType<typeof createFleet>) => fleet.edit(1),
    (fleet: ReturnType<typeof createFleet>) => fleet.remove(1),
    (fleet: ReturnType<typeof createFleet>) => {
      fleet.pass(1000)
      fleet.ask(2)
      fleet.pass(20)
      fleet.ask(2)
      fleet.pass(980)
    },
  ]) {
    const fleet = createFleet(2, 1)
    assert.equal(fleet.places(1, 2), ['flash', 1])
    fleet.pass(30)
    free(fleet)
    fleet.pass(2)
    assert.equal(fleet.places(2), ['flash'])
  }
})

const YEAR = 365 * 86_400
const JUMPS = [60, -60, 3600, -3600, YEAR, -YEAR, 30 * YEAR, -20 * YEAR]

test('a clock that is set frees no place, keeps none of a machine that is gone, and nobody overtakes', () => {
  for (const jump of JUMPS) {
    const fleet = createFleet(4, 1)
    assert.equal(fleet.places(1, 2, 3), ['flash', 1, 2])
    fleet.time.clock += jump
    assert.equal(fleet.places(4, 3, 2), [3, 2, 1], `${jump}`)
    for (let turn = 0; turn < 89; turn++) {
      fleet.pass(20)
      assert.equal(fleet.places(4, 3, 2), [3, 2, 1], `${jump}: it may write still`)
    }
    fleet.pass(20)
    assert.equal(fleet.places(4, 2), [3, 'flash'], `${jump}: it is gone`)
  }
})

test('a clock that is set back across a restart keeps the places, for as long as a machine may be silent', () => {
  for (const jump of [-60, -3600, -20 * YEAR]) {
    const fleet = createFleet(3, 1)
    assert.equal(fleet.places(1, 2), ['flash', 1])
    fleet.time.clock += jump
    fleet.restart()
    assert.equal(fleet.places(3, 2), [2, 1])
    fleet.pass(1799)
    assert.equal(fleet.places(2), [1])
    fleet.pass(1)
    assert.equal(fleet.places(2), ['flash'])
  }
})

test('a machine that comes back while it is being flashed keeps its place', () => {
  const fleet = createFleet(3, 1)
  assert.equal(fleet.places(1, 2), ['flash', 1])
  fleet.pass(300)
  assert.equal(fleet.places(2, 1), [1, 'flash'])
  fleet.pass(20)
  fleet.failed(1)
  assert.equal(fleet.places(1), [2], 'one that failed goes to the end')
  assert.equal(fleet.places(2), ['flash'])
})

test('who was switched off leaves the line, and begins anew when it comes back', () => {
  const fleet = createFleet(3, 1)
  assert.equal(fleet.places(1, 2, 3), ['flash', 1, 2])
  for (let turn = 0; turn < 7; turn++) {
    fleet.pass(20)
    fleet.ask(3)
  }
  assert.equal(fleet.places(3), [1])
  assert.equal(fleet.places(2), [2])
})

test('a restart keeps places and line', () => {
  const fleet = createFleet(5, 2)
  assert.equal(fleet.places(1, 2, 3, 4), ['flash', 'flash', 1, 2])
  fleet.restart()
  assert.equal(fleet.gate.count(), { flashing: 2, waiting: 2 })
  assert.equal(fleet.places(5, 4, 3), [3, 2, 1])
})

test('a place that another plan gave back does not return with a restart', () => {
  const fleet = createFleet(3, 1)
  assert.equal(fleet.places(1, 2), ['flash', 1])
  fleet.pass(20)
  fleet.turnAway(1)
  fleet.restart()
  assert.equal(fleet.gate.count(), { flashing: 0, waiting: 1 })
  assert.equal(fleet.places(2, 1), ['flash', 1], 'one that comes back is at the end of the line')
})

test('nor does that of a machine which was locked before it had a plan', () => {
  const fleet = createFleet(2, 1)
  assert.equal(fleet.places(1, 2), ['flash', 1])
  fleet.set({ ...fleet.get(1), locked: true })
  fleet.assign(fleet.get(1), 'released')
  fleet.restart()
  assert.equal(fleet.places(2), ['flash'])
})

test('a restart keeps the place of who writes, whoever planned that, and of the next offer', () => {
  for (const begin of [
    (fleet: ReturnType<typeof createFleet>) => fleet.begin(1),
    (fleet: ReturnType<typeof createFleet>) => void fleet.ask(1),
  ]) {
    const fleet = createFleet(2, 1)
    fleet.ask(1)
    fleet.pass(20)
    fleet.turnAway(1)
    fleet.pass(20)
    begin(fleet)
    fleet.restart()
    assert.equal(fleet.places(2), [1])
  }
})

test('another limit counts at once, and nobody is stopped by it', () => {
  const fleet = createFleet(5, 3)
  assert.equal(fleet.places(1, 2, 3, 4), ['flash', 'flash', 'flash', 1])
  fleet.settings.max_flashes = 1
  assert.equal(fleet.places(1, 4), ['flash', 1])
  fleet.settings.max_flashes = 0
  assert.equal(fleet.places(4, 5), ['flash', 'flash'])
})

type Fleet = ReturnType<typeof createFleet>
const SIZE = 8
const SILENCE = 1800
const any = fc.nat(SIZE - 1).map((n) => n + 1)

/** What the model knows: which machines were sent to flash, and when each last made contact. */
type Step = (fleet: Fleet, flashing: Map<number, number>) => void

const isRunning = (fleet: Fleet, heard: number | undefined) =>
  heard !== undefined && fleet.time.elapsed - heard < SILENCE

const ask =
  (n: number): Step =>
  (fleet, flashing) => {
    const wasRunning = isRunning(fleet, flashing.get(n))
    const { rule } = fleet.ask(n)
    if (rule === 'flash' || rule === 'flash-retry') flashing.set(n, fleet.time.elapsed)
    else if (rule !== 'queued') flashing.delete(n)
    assert.not(wasRunning && rule === 'queued', 'who flashes is not made to wait')
  }
const end =
  (what: 'done' | 'failed' | 'edit') =>
  (n: number): Step =>
  (fleet, flashing) => {
    fleet[what](n)
    flashing.delete(n)
  }
const pass =
  (seconds: number): Step =>
  (fleet) => {
    fleet.pass(seconds)
  }

const setClock =
  (seconds: number): Step =>
  (fleet) => {
    fleet.time.clock += seconds
  }

/** Either: of who was silent before a start only the clock on the wall tells for how long. */
const UPSETS: Readonly<Record<string, fc.Arbitrary<Step>>> = {
  restarts: fc.constant<Step>((fleet) => fleet.restart()),
  'clocks that are set': fc.constantFrom(...JUMPS).map(setClock),
}

const anyStep = (upset: fc.Arbitrary<Step>): fc.Arbitrary<Step> =>
  fc.oneof(
    { weight: 10, arbitrary: any.map(ask) },
    { weight: 2, arbitrary: any.map(end('done')) },
    { weight: 1, arbitrary: any.map(end('failed')) },
    { weight: 1, arbitrary: any.map(end('edit')) },
    { weight: 3, arbitrary: fc.constantFrom(1, 20, 130, 2000).map(pass) },
    { weight: 1, arbitrary: upset },
  )

/** All who go on asking, and are done once they are let in. */
function finishAll(fleet: Fleet): ReadonlySet<number> {
  const left = new Set(Array.from({ length: SIZE }, (_, at) => at + 1))
  for (let turn = 0; turn < 4 * SIZE; turn++) {
    // Those that went away in the middle of a flash are given up.
    fleet.pass(turn === 2 * SIZE ? SILENCE + 20 : 20)
    for (const n of left) {
      if (fleet.ask(n).rule === 'queued') continue
      fleet.done(n)
      left.delete(n)
    }
  }
  return left
}

for (const [name, upset] of Object.entries(UPSETS)) {
  test(`any order of contacts, ends, edits, hours and ${name}`, () => {
    const anySteps = fc.array(anyStep(upset), { minLength: 10, maxLength: 80, size: 'max' })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3 }), anySteps, (limit, steps) => {
        const fleet = createFleet(SIZE, limit, SILENCE)
        const flashing = new Map<number, number>()
        for (const step of steps) {
          step(fleet, flashing)
          const running = [...flashing.values()].filter((heard) => isRunning(fleet, heard)).length
          assert.ok(running <= limit, `${running} flash where ${limit} may`)
        }
        assert.equal([...finishAll(fleet)], [], 'nobody waits for ever')
      }),
      { numRuns: 2000 },
    )
  })
}

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
  assert.is(lab.server.machines.peek(expiringMac(lab, MAC))?.boot_mode, 'flasher-flash-once')
  assert.is(await lab.boot(OTHER), 'flash')
})

const expiringMac = (lab: Awaited<ReturnType<typeof open>>, mac: string) => {
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
