/** A machine whose order a restored state brought back: what it boots, what it plans, and what arms it again. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { disarm, keepHeldBack } from '#server/current/machines/rules/disarming.ts'
import {
  allowDisk,
  flashAgain,
  orderCapture,
  refreshInventory,
} from '#server/current/machines/rules/operator-edits.ts'
import { parseRecord } from '#server/current/machines/rules/machine.ts'
import {
  createFixture,
  diskOf,
  OTHER_REF,
  REF,
  type Fixture,
} from '#test/support/server/machine-fixture.ts'

const test = suite('disarming')
const MODES = ['flasher-flash-once', 'flasher-flash-always'] as const

function armed(mode: string): Fixture {
  const fixture = createFixture()
  fixture.disks(diskOf('S1'))
  fixture.flash(mode)
  return fixture
}

function disarmed(mode: string, begin: (fixture: Fixture) => void = () => {}): Fixture {
  const fixture = armed(mode)
  begin(fixture)
  fixture.clock += 60
  fixture.machine = disarm(fixture.machine, fixture.now())
  fixture.clock += 60
  return fixture
}

const writing = (fixture: Fixture) => {
  fixture.script()
  fixture.plan()
}

for (const mode of MODES) {
  test(`${mode}: mode, image and disk stay, and it boots its disk until Flash again`, () => {
    const fixture = disarmed(mode)
    const { boot_mode, bty_image_ref, target_disk_serial } = fixture.machine
    assert.equal([boot_mode, bty_image_ref, target_disk_serial], [mode, REF, 'S1'])
    for (let times = 0; times < 3; times += 1) {
      const { rule, decision } = fixture.script()
      assert.equal([rule, decision.kind], ['disarmed', 'to-disk'])
      assert.equal([fixture.plan().rule, fixture.plan().plan.mode], ['disarmed', 'exit'])
    }
    fixture.flash(mode)
    assert.is(fixture.script().rule, 'disarmed', 'equal values are no order')
    const again = flashAgain(fixture.machine, fixture.now())
    assert.ok(again.ok)
    fixture.machine = again.value
    assert.equal([fixture.script().rule, fixture.plan().plan.mode], ['flash', 'flash'])
  })

  test(`${mode}: a disk that may be half written is held back with the plan interactive`, () => {
    const fixture = disarmed(mode, writing)
    for (let times = 0; times < 20; times += 1) {
      const { rule, decision, counts } = fixture.script()
      assert.equal([rule, decision.kind, counts], ['held-back', 'to-live', false])
      assert.ok(decision.kind === 'to-live' && decision.otherwise.kind === 'to-wait')
      const { plan } = fixture.plan()
      assert.ok(plan.mode === 'interactive' && plan.reason?.includes('half written'))
    }
    fixture.surroundings = { ...fixture.surroundings, sets: () => ({ x86_64: null, arm64: null }) }
    assert.is(fixture.script().decision.kind, 'to-wait')
  })

  test(`${mode}: a flash that went on and ends leaves it disarmed, and its disk is booted`, () => {
    const fixture = disarmed(mode, writing)
    fixture.done()
    assert.is(fixture.machine.last_flashed_at, fixture.now())
    assert.is(fixture.script().decision.kind, 'to-disk')
    assert.is(fixture.plan().plan.mode, 'exit')
  })

  test(`${mode}: an operator may have the disk booted anyway`, () => {
    const fixture = disarmed(mode, writing)
    const allowed = allowDisk(fixture.machine, fixture.now())
    assert.ok(allowed.ok)
    fixture.machine = allowed.value
    assert.equal([fixture.script().rule, fixture.plan().plan.mode], ['disk-allowed', 'exit'])
  })
}

test('another image, disk or mode is an order of its own', () => {
  const body = { boot_mode: MODES[0], bty_image_ref: REF, target_disk_serial: 'S1' }
  for (const change of [{ bty_image_ref: OTHER_REF }, { boot_mode: MODES[1] }]) {
    const fixture = disarmed(MODES[0])
    fixture.put({ ...body, ...change })
    assert.is(fixture.script().rule, 'flash')
  }
})

test('an ordered capture is cancelled with its reason, and can be ordered again', () => {
  const fixture = createFixture()
  fixture.disks(diskOf('S1'))
  const wish = { name: 'a.img.zst', disk_serial: 'S1', generalize: false }
  const order = () => {
    const ordered = orderCapture(fixture.machine, wish, fixture.now())
    assert.ok(ordered.ok)
    fixture.machine = ordered.value
  }
  order()
  fixture.machine = disarm(fixture.machine, fixture.now())
  assert.is(fixture.machine.capture?.result, 'cancelled')
  assert.match(fixture.machine.capture?.reason ?? '', 'An older state of the server')
  assert.is(fixture.machine.cycle.disarmed_at, null, 'its mode flashes nothing')
  order()
  assert.is(fixture.script().rule, 'capture')
})

test('where there is no order, the very same record stays', () => {
  const idle = createFixture()
  const flashed = armed(MODES[0])
  writing(flashed)
  flashed.done()
  const noDisk = createFixture()
  noDisk.put({ boot_mode: MODES[0], bty_image_ref: REF })
  const twice = disarmed(MODES[1])
  for (const { machine, now } of [idle, flashed, noDisk, twice]) {
    assert.is(disarm(machine, now()), machine)
  }
})

test('a locked machine is disarmed as well: to unlock it is no order', () => {
  const fixture = armed(MODES[0])
  fixture.machine = { ...fixture.machine, locked: true }
  fixture.machine = { ...disarm(fixture.machine, fixture.now()), locked: false }
  assert.is(fixture.script().rule, 'disarmed')
})

test('what is being written now is held back in every mode that an older state gives it', () => {
  const present = armed(MODES[0])
  writing(present)
  const { machine: half } = present
  for (const mode of ['ipxe-exit', 'flasher-inventory', 'flasher-tui', ...MODES]) {
    const fixture = createFixture()
    fixture.disks(diskOf('S1'))
    fixture.put({ boot_mode: mode, bty_image_ref: REF, target_disk_serial: 'S1' })
    const held = keepHeldBack(disarm(fixture.machine, fixture.now()), half, fixture.now())
    assert.ok(held !== null)
    fixture.machine = held
    assert.equal([fixture.script().rule, fixture.plan().plan.mode], ['held-back', 'interactive'])
    fixture.done()
    assert.is.not(fixture.script().rule, 'held-back')
    assert.is.not(fixture.plan().plan.mode, 'flash')
  }
  assert.is(keepHeldBack(null, createFixture().machine, present.now()), null)
  const stored = parseRecord(JSON.parse(JSON.stringify(keepHeldBack(null, half, present.now()))))
  assert.ok(stored?.cycle.disarmed_at)
})

test('a late end does not arm a machine again that was to boot its disk in the older state', () => {
  const fixture = armed('flasher-flash-always')
  writing(fixture)
  const allowed = allowDisk(fixture.machine, fixture.now())
  assert.ok(allowed.ok)
  fixture.clock += 60
  fixture.machine = disarm(allowed.value, fixture.now())
  fixture.done()
  assert.equal([fixture.script().decision.kind, fixture.plan().plan.mode], ['to-disk', 'exit'])
})

test('asking for its disks anew does not let a machine go that is held back', () => {
  const fixture = armed('flasher-flash-once')
  writing(fixture)
  const present = fixture.machine
  const restored = {
    ...armed('flasher-inventory').machine,
    boot_mode: 'flasher-inventory',
  } as const
  const held = keepHeldBack(restored, present, fixture.now())
  assert.ok(held !== null)
  const refreshed = refreshInventory(held, fixture.now())
  assert.ok(!refreshed.ok && refreshed.refusal.includes('half written'))
})

test.run()
