/** The state of a machine in words, and what operators can do to it. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ACTIONS } from '#server/current/machines/rules/action.ts'
import { decideBoot } from '#server/current/machines/rules/boot.ts'
import { decidePlan } from '#server/current/machines/rules/plan.ts'
import { decideState, type RunView } from '#server/current/machines/rules/state.ts'
import {
  createFixture,
  diskOf,
  OTHER_REF,
  PXE_RULES,
  REF,
  type Fixture,
} from '#test/support/server/machine-fixture.ts'

const test = suite('state')

function stateOf({ machine, surroundings }: Fixture, run: RunView | null = null) {
  const rulings = {
    boot: decideBoot(machine, surroundings),
    plan: decidePlan(machine, surroundings),
  }
  return decideState(machine, rulings, run)
}

test('a machine of a paused batch is paused, neither ready nor armed', () => {
  const fixture = createFixture()
  fixture.disks(diskOf('S1'))
  fixture.flash('flasher-flash-once')
  const { machine } = fixture
  const cycle = { ...machine.cycle, batch: 'b1', paused_at: '2026-11-29T12:00:00Z' }
  const view = stateOf({ ...fixture, machine: { ...machine, cycle } })
  assert.is(view.state, 'paused')
  assert.match(view.next, 'Until you resume')
})

test('a flash-once from its discovery to its end', () => {
  const fixture = createFixture()
  const states = [stateOf(fixture).state]
  const then = (act: () => unknown) => {
    act()
    states.push(stateOf(fixture).state)
  }
  then(() => fixture.script())
  then(() => fixture.bootFile())
  then(() => fixture.disks(diskOf('S1')))
  then(() => fixture.flash('flasher-flash-once'))
  then(() => fixture.script())
  then(() => fixture.bootFile())
  then(() => fixture.plan())
  then(() => fixture.failed('no space'))
  then(() => fixture.script())
  then(() => fixture.done())
  assert.equal(states, [
    'ready',
    'ready',
    'running',
    'needs-you',
    'armed',
    'armed',
    'running',
    'running',
    'failed',
    'running',
    'done',
  ])
})

test('what went wrong is said in its words, and what is next with it', () => {
  const fixture = createFixture()
  fixture.flash('flasher-flash-once')
  fixture.script()
  fixture.failed('no space')
  assert.equal(stateOf(fixture), {
    state: 'failed',
    is: 'The flash failed: no space',
    next: 'Its next network boot tries again.',
  })
  assert.is(stateOf(fixture, { stalled: false, mode: 'flash' }).state, 'running')
  assert.is(stateOf(fixture, { stalled: true, mode: 'flash' }).state, 'needs-you')
})

test('a doubtful disk, a loop and a lock need a person', () => {
  const doubtful = createFixture()
  doubtful.disks(diskOf('S1'), diskOf('S1'))
  doubtful.flash('flasher-flash-once')
  assert.is(stateOf(doubtful).state, 'needs-you')
  assert.match(stateOf(doubtful).is, '2 disks')

  const looping = createFixture()
  looping.flash('flasher-flash-once')
  for (let boot = 0; boot < PXE_RULES.loop_limit; boot++) looping.script()
  assert.is(stateOf(looping).state, 'needs-you', 'before the contact that tells')
  looping.script()
  assert.match(stateOf(looping).is, 'nothing was written')

  const locked = createFixture()
  locked.flash('flasher-flash-once')
  locked.machine = { ...locked.machine, locked: true }
  assert.match(stateOf(locked).is, 'Locked')
})

test('nobody says to flash a locked machine, nor that it is flashed again', () => {
  const fixture = createFixture()
  fixture.put({ boot_mode: 'ipxe-exit' })
  fixture.machine = { ...fixture.machine, locked: true }
  assert.match(stateOf(fixture).next, 'Unlock it to flash it')

  const failed = createFixture()
  failed.flash('flasher-flash-once')
  failed.script()
  failed.failed('no space')
  failed.machine = { ...failed.machine, locked: true }
  assert.is(stateOf(failed).state, 'failed')
  assert.match(stateOf(failed).next, 'Unlock it to flash it')
})

test('what waits with its disk says why, and what an operator said about it', () => {
  const fixture = createFixture()
  fixture.surroundings = { ...fixture.surroundings, sets: () => ({ x86_64: null, arm64: null }) }
  fixture.flash('flasher-flash-once')
  fixture.plan()
  const waiting = stateOf(fixture)
  assert.is(waiting.state, 'needs-you')
  assert.match(waiting.is, /^Waiting for a live system\. .* never reported/)
  assert.match(waiting.next, 'boot the disk anyway')
  assert.is(
    stateOf(fixture, { stalled: true, mode: 'flash' }).is,
    waiting.is,
    'whatever was posted before',
  )
  assert.is(stateOf(fixture, { stalled: false, mode: 'flash' }).state, 'running')
  assert.is(act(fixture, 'boot-disk', null), '')
  assert.is(stateOf(fixture).state, 'ready')
  assert.match(stateOf(fixture).is, 'as an operator chose')
  fixture.failed('no space')
  assert.match(stateOf(fixture).next, 'starts its own disk')
  assert.match(act(fixture, 'boot-disk', null), 'no unfinished flash to override')
})

/** The refusal; empty: it was done. */
const act = (fixture: Fixture, name: keyof typeof ACTIONS, parameters: unknown) => {
  const acted = ACTIONS[name].apply(fixture.machine, parameters, fixture.now())
  if (acted.ok) fixture.machine = acted.value
  return acted.ok ? '' : acted.refusal
}

