import type { BootMode } from '#server/current/machines/rules/boot-mode.ts'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { nameOrder } from '#engine/capture/rules/order.ts'
import { ACTIONS } from '#server/current/machines/rules/action.ts'
import { decideBoot } from '#server/current/machines/rules/boot.ts'
import * as contacts from '#server/current/machines/rules/contact.ts'
import { createMachine, type Machine, parseRecord } from '#server/current/machines/rules/machine.ts'
import { applyUpsert, flashAgain } from '#server/current/machines/rules/operator-edits.ts'
import { decidePlan, renderPlan } from '#server/current/machines/rules/plan.ts'
import { decideRequest } from '#server/current/machines/rules/token.ts'
import { createFixture, diskOf, MAC, REF } from '#test/support/server/machine-fixture.ts'

const test = suite('captures: rules')
const NOW = '2027-01-15T08:00:00.000Z'
const LATER = '2027-01-15T08:05:00.000Z'
const NAME = 'web-42.img.zst'
const KNOWS = { firstBoot: true, capture: true, diskId: true }
const { surroundings } = createFixture()

const BASE: Machine = {
  ...createMachine(MAC, 'ipxe-exit', NOW),
  known_disks: [diskOf('S1'), diskOf('S2')],
}

function order(machine: Machine, fields: object = {}): Machine {
  const ordered = ACTIONS.capture.apply(machine, { name: NAME, disk_serial: 'S2', ...fields }, NOW)
  if (!ordered.ok) throw new Error(ordered.refusal)
  return ordered.value
}

const refusalOf = (machine: Machine, fields: object = {}) => {
  const ordered = ACTIONS.capture.apply(machine, { name: NAME, ...fields }, NOW)
  return ordered.ok ? null : ordered.refusal
}

const offer = (machine: Machine, now = NOW) =>
  contacts.rememberOffer(machine, decideBoot(machine, { ...surroundings, now }), now)

const ended = (machine: Machine, result: 'done' | 'failed' | 'cancelled', startedAt = LATER) =>
  contacts.rememberCaptureEnded(machine, { result, reason: null, startedAt }, LATER)

test('an ordered capture comes before the mode, once, and the mode stays', () => {
  for (const mode of ['ipxe-exit', 'flasher-tui', 'flasher-inventory'] as const) {
    const machine = order({ ...BASE, boot_mode: mode })
    const ruling = decideBoot(machine, surroundings)
    assert.equal([ruling.rule, ruling.decision.kind], ['capture', 'to-live'], mode)
    const { plan } = decidePlan(machine, surroundings, KNOWS)
    assert.is(plan.mode, 'capture')
    const done = ended(contacts.rememberPlan(offer(machine), plan, NOW), 'done')
    assert.equal([done.capture?.result, done.boot_mode], ['done', mode])
    assert.is.not(decideBoot(done, surroundings).rule, 'capture')
    assert.is.not(decidePlan(done, surroundings, KNOWS).plan.mode, 'capture')
    assert.is(ended(done, 'failed').capture?.result, 'done', 'what ended stays ended')
  }
})

test('the plan names one disk, the image and where it is uploaded', () => {
  const { plan } = decidePlan(order(BASE, { generalize: true }), surroundings, KNOWS)
  const rendered = renderPlan(plan, surroundings.base, { upload: { url: 'u', token: 't' } })
  const flat = {
    mode: 'capture',
    source_disk_serial: 'S2',
    name: NAME,
    generalize: true,
    upload: { url: 'u', token: 't' },
  }
  assert.equal(rendered, { ...flat, plan: flat })
})

test('it is planned only for a client that announces it, for one disk, with a cache', () => {
  const machine = order(BASE)
  const reasonOf = (of: Machine, features = KNOWS, more = {}) => {
    const { plan } = decidePlan(of, { ...surroundings, ...more }, features)
    return plan.mode === 'interactive' ? plan.reason : plan.mode
  }
  assert.match(reasonOf(machine, { ...KNOWS, capture: false }) ?? '', /too old to capture disks/)
  assert.match(reasonOf(machine, KNOWS, { cacheUrl: null }) ?? '', /no image cache/)
  const gone = { ...machine, known_disks: [diskOf('S1')] }
  assert.match(reasonOf(gone) ?? '', /S2, which is selected on the server, is not in/)
  const twice = { ...machine, known_disks: [diskOf('S2'), diskOf('S2')] }
  assert.match(reasonOf(twice) ?? '', /2 disks .* have the serial number S2/)
  assert.is(reasonOf({ ...machine, known_disks: null }), 'capture')
  const protectedDisk = { ...machine, known_disks: [{ ...diskOf('S2'), readonly: true }] }
  assert.is(reasonOf(protectedDisk), 'capture', 'it is only read')
})

