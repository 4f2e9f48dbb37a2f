/** A fleet at the gate: never more than may flash, first come first served, nobody forgotten. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Mac } from '../../../runtime/kit/net/rules/mac.ts'
import type { FlashSlot } from '../../../runtime/engine/inventory/rules/machine.ts'
import { createFlashGate } from '../../../runtime/server/current/flash-gate.ts'
import {
  decideBoot,
  decideSlot,
  type BootRuling,
} from '../../../runtime/server/current/rules/boot.ts'
import * as contacts from '../../../runtime/server/current/rules/contact.ts'
import { startCycle } from '../../../runtime/server/current/rules/operator-edits.ts'
import type { Machine } from '../../../runtime/server/current/rules/machine.ts'
import { parseRecord } from '../../../runtime/server/current/rules/record.ts'
import { createFixture, REF } from '../../support/server/machine-fixture.ts'
import { macOf } from '../../support/server/state.ts'

const test = suite('flash gate')

const START = 1_800_000_000

/** Machines that are to be flashed once, asking at a clock of their own. */
function createFleet(size: number, max_flashes: number, flash_silence = 1800) {
  const records = new Map<Mac, Machine>()
  const { surroundings } = createFixture()
  const settings = { max_flashes, flash_silence }
  const open = (stored: readonly Machine[]) =>
    createFlashGate({
      find: (mac) => records.get(mac) ?? null,
      settings: () => settings,
      fleet: stored,
    })
  const fleet = {
    clock: START,
    settings,
    gate: open([]),
    now: () => new Date(fleet.clock * 1000).toISOString(),
    restart() {
      const stored = [...records.values()].flatMap(
        (machine) => parseRecord(structuredClone(machine)) ?? [],
      )
      for (const machine of stored) records.set(machine.mac, machine)
      fleet.gate = open(stored)
    },
    get: (n: number): Machine => {
      const machine = records.get(macOf(n))
      if (machine === undefined) throw new Error(`there is no machine ${n}`)
      return machine
    },
    set(machine: Machine) {
      records.set(machine.mac, { ...machine, last_seen_at: fleet.now() })
    },
    assign: (machine: Machine, slot: FlashSlot) =>
      fleet.gate.assign(machine, slot, fleet.clock * 1000),
    remove: (n: number) => records.delete(macOf(n)),
    /** As the server does it: decided, carried out, and stored. */
    ask(n: number): BootRuling {
      const now = fleet.now()
      const machine = fleet.get(n)
      const placeOf = (asked: Machine) => fleet.gate.placeOf(asked, now)
      const ruling = decideBoot(machine, { ...surroundings, now, placeOf })
      const offered = contacts.noteOffer(machine, ruling, now)
      fleet.assign(offered, decideSlot(ruling))
      fleet.set(offered)
      return ruling
    },
    done: (n: number) => fleet.set(contacts.noteDone(fleet.get(n), fleet.now())),
    failed: (n: number) => fleet.set(contacts.noteFailure(fleet.get(n), 'why', fleet.now())),
    /** Its plan is no flash: a person is to decide. */
    turnAway(n: number) {
      const plan = { mode: 'interactive', reason: null } as const
      fleet.assign(fleet.get(n), 'released')
      fleet.set(contacts.notePlan(fleet.get(n), plan, fleet.now()))
    },
    /** It writes, by what a person picked. */
    begin(n: number) {
      fleet.assign(fleet.get(n), 'planned')
      fleet.set(contacts.noteRunBegan(fleet.get(n), fleet.now()))
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
  assert.equal(fleet.gate.count(fleet.now()), { flashing: 50, waiting: 0 })
})

test('first come, first served, and a place that is free goes to who waits longest', () => {
  const fleet = createFleet(6, 2)
  assert.equal(fleet.places(1, 2, 3, 4, 5), ['flash', 'flash', 1, 2, 3])
  fleet.clock += 20
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
      fleet.clock += 1000
      fleet.ask(2)
      fleet.clock += 20
      fleet.ask(2)
      fleet.clock += 980
    },
  ]) {
    const fleet = createFleet(2, 1)
    assert.equal(fleet.places(1, 2), ['flash', 1])
    fleet.clock += 30
    free(fleet)
    fleet.clock += 2
    assert.equal(fleet.places(2), ['flash'])
  }
})