test('Flash again arms what was flashed, with another image where one is named', () => {
  const fixture = createFixture()
  assert.match(act(fixture, 'flash', null), 'Not in a flash mode')
  fixture.flash('flasher-flash-once')
  fixture.script()
  fixture.done()
  assert.is(stateOf(fixture).state, 'done')
  assert.is(act(fixture, 'flash', null), '')
  assert.is(stateOf(fixture).state, 'armed')
  assert.is(act(fixture, 'flash', { bty_image_ref: OTHER_REF }), '')
  assert.is(fixture.machine.bty_image_ref, OTHER_REF)
  assert.match(act(fixture, 'flash', { bty_image_ref: null }), 'No image')
  assert.match(act(fixture, 'flash', { target_disk_serial: ' ' }), 'No target disk')
  assert.is(fixture.machine.bty_image_ref, OTHER_REF, 'a refused action changes nothing')
})

test('mode and image change nothing else, and obey the lock', () => {
  const fixture = createFixture()
  fixture.put({ labels: ['a'], sanboot_drive: '0x81', target_disk_serial: 'S1' })
  assert.is(act(fixture, 'image', { bty_image_ref: REF }), '')
  assert.is(act(fixture, 'mode', { boot_mode: 'flasher-flash-once' }), '')
  const { labels, sanboot_drive, target_disk_serial } = fixture.machine
  assert.equal([labels, sanboot_drive, target_disk_serial], [['a'], '0x81', 'S1'])
  assert.is(act(fixture, 'mode', { boot_mode: 'ipxe-exit' }), '')
  assert.is(act(fixture, 'lock', null), '')
  assert.match(act(fixture, 'mode', { boot_mode: 'flasher-flash-always' }), 'Locked')
  assert.match(act(fixture, 'flash', { boot_mode: 'flasher-flash-once' }), 'Locked')
  assert.is(act(fixture, 'unlock', null), '')
  assert.is(act(fixture, 'flash', { boot_mode: 'flasher-flash-once' }), '')
})

test('labels are added and taken away, to sixteen', () => {
  const fixture = createFixture()
  assert.is(act(fixture, 'label', { add: ['b', 'a', 'a'] }), '')
  assert.is(act(fixture, 'label', { add: ['c'], remove: ['b', 'x'] }), '')
  assert.equal(fixture.machine.labels, ['a', 'c'])
  const many = Array.from({ length: 15 }, (_, at) => `l${at}`)
  assert.match(act(fixture, 'label', { add: many }), 'more than 16')
  assert.is(act(fixture, 'console', { serial_console: 'ttyS1' }), '')
  assert.is(fixture.machine.serial_console, 'ttyS1')
  assert.is(act(fixture, 'grow', { grow: true }), '')
  assert.is(fixture.machine.grow, true)
})

test('parameters are checked before, and once more', () => {
  for (const [name, action] of Object.entries(ACTIONS)) {
    assert.ok(action.check({ other: 1 }), name)
    const acted = action.apply(createFixture().machine, { other: 1 }, createFixture().now())
    assert.not.ok(acted.ok, name)
  }
  assert.is(ACTIONS.mode.check({ boot_mode: 'ipxe-exit' }), null)
})

test('who waits for its turn says its place; who has not come yet says that it would wait', () => {
  const fixture = createFixture()
  fixture.flash('flasher-flash-once')
  fixture.surroundings = {
    ...fixture.surroundings,
    placeOf: () => ({ place: 3, waiting: 12, flashing: 4, isNew: false }),
  }
  const before = stateOf(fixture)
  assert.equal([before.state, before.is], ['armed', 'Ready to be flashed.'])
  assert.match(before.next, /waits for its turn/)
  fixture.script()
  const waiting = stateOf(fixture)
  assert.equal([waiting.state, waiting.is], ['armed', 'Position 3 of 12 in the queue.'])
})

test.run()