test('what would be flashed is not captured, and what is captured is not flashed', () => {
  const flash = { bty_image_ref: REF, target_disk_serial: 'S1' } as const
  for (const boot_mode of ['flasher-flash-always', 'flasher-flash-once'] as const) {
    assert.match(refusalOf({ ...BASE, ...flash, boot_mode }) ?? '', /set to be flashed/)
    const half = { ...BASE, ...flash, boot_mode, cycle: { ...BASE.cycle, planned: true } }
    assert.match(refusalOf(half) ?? '', /half written/)
    const armed = applyUpsert(order(BASE), MAC, { ...upsertOf(BASE), ...flash, boot_mode }, NOW)
    assert.is(armed.ok, false)
  }
  const once = { ...BASE, ...flash, boot_mode: 'flasher-flash-once' } as const
  const flashed: Machine = { ...once, cycle: { ...BASE.cycle, finished_at: NOW } }
  const captured = order(flashed)
  assert.is(decideBoot(captured, surroundings).rule, 'capture')
  assert.is(flashAgain(captured, NOW).ok, false)
  const other = applyUpsert(captured, MAC, { ...upsertOf(captured), labels: ['a'] }, NOW)
  assert.ok(other.ok && other.value.capture === captured.capture, 'other fields may change')
  assert.ok(decideRequest(captured, 'current', 'begin', LATER).ok, 'a run may begin')
  assert.not.ok(decideRequest(flashed, 'current', 'begin', LATER).ok)
  assert.is(refusalOf({ ...BASE, locked: true }, { disk_serial: 'S1' }), null, 'it is only read')
})

const FLASH = { bty_image_ref: REF, target_disk_serial: 'S1' } as const

/** A machine of which a flash was planned and never ended, through these modes. */
function unfinished(...modes: readonly BootMode[]): Machine {
  const cycle = { ...BASE.cycle, planned: true }
  let machine: Machine = { ...BASE, ...FLASH, boot_mode: 'flasher-flash-once', cycle }
  for (const boot_mode of modes) {
    const put = applyUpsert(machine, MAC, { ...upsertOf(machine), boot_mode }, NOW)
    if (!put.ok) throw new Error(JSON.stringify(put.refusal))
    machine = put.value
  }
  return machine
}

const S1 = { disk_serial: 'S1' } as const

test('what may be half written is not captured, whatever the mode has become', () => {
  const left = [
    unfinished('ipxe-exit'),
    unfinished('flasher-tui'),
    unfinished('ipxe-exit', 'flasher-tui'),
    contacts.rememberDisks(unfinished('flasher-inventory'), { disks: [diskOf('S1')] }, LATER),
    offer(
      contacts.rememberDisks(unfinished('flasher-inventory'), { disks: [diskOf('S1')] }, LATER),
    ),
  ]
  for (const machine of left) {
    const { boot_mode } = machine
    assert.match(refusalOf(machine, S1) ?? '', /half written.*Boot its disk anyway/, boot_mode)
    assert.is(decideBoot(machine, surroundings).decision.kind === 'to-wait', false, boot_mode)
    const allowed = ACTIONS['boot-disk'].apply(machine, {}, LATER)
    assert.ok(allowed.ok, 'the hint holds')
    assert.is(refusalOf(allowed.value, S1), null, boot_mode)
    assert.is(ACTIONS['boot-disk'].apply(allowed.value, {}, LATER).ok, false)
    for (const offers of [0, 1]) {
      const booted = { ...machine, cycle: { ...machine.cycle, offers } }
      assert.is(refusalOf(contacts.rememberDone(booted, LATER), S1), null, 'the flash has ended')
    }
    assert.is(
      refusalOf(contacts.rememberDone(machine, LATER, 'before'), S1),
      null,
      'by its own token',
    )
  }
  const armed = unfinished('ipxe-exit', 'flasher-flash-once')
  assert.is(decideBoot(armed, surroundings).rule, 'flash', 'decision 6: the mode says otherwise')
})

test('a late end of a flash arms nothing while a capture is ordered', () => {
  for (const boot_mode of ['flasher-flash-once', 'flasher-flash-always'] as const) {
    const allowed = ACTIONS['boot-disk'].apply({ ...unfinished(), boot_mode }, {}, NOW)
    assert.ok(allowed.ok)
    if (boot_mode === 'flasher-flash-always') {
      assert.match(refusalOf(allowed.value, S1) ?? '', /Choose another boot mode/)
      continue
    }
    const failed = ended(contacts.rememberDone(order(allowed.value), LATER), 'failed')
    assert.is(decideBoot(failed, surroundings).decision.kind, 'to-disk')
  }
})

