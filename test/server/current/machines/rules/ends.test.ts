/** A `done` that comes twice, late, or with the name of its run: which order it ends. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  rememberDone,
  rememberLateHardware,
  rememberRunBegan,
} from '#server/current/machines/rules/contact.ts'
import { flashAgain } from '#server/current/machines/rules/operator-edits.ts'
import { parseRecord } from '#server/current/machines/rules/machine.ts'
import { decideOutcome, decideOwner, originOf } from '#server/current/machines/rules/run.ts'
import {
  createFixture,
  diskOf,
  entryOf,
  OTHER_REF,
  REF,
  type Fixture,
} from '#test/support/server/machine-fixture.ts'

const test = suite('ends of flashes')
const ONCE = 'flasher-flash-once'
const findImage = (ref: string) =>
  entryOf(ref, { name: ref === REF ? 'old.img.gz' : 'new.img.gz', ref })

function create(): Fixture {
  const fixture = createFixture({ findImage })
  fixture.disks(diskOf('S1'))
  return fixture
}

function again(fixture: Fixture): string {
  fixture.clock += 60
  const armed = flashAgain(fixture.machine, fixture.now())
  assert.ok(armed.ok)
  fixture.machine = armed.value
  return fixture.machine.cycle.started_at
}

/** Flashed, and armed again. */
function rearmed(): Fixture {
  const fixture = create()
  fixture.flash(ONCE)
  fixture.script()
  fixture.plan()
  fixture.done()
  again(fixture)
  fixture.clock += 1
  return fixture
}

test('the first order of a machine is ended by done, whatever was asked for before it', () => {
  const fixture = create()
  fixture.flash(ONCE)
  fixture.done()
  assert.is(fixture.script().rule, 'flashed')
})

test('hardware that comes after the flash says what the machine starts, and is stored once', () => {
  const { machine } = rearmed()
  const keys = { allowed: null, revoked: null, sbat_level: null }
  const firmware = { kind: 'bios', processor: null, secure_boot: false, ...keys } as const
  const known = { disks: [], disksLeftOut: 0, hardware: null, isHardwareLeftOut: false }
  const reported = { ...known, secureBoot: null, bmcAddress: null, ownSerials: null, firmware }
  const after = rememberLateHardware(machine, reported)
  assert.equal(after, { ...machine, firmware })
  assert.is(rememberLateHardware(after, structuredClone(reported)), after)
})

test('told again after it was armed anew: the new order stays, and the time is noted', () => {
  const fixture = rearmed()
  for (let times = 0; times < 3; times += 1) {
    fixture.clock += 1
    fixture.done()
    assert.is(fixture.machine.last_flashed_at, fixture.now())
  }
  assert.equal([fixture.script().rule, fixture.plan().plan.mode], ['flash', 'flash'])
})

test('also in flasher-flash-always, where each done arms the next', () => {
  const fixture = create()
  fixture.flash('flasher-flash-always')
  fixture.script()
  fixture.plan()
  fixture.clock += 1
  fixture.done()
  const { cycle } = fixture.machine
  fixture.clock += 1
  fixture.done()
  assert.is(fixture.machine.cycle, cycle)
})

const SIGNS: Readonly<Record<string, (fixture: Fixture) => void>> = {
  script: (fixture) => void fixture.script(),
  plan: (fixture) => void fixture.plan(),
  'boot file': (fixture) => fixture.bootFile(),
}
for (const [name, sign] of Object.entries(SIGNS)) {
  test(`once it asked for its ${name}, done ends the new order`, () => {
    const fixture = rearmed()
    sign(fixture)
    fixture.done()
    assert.is(fixture.script().rule, 'flashed')
  })
}

test('once a run of it has begun, done ends the new order', () => {
  const fixture = rearmed()
  fixture.machine = {
    ...fixture.machine,
    cycle: { ...fixture.machine.cycle, queued_at: fixture.now() },
  }
  fixture.machine = rememberRunBegan(fixture.machine, fixture.now())
  fixture.done()
  assert.is(fixture.script().rule, 'flashed')
})

test('armed twice in a row, and changed to another mode in between: still none of them', () => {
  const fixture = rearmed()
  again(fixture)
  fixture.put({})
  fixture.script()
  fixture.flash(ONCE)
  fixture.done()
  assert.is(fixture.script().rule, 'flash')
})

test('with a run it ends its own order, that of before, or none', () => {
  const fixture = rearmed()
  const { started_at, before } = fixture.machine.cycle
  const ownerOf = (order: string) => decideOwner(fixture.machine, { token: 'unproven', order })
  assert.is(ownerOf(started_at), 'current')
  assert.is(ownerOf(before?.started_at ?? ''), 'before')
  assert.is(ownerOf('2020-01-01T00:00:00Z'), 'other')
  fixture.script()
  fixture.plan()
  for (const owner of ['before', 'other'] as const) {
    const after = rememberDone(fixture.machine, fixture.now(), owner)
    assert.is(after.cycle, fixture.machine.cycle)
    assert.is(after.last_flashed_at, fixture.now())
  }
})

test('the run is of what the plan said, whatever was assigned since', () => {
  const fixture = create()
  fixture.flash(ONCE)
  fixture.script()
  fixture.plan()
  const order = fixture.machine.cycle.started_at
  for (const body of [
    { boot_mode: ONCE, bty_image_ref: OTHER_REF, target_disk_serial: 'S1' },
    { boot_mode: 'ipxe-exit', bty_image_ref: OTHER_REF, target_disk_serial: 'S1' },
  ]) {
    fixture.clock += 1
    fixture.put(body)
    const origin = originOf(fixture.machine, findImage)
    assert.equal(
      [origin.mode, origin.image?.name, origin.order],
      ['flash', 'old.img.gz', order],
      body.boot_mode,
    )
  }
  const stored = parseRecord(JSON.parse(JSON.stringify(fixture.machine)))
  assert.equal(stored?.planned_as, fixture.machine.planned_as)
  fixture.done()
  assert.is(fixture.machine.planned_as, null)
})

test('a boot into the new order has it flash the new image', () => {
  const fixture = create()
  fixture.flash(ONCE)
  fixture.script()
  fixture.plan()
  fixture.clock += 1
  fixture.put({ boot_mode: ONCE, bty_image_ref: OTHER_REF, target_disk_serial: 'S1' })
  fixture.clock += 1
  fixture.script()
  assert.is(originOf(fixture.machine, findImage).image?.name, 'new.img.gz')
})

test('what became of an order', () => {
  const flashed = rearmed()
  const order = again(flashed)
  assert.is(decideOutcome(flashed.machine, order), null)
  flashed.failed('of before')
  assert.is(decideOutcome(flashed.machine, order), null, 'it has not begun')
  flashed.script()
  flashed.plan()
  flashed.failed('no space')
  assert.is(decideOutcome(flashed.machine, order), 'failed')
  flashed.script()
  flashed.done()
  assert.is(decideOutcome(flashed.machine, order), 'flashed')
  again(flashed)
  assert.is(decideOutcome(flashed.machine, order), 'flashed')

  const replaced = rearmed()
  const first = again(replaced)
  again(replaced)
  assert.is(decideOutcome(replaced.machine, first), 'replaced')
  replaced.clock += 1
  replaced.put({})
  assert.is(decideOutcome(replaced.machine, first), 'disarmed')

  const always = create()
  always.flash('flasher-flash-always')
  const one = always.machine.cycle.started_at
  always.script()
  always.plan()
  always.clock += 1
  always.done()
  assert.is(decideOutcome(always.machine, one), 'flashed')
})

test.run()
