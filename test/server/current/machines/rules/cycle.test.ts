/** The cycle: when disks are listed anew, when the guard steps in, what starts again and what does not. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseFeatures } from '#engine/first-boot/rules/seed.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { findDisk, parsePlan } from '#flasher/order/rules/plan.ts'
import { renderDisks } from '#server/current/machines/machine-page.ts'
import { rememberRunBegan } from '#server/current/machines/rules/contact.ts'
import { parseRecord } from '#server/current/machines/rules/machine.ts'
import {
  allowDisk,
  flashAgain,
  orderCapture,
  refreshInventory,
} from '#server/current/machines/rules/operator-edits.ts'
import { decidePlan, renderPlan } from '#server/current/machines/rules/plan.ts'
import { anySettings } from '#test/support/server/machine-arbitraries.ts'
import {
  createFixture,
  diskOf,
  type Fixture,
  OTHER_REF,
  PXE_RULES,
  REF,
  X86_SETS,
} from '#test/support/server/machine-fixture.ts'
import {
  anyStep,
  createLife,
  plan as planOf,
  type Step,
} from '#test/support/server/machine-life.ts'

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
  noLive.surroundings = { ...noLive.surroundings, sets: () => ({ x86_64: null, arm64: null }) }
  for (let boot = 1; boot <= 20; boot++) assert.is(noLive.script().rule, 'half-written')
  assert.is(noLive.machine.cycle.offers, 1, 'waiting is no live boot')

  const stopped = crashed()
  stopped.put({})
  assert.is(stopped.script().rule, 'ipxe-exit', 'an operator may say otherwise')
})

/** An operator had it boot its disk. */
function allowed(): Fixture {
  const fixture = crashed()
  fixture.surroundings = { ...fixture.surroundings, sets: () => ({ x86_64: null, arm64: null }) }
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
  fixture.surroundings = { ...fixture.surroundings, sets: () => X86_SETS }
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

const TWINS = ['a', 'b'].map((end, at) =>
  diskOf('PDN', {
    path: `/dev/sd${end}`,
    wwn: `0x600508b1001cc7e${end}`,
    by_path: `pci-0000:03:00.0-scsi-0:1:0:${at}`,
    size_bytes: 2e12,
  }),
)
const SLOTS = ['a', 'b'].map((end, at) =>
  diskOf(null, {
    path: `/dev/sd${end}`,
    wwn: '0x0000000000000000',
    by_path: `pci-0000:00:17.0-ata-${at}`,
    model: 'JMicron',
    size_bytes: 4e12,
  }),
)

function arm(disks: readonly InventoryDisk[], target: string): Fixture {
  const fixture = createFixture()
  fixture.disks(...disks)
  pick(fixture, target)
  return fixture
}

const pick = (fixture: Fixture, target: string | null) =>
  fixture.put({
    boot_mode: 'flasher-flash-once',
    bty_image_ref: REF,
    target_disk_serial: target,
  })

const ask = ({ machine, surroundings }: Fixture, features: string | null) =>
  decidePlan(machine, surroundings, parseFeatures(features === null ? {} : { features })).plan

for (const [what, disks, target] of [
  ['a WWN', TWINS, 'wwn:0x600508b1001cc7eb'],
  ['a place', SLOTS, 'path:pci-0000:00:17.0-ata-1'],
] as const) {
  test(`by ${what}, who announces disk-id gets the plan and finds the disk`, () => {
    const fixture = arm(disks, target)
    const plan = ask(fixture, 'first-boot,capture,disk-id')
    assert.is(plan.mode, 'flash')
    const read = parsePlan(renderPlan(plan, 'http://10.0.0.1:8080'))
    assert.ok(read.ok && read.value.mode === 'flash')
    const { disk, seen } = read.value
    const found = findDisk(disks, disk, seen)
    assert.is(found.ok && found.value.path, '/dev/sdb')
  })

  test(`by ${what}, a live system that does not announce it gets a person and the reason`, () => {
    const fixture = arm(disks, target)
    const plan = ask(fixture, 'first-boot,capture')
    assert.is(plan.mode, 'interactive')
    assert.match(plan.mode === 'interactive' ? (plan.reason ?? '') : '', /Install a newer one/)
    // The clients of old announce nothing, and report neither WWN nor place.
    fixture.disks(...disks.map((disk) => ({ ...disk, wwn: null, by_path: null })))
    const old = ask(fixture, null)
    assert.is(old.mode, 'interactive')
    assert.match(old.mode === 'interactive' ? (old.reason ?? '') : '', /Install a newer one/)
  })
}

test('another disk at the place is not flashed, neither by server nor by client, until it is picked anew', () => {
  const fixture = arm(SLOTS, 'path:pci-0000:00:17.0-ata-1')
  const plan = parsePlan(renderPlan(ask(fixture, 'disk-id'), 'http://10.0.0.1:8080'))
  assert.ok(plan.ok && plan.value.mode === 'flash')
  const swapped = SLOTS.map((disk) => ({ ...disk, size_bytes: 8e12, serial: `S${disk.path}` }))
  const refused = findDisk(swapped, plan.value.disk, plan.value.seen)
  assert.match(
    refused.ok ? '' : refused.refusal,
    /Another disk is at .*8 TB.*selected disk was 4 TB/,
  )
  fixture.disks(...swapped)
  const doubted = fixture.plan()
  assert.is(doubted.rule, 'disk-changed')
  assert.is(doubted.plan.mode, 'interactive')
  pick(fixture, 'path:pci-0000:00:17.0-ata-1')
  assert.is(fixture.plan().rule, 'disk-changed', 'saving the same picks nothing anew')
  pick(fixture, '+path:pci-0000:00:17.0-ata-1')
  assert.is(fixture.machine.target_disk_serial, 'path:pci-0000:00:17.0-ata-1')
  assert.is(ask(fixture, 'disk-id').mode, 'flash')
})

test('what was picked is kept with the record, and a capture has it too', () => {
  const fixture = arm(SLOTS, 'path:pci-0000:00:17.0-ata-0')
  const { machine } = fixture
  const stored = parseRecord(JSON.parse(JSON.stringify(machine)))
  assert.equal(stored?.target_disk_seen, machine.target_disk_seen)
  assert.is(stored?.target_disk_seen?.size_bytes, 4e12)
  const { target_disk_seen: _, ...older } = machine
  assert.is(parseRecord(JSON.parse(JSON.stringify(older)))?.target_disk_seen, null)
  fixture.put({ boot_mode: 'flasher-tui', target_disk_serial: machine.target_disk_serial })
  const order = { name: 'a.img.zst', generalize: false, disk_serial: null }
  const ordered = orderCapture(fixture.machine, order, fixture.now())
  assert.ok(ordered.ok)
  fixture.machine = ordered.value
  const plan = parsePlan({
    ...renderPlan(ask(fixture, 'capture,disk-id'), 'http://10.0.0.1:8080'),
    upload: { url: 'http://10.0.0.1:8081/captures', token: 'x' },
  })
  assert.ok(plan.ok && plan.value.mode === 'capture')
  assert.is(plan.value.seen?.size_bytes, 4e12)
  assert.is(ask(fixture, 'capture').mode, 'interactive')
})

test('a plan that says of the disk what cannot be read is no plan', () => {
  const fixture = arm(SLOTS, 'path:pci-0000:00:17.0-ata-0')
  const plan = renderPlan(ask(fixture, 'disk-id'), 'http://10.0.0.1:8080')
  assert.is(parsePlan({ ...plan, target_disk: { size_bytes: 'all' } }).ok, false)
})

const valuesOf = (html: string) =>
  [...html.matchAll(/name="target_disk_serial" value="([^"]*)"( checked)?( disabled)?/g)].map(
    ([, value, checked, disabled]) => `${value ?? ''}${checked ?? ''}${disabled ?? ''}`,
  )