const upsertOf = ({
  bty_image_ref,
  labels,
  boot_mode,
  sanboot_drive,
  target_disk_serial,
}: Machine) => ({
  bty_image_ref,
  labels: [...labels],
  boot_mode,
  sanboot_drive,
  target_disk_serial,
})

test('the disk is the one that is named, else the selected or the only one', () => {
  const serialOf = (machine: Machine, fields = {}) =>
    order(machine, { disk_serial: undefined, ...fields }).capture?.disk_serial
  assert.is(serialOf({ ...BASE, target_disk_serial: 'S1' }), 'S1')
  assert.is(serialOf({ ...BASE, known_disks: [diskOf('S7')] }), 'S7')
  assert.is(serialOf(BASE, { disk_serial: ' S2 ' }), 'S2')
  assert.is(refusalOf(BASE), 'Select the disk to capture.')
  assert.match(refusalOf(BASE, { disk_serial: 'S9' }) ?? '', /S9.*not in this machine/)
  assert.match(refusalOf(order(BASE), { disk_serial: 'S1' }) ?? '', /already ordered/)
  for (const name of ['', 'a/b.img.zst', 'x.img', '.x.img.zst']) {
    assert.ok(ACTIONS.capture.check({ name }), name)
  }
})

test('a machine that starts over and over is given up, and follows its mode', () => {
  let machine = order(BASE)
  const limit = surroundings.settings.loop_limit
  for (let at = 0; at < limit; at += 1) {
    assert.is(decideBoot(machine, surroundings).rule, 'capture')
    machine = offer(machine)
  }
  const again = { offered: 'to-live' }
  assert.is(contacts.takeBackOffer(machine, again).capture?.offers, limit - 1)
  const ruling = decideBoot(machine, surroundings)
  assert.equal([ruling.rule, ruling.givesUpCapture], ['ipxe-exit', true])
  const given = offer(machine, LATER)
  assert.equal([given.capture?.result, given.capture?.ended_at], ['failed', LATER])
  assert.is(given.cycle.offers, 0, 'the guard of flashes does not count it')
})

test('a run of before the order does not end it', () => {
  const machine = { ...BASE, capture: { ...order(BASE).capture, ordered_at: LATER } }
  const kept = parseRecord(machine)
  assert.ok(kept)
  assert.is(ended(kept, 'failed', NOW), kept)
  assert.is(ended(kept, 'failed', LATER).capture?.result, 'failed')
})

const plan = (machine: Machine, now: string) =>
  contacts.rememberPlan(machine, decidePlan(machine, surroundings, KNOWS).plan, now)

test('each plan has a later token, except one that is asked for again at once', () => {
  const first = plan(order(BASE), NOW)
  assert.is(first.capture?.planned_at, NOW)
  assert.is(plan(first, '2027-01-15T08:00:00.999Z'), first, 'nothing to store')
  assert.is(plan(first, '2027-01-15T08:00:01.000Z').capture?.planned_at, '2027-01-15T08:00:01.000Z')
  const back = plan(first, '2027-01-15T07:00:00.000Z').capture?.planned_at
  assert.is(back, '2027-01-15T08:00:00.001Z', 'whatever the clock says')
  const { capture } = first
  assert.match(capture === null ? '' : nameOrder(MAC, capture), /^[\w-]{8,64}$/)
})

test('an order is cancelled, stored and read again', () => {
  const machine = order(BASE)
  const cancelled = ACTIONS['cancel-capture'].apply(machine, {}, LATER)
  assert.ok(cancelled.ok)
  assert.is(cancelled.value.capture?.result, 'cancelled')
  assert.is(ACTIONS['cancel-capture'].apply(cancelled.value, {}, LATER).ok, false)
  assert.equal(parseRecord(JSON.parse(JSON.stringify(machine)))?.capture, machine.capture)
  const odd = { ...machine, capture: { ...machine.capture, name: '../../x' } }
  assert.is(parseRecord(odd)?.capture, null)
})

test('several machines do not get the same name; one may have any', () => {
  const { capture } = ACTIONS
  assert.is(capture.check({ name: 'web.img.zst' }, 1), null)
  const errors = capture.check({ name: 'web.img.zst' }, 2) ?? []
  assert.equal(
    errors.map(({ loc, msg }) => [loc.at(-1), msg]),
    [['name', 'must contain {name} or {mac}, so that each machine gets its own image']],
  )
  assert.is(capture.check({ name: '{mac}.img.zst' }, 2), null)
  assert.is(capture.check({}, 2), null)
  assert.is(capture.check({ name: '{mac}.img' }, 2)?.length, 1)
})

test.run()
