import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseFeatures } from '#engine/first-boot/rules/seed.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { renderDisks } from '#server/current/pages/machines/machine.ts'
import { orderCapture } from '#server/current/rules/operator-edits.ts'
import { decidePlan, renderPlan } from '#server/current/rules/plan.ts'
import { parseRecord } from '#server/current/rules/machine.ts'
import { findDisk, parsePlan } from '#flasher/order/rules/plan.ts'
import { createFixture, diskOf, REF, type Fixture } from '#test/support/server/machine-fixture.ts'

const test = suite('disks that serial numbers do not tell apart')

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
    assert.match(plan.mode === 'interactive' ? (plan.reason ?? '') : '', /newer live system/)
    // The clients of old announce nothing, and report neither WWN nor place.
    fixture.disks(...disks.map((disk) => ({ ...disk, wwn: null, by_path: null })))
    const old = ask(fixture, null)
    assert.is(old.mode, 'interactive')
    assert.match(old.mode === 'interactive' ? (old.reason ?? '') : '', /newer live system/)
  })
}

test('another disk at the place is not flashed, neither by server nor by client, until it is picked anew', () => {
  const fixture = arm(SLOTS, 'path:pci-0000:00:17.0-ata-1')
  const plan = parsePlan(renderPlan(ask(fixture, 'disk-id'), 'http://10.0.0.1:8080'))
  assert.ok(plan.ok && plan.value.mode === 'flash')
  const swapped = SLOTS.map((disk) => ({ ...disk, size_bytes: 8e12, serial: `S${disk.path}` }))
  const refused = findDisk(swapped, plan.value.disk, plan.value.seen)
  assert.match(refused.ok ? '' : refused.refusal, /Another disk is at .*8 TB.*there was 4 TB/)
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
  assert.equal(valuesOf(cards), ['wwn:0x600508b1001cc7ea', 'wwn:0x600508b1001cc7eb checked', ''])
  assert.match(cards, /2 disks of this machine have this serial number\./)
  assert.match(cards, /Selected by its WWN/)
  const shared = String(renderDisks(machine, 'PDN', null))
  assert.equal(valuesOf(shared).slice(0, 2), ['PDN checked', 'wwn:0x600508b1001cc7ea'])
  const nameless = TWINS.map((disk) => ({ ...disk, wwn: null, by_path: null }))
  const blind = String(renderDisks({ ...machine, known_disks: nameless }, '', null))
  assert.equal(valuesOf(blind), ['-/dev/sda disabled', '-/dev/sdb disabled', ' checked'])
})

test('a card of another disk at the picked place picks it anew', () => {
  const fixture = arm(SLOTS, 'path:pci-0000:00:17.0-ata-1')
  fixture.disks(...SLOTS.map((disk) => ({ ...disk, model: 'Other' })))
  const cards = String(renderDisks(fixture.machine, 'path:pci-0000:00:17.0-ata-1', null))
  assert.equal(valuesOf(cards), [
    'path:pci-0000:00:17.0-ata-1 checked',
    'path:pci-0000:00:17.0-ata-0',
    '+path:pci-0000:00:17.0-ata-1',
    '',
  ])
  assert.match(cards, /Another disk is at/)
})

test.run()
