/** The cycle: when disks are listed anew, when the guard steps in, what starts again and what does not. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { allowDisk, flashAgain, refreshInventory } from '#server/current/rules/operator-edits.ts'
import { rememberRunBegan } from '#server/current/rules/contact.ts'
import {
  createFixture,
  diskOf,
  OTHER_REF,
  PXE_RULES,
  REF,
  X86_SETS,
  type Fixture,
} from '#test/support/server/machine-fixture.ts'

const test = suite('cycles')

const goes = (fixture: Fixture) => fixture.script().decision.kind
const rules = (fixture: Fixture, times: number) =>
  Array.from({ length: times }, () => fixture.script().rule)

/** It listed its disks. */
function listed(refresh: number): Fixture {
  const fixture = createFixture({ settings: { ...PXE_RULES, inventory_refresh: refresh } })
  fixture.script()
  fixture.disks(diskOf('S1'))
  return fixture
}

/** It got a flash plan, and was not heard of since. */
function crashed(): Fixture {
  const fixture = createFixture()
  fixture.flash('flasher-flash-once')
  fixture.script()
  fixture.plan()
  return fixture
}

test('disks are listed anew when they have become too old, and never twice without a disk boot', () => {
  const day = listed(86_400)
  day.clock += 10 * 86_400
  assert.is(day.script().rule, 'disks-known', 'a disk boot is owed first')
  assert.is(day.script().rule, 'disks-stale')
  assert.is(day.script().rule, 'disks-wanted', 'still not listed')
  day.disks(diskOf('S1'))
  assert.equal(rules(day, 2), ['disks-known', 'disks-known'])
  day.clock += 86_399
  assert.is(day.script().rule, 'disks-known')
  day.clock += 1
  assert.is(day.script().rule, 'disks-stale')

  const second = listed(0)
  assert.equal(rules(second, 2), ['disks-known', 'disks-stale'])
  second.disks(diskOf('S1'))
  assert.equal(rules(second, 2), ['disks-known', 'disks-stale'])

  const never = listed(Infinity)
  never.clock += 1000 * 86_400
  assert.equal(rules(never, 3), ['disks-known', 'disks-known', 'disks-known'])
})

test('Refresh inventory lists the disks once more; other modes have no use for it', () => {
  const fixture = createFixture()
  fixture.script()
  fixture.disks(diskOf('S1'))
  const refreshed = refreshInventory(fixture.machine, fixture.now())
  assert.ok(refreshed.ok)
  fixture.machine = refreshed.value
  assert.is(fixture.machine.known_disks?.length, 1)
  assert.is(fixture.script().rule, 'disks-wanted')
  fixture.put({})
  assert.is(refreshInventory(fixture.machine, fixture.now()).ok, false)
})

test('the guard sends a machine to its disk when nothing can have been written', () => {
  for (const mode of ['flasher-inventory', 'flasher-flash-once', 'flasher-flash-always']) {
    const fixture = createFixture()
    fixture.flash(mode)
    for (let boot = 1; boot <= PXE_RULES.loop_limit; boot++) {
      const { decision, alarms } = fixture.script()
      assert.equal([decision.kind, alarms], ['to-live', false])
      fixture.bootFile()
    }
    const caught = fixture.script()
    assert.equal([caught.rule, caught.alarms], ['loop-to-disk', true])
    const later = fixture.script()
    assert.equal([later.rule, later.alarms], ['loop-to-disk', false], 'one event a cycle')
    if (mode !== 'flasher-inventory') assert.is(fixture.plan().plan.mode, 'interactive')
  }
})

test('the guard fetches a person when a flash plan was handed out', () => {
  const fixture = createFixture()
  fixture.flash('flasher-flash-once')
  for (let boot = 1; boot <= PXE_RULES.loop_limit; boot++) {
    assert.is(goes(fixture), 'to-live')
    assert.is(fixture.plan().plan.mode, 'flash')
  }
  for (let boot = 1; boot <= 10; boot++) {
    const ruling = fixture.script()
    assert.is(ruling.rule, 'loop-to-person')
    assert.is(ruling.alarms, boot === 1)
    const { plan } = fixture.plan()
    assert.ok(plan.mode === 'interactive' && plan.reason?.includes('half written'))
  }
  fixture.done()
  assert.is(fixture.script().rule, 'flashed')
})

test('the guard fetches a person even where no image is assigned any more, or the machine is locked', () => {
  const unassigned = crashed()
  unassigned.put({ boot_mode: 'flasher-flash-once', target_disk_serial: 'S1' })
  const locked = crashed()
  locked.machine = { ...locked.machine, locked: true }
  for (const fixture of [unassigned, locked]) {
    for (let boot = 1; boot <= PXE_RULES.loop_limit + 1; boot++) {
      assert.is(goes(fixture), 'to-live')
      fixture.plan()
    }
    assert.equal(fixture.plan().rule, 'loop')
  }
})

test('another mode, image or disk starts a new cycle; equal values do not', () => {
  const body = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }
  const finished = () => {
    const fixture = createFixture()
    fixture.disks(diskOf('S1'), diskOf('S2'))
    fixture.put(body)
    fixture.script()
    fixture.done()
    return fixture
  }
  for (const change of [
    {},
    { labels: ['rack 1'] },
    { sanboot_drive: '0x81' },
    { target_disk_serial: ' S1 ' },
  ]) {
    const fixture = finished()
    fixture.put({ ...body, ...change })
    assert.is(fixture.script().rule, 'flashed', JSON.stringify(change))
  }
  for (const change of [
    { bty_image_ref: OTHER_REF },
    { target_disk_serial: 'S2' },
    { boot_mode: 'flasher-flash-always' },
  ]) {
    const fixture = finished()
    fixture.put({ ...body, ...change })
    assert.is(fixture.machine.saw_flasher_boot, false)
    assert.ok(fixture.machine.last_flashed_at, 'a new cycle clears nothing else')
    assert.ok(fixture.machine.known_disks_at)
    assert.is(fixture.script().rule, 'flash', JSON.stringify(change))
  }
})