test('the cards offer the name that tells each disk apart, and say what that means', () => {
  const { machine } = arm(TWINS, 'wwn:0x600508b1001cc7eb')
  const cards = String(renderDisks(machine, 'wwn:0x600508b1001cc7eb', null))
  assert.equal(valuesOf(cards), ['wwn:0x600508b1001cc7ea', 'wwn:0x600508b1001cc7eb checked'])
  assert.match(cards, /2 disks of this machine have this serial number\./)
  assert.match(cards, /Selected by its WWN/)
  const shared = String(renderDisks(machine, 'PDN', null))
  assert.equal(valuesOf(shared).slice(0, 2), ['PDN checked', 'wwn:0x600508b1001cc7ea'])
  const nameless = TWINS.map((disk) => ({ ...disk, wwn: null, by_path: null }))
  const blind = String(renderDisks({ ...machine, known_disks: nameless }, '', null))
  assert.equal(valuesOf(blind), ['-/dev/sda disabled', '-/dev/sdb disabled'])
})

test('a card of another disk at the picked place picks it anew', () => {
  const fixture = arm(SLOTS, 'path:pci-0000:00:17.0-ata-1')
  fixture.disks(...SLOTS.map((disk) => ({ ...disk, model: 'Other' })))
  const cards = String(renderDisks(fixture.machine, 'path:pci-0000:00:17.0-ata-1', null))
  assert.equal(valuesOf(cards), [
    'path:pci-0000:00:17.0-ata-1 checked',
    'path:pci-0000:00:17.0-ata-0',
    '+path:pci-0000:00:17.0-ata-1',
  ])
  assert.match(cards, /Another disk is at/)
})

test('any order of contacts, edits, hours and restarts', () => {
  fc.assert(
    fc.property(
      anySettings,
      fc.array(anyStep, { minLength: 5, maxLength: 60, size: 'max' }),
      (settings, steps) => {
        const life = createLife(settings)
        for (const step of steps) step(life)
      },
    ),
    { numRuns: 20_000 },
  )
})

test('a machine that dies in every live boot ends at its disk, or at a person', () => {
  const anyDeath = fc.constantFrom<readonly Step[]>(
    [],
    [({ fixture }) => fixture.bootFile()],
    [planOf],
  )
  fc.assert(
    fc.property(
      anySettings,
      fc.array(anyStep, { maxLength: 30, size: 'max' }),
      fc.array(anyDeath, { minLength: 7, maxLength: 7 }),
      (settings, steps, deaths) => {
        const life = createLife(settings)
        for (const step of steps) step(life)
        life.fixture.surroundings = {
          ...life.fixture.surroundings,
          sets: () => X86_SETS,
          placeOf: () => null,
        }
        const ends = deaths.map((death) => {
          const { rule, counts } = life.fixture.script()
          for (const step of death) step(life)
          return counts && rule !== 'loop-to-person' ? 'unattended' : rule
        })
        assert.ok(
          ends.some((rule) => rule !== 'unattended'),
          ends.join(' '),
        )
      },
    ),
    { numRuns: 5000 },
  )
})

test.run()