test('a clock that is set back keeps the place of a machine that is gone only if it was a little', () => {
  for (const [seconds, places] of Object.entries({ 60: [1], 315_360_000: ['flash'] })) {
    const fleet = createFleet(2, 1)
    assert.equal(fleet.places(1, 2), ['flash', 1])
    fleet.clock -= Number(seconds) - 20
    assert.equal(fleet.places(2), places)
  }
})

test('a machine that comes back while it is being flashed keeps its place', () => {
  const fleet = createFleet(3, 1)
  assert.equal(fleet.places(1, 2), ['flash', 1])
  fleet.clock += 300
  assert.equal(fleet.places(2, 1), [1, 'flash'])
  fleet.clock += 20
  fleet.failed(1)
  assert.equal(fleet.places(1), [2], 'one that failed goes to the end')
  assert.equal(fleet.places(2), ['flash'])
})

test('who was switched off leaves the line, and begins anew when it comes back', () => {
  const fleet = createFleet(3, 1)
  assert.equal(fleet.places(1, 2, 3), ['flash', 1, 2])
  for (let turn = 0; turn < 7; turn++) {
    fleet.clock += 20
    fleet.ask(3)
  }
  assert.equal(fleet.places(3), [1])
  assert.equal(fleet.places(2), [2])
})

test('a restart keeps places and line', () => {
  const fleet = createFleet(5, 2)
  assert.equal(fleet.places(1, 2, 3, 4), ['flash', 'flash', 1, 2])
  fleet.restart()
  assert.equal(fleet.gate.count(fleet.now()), { flashing: 2, waiting: 2 })
  assert.equal(fleet.places(5, 4, 3), [3, 2, 1])
})

test('a place that another plan gave back does not return with a restart', () => {
  const fleet = createFleet(3, 1)
  assert.equal(fleet.places(1, 2), ['flash', 1])
  fleet.clock += 20
  fleet.turnAway(1)
  fleet.restart()
  assert.equal(fleet.gate.count(fleet.now()), { flashing: 0, waiting: 1 })
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
    fleet.clock += 20
    fleet.turnAway(1)
    fleet.clock += 20
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
  heard !== undefined && fleet.clock - heard < SILENCE

const ask =
  (n: number): Step =>
  (fleet, flashing) => {
    const wasRunning = isRunning(fleet, flashing.get(n))
    const { rule } = fleet.ask(n)
    if (rule === 'flash' || rule === 'flash-retry') flashing.set(n, fleet.clock)
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
    fleet.clock += seconds
  }

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: any.map(ask) },
  { weight: 2, arbitrary: any.map(end('done')) },
  { weight: 1, arbitrary: any.map(end('failed')) },
  { weight: 1, arbitrary: any.map(end('edit')) },
  { weight: 3, arbitrary: fc.constantFrom(1, 20, 130, 2000).map(pass) },
  { weight: 1, arbitrary: fc.constant<Step>((fleet) => fleet.restart()) },
)

/** All who go on asking, and are done once they are let in. */
function finishAll(fleet: Fleet): ReadonlySet<number> {
  const left = new Set(Array.from({ length: SIZE }, (_, at) => at + 1))
  for (let turn = 0; turn < 4 * SIZE; turn++) {
    // Those that went away in the middle of a flash are given up.
    fleet.clock += turn === 2 * SIZE ? SILENCE + 20 : 20
    for (const n of left) {
      if (fleet.ask(n).rule === 'queued') continue
      fleet.done(n)
      left.delete(n)
    }
  }
  return left
}

test('any order of contacts, ends, edits, hours and restarts', () => {
  const anySteps = fc.array(anyStep, { minLength: 10, maxLength: 80, size: 'max' })
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
    { numRuns: 3000 },
  )
})

test.run()