test('a flash that ends after its image was changed does not end the new cycle', () => {
  const fixture = createFixture()
  fixture.flash('flasher-flash-once')
  fixture.script()
  fixture.plan()
  fixture.put({
    boot_mode: 'flasher-flash-once',
    bty_image_ref: OTHER_REF,
    target_disk_serial: 'S1',
  })
  fixture.done()
  assert.is(fixture.machine.last_flashed_at, fixture.now())
  assert.is(fixture.machine.cycle.carried, false, 'nothing is half written any more')
  assert.is(fixture.script().rule, 'flash', 'the new image is still to be written')
  fixture.plan()
  fixture.done()
  assert.is(fixture.script().rule, 'flashed')
})

test('what may be half written is not booted, whatever else goes away', () => {
  const noImage = crashed()
  noImage.surroundings = { ...noImage.surroundings, findImage: () => null }
  assert.is(noImage.script().rule, 'flash-retry')
  assert.is(noImage.plan().plan.mode, 'interactive')

  const noSerial = crashed()
  noSerial.put({ boot_mode: 'flasher-flash-once', bty_image_ref: REF })
  assert.is(goes(noSerial), 'to-live')

  const noLive = crashed()
  noLive.surroundings = { ...noLive.surroundings, sets: { x86_64: null, arm64: null } }
  for (let boot = 1; boot <= 20; boot++) assert.is(noLive.script().rule, 'half-written')
  assert.is(noLive.machine.cycle.offers, 1, 'waiting is no live boot')

  const stopped = crashed()
  stopped.put({})
  assert.is(stopped.script().rule, 'ipxe-exit', 'an operator may say otherwise')
})

/** An operator had it boot its disk. */
function allowed(): Fixture {
  const fixture = crashed()
  fixture.surroundings = { ...fixture.surroundings, sets: { x86_64: null, arm64: null } }
  assert.is(fixture.script().rule, 'half-written')
  const acted = allowDisk(fixture.machine, fixture.now())
  assert.ok(acted.ok)
  fixture.machine = acted.value
  return fixture
}

test('a disk that an operator allows is booted from then on, and not flashed unasked', () => {
  const fixture = allowed()
  for (let boot = 1; boot <= 20; boot++) {
    assert.equal([fixture.script().rule, goes(fixture)], ['disk-allowed', 'to-disk'])
    assert.is(fixture.plan().rule, 'disk-allowed', 'asking for a plan marks nothing again')
  }
  fixture.surroundings = { ...fixture.surroundings, sets: X86_SETS }
  fixture.machine = rememberRunBegan(fixture.machine, fixture.now())
  assert.equal([fixture.script().rule, fixture.plan().plan.mode], ['disk-allowed', 'exit'])
  fixture.flash('flasher-flash-once')
  assert.is(fixture.script().rule, 'disk-allowed', 'the same intent begins nothing')
  const again = flashAgain(fixture.machine, fixture.now())
  assert.ok(again.ok)
  fixture.machine = again.value
  assert.equal([fixture.script().rule, fixture.plan().plan.mode], ['flash', 'flash'])
  assert.is(fixture.script().rule, 'flash-retry', 'and the rule holds as before')
})

test('a flash that ends after its disk was allowed still counts as ended', () => {
  const once = allowed()
  once.done()
  assert.is(once.script().rule, 'flashed')
  const failing = allowed()
  failing.failed('no space')
  assert.is(failing.script().rule, 'disk-allowed', 'an operator said so')
})

test('only what may be half written can be allowed', () => {
  const fresh = createFixture()
  assert.is(allowDisk(fresh.machine, fresh.now()).ok, false)
  fresh.flash('flasher-flash-once')
  fresh.script()
  assert.is(allowDisk(fresh.machine, fresh.now()).ok, false)
  fresh.plan()
  assert.is(allowDisk(fresh.machine, fresh.now()).ok, true)
  const twice = allowed()
  assert.is(allowDisk(twice.machine, twice.now()).ok, false)
})

test('no image: its own disk when nothing was handed out, a person when something may be written', () => {
  const fresh = createFixture()
  fresh.flash('flasher-flash-once')
  fresh.script()
  fresh.bootFile()
  fresh.put({ boot_mode: 'flasher-flash-once' })
  assert.equal(
    [fresh.script().rule, goes(fresh), fresh.plan().plan.mode],
    ['no-image', 'to-disk', 'exit'],
  )

  const begun = crashed()
  begun.put({ boot_mode: 'flasher-flash-once' })
  assert.equal([goes(begun), begun.plan().plan.mode], ['to-live', 'interactive'])
  const locked = crashed()
  locked.machine = { ...locked.machine, locked: true }
  assert.equal([goes(locked), locked.plan().plan.mode], ['to-live', 'interactive'])
})

test('failed never says flashed, and the next network boot tries again', () => {
  const fixture = createFixture()
  fixture.flash('flasher-flash-once')
  fixture.script()
  fixture.plan()
  fixture.failed('no space')
  assert.is(fixture.machine.last_flashed_at, null)
  assert.equal(fixture.machine.cycle.failure, { at: fixture.now(), reason: 'no space' })
  assert.is(fixture.script().rule, 'flash-retry')
  assert.is(fixture.machine.cycle.failure, null)
})

test.run()
