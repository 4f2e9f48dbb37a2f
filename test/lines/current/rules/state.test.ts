/** The state of a machine in words, and what operators can do to it. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ACTIONS } from '../../../../runtime/lines/current/rules/action.ts'
import { decideBoot } from '../../../../runtime/lines/current/rules/boot.ts'
import { decidePlan } from '../../../../runtime/lines/current/rules/plan.ts'
import { decideState, type RunView } from '../../../../runtime/lines/current/rules/state.ts'
import {
  createDesk,
  diskOf,
  OTHER_REF,
  PXE_RULES,
  REF,
  type Desk,
} from '../../../support/server/machine-fixture.ts'

const test = suite('state')

function stateOf({ machine, surroundings }: Desk, run: RunView | null = null) {
  const rulings = {
    boot: decideBoot(machine, surroundings),
    plan: decidePlan(machine, surroundings),
  }
  return decideState(machine, rulings, run)
}

test('a flash-once from its discovery to its end', () => {
  const desk = createDesk()
  const states = [stateOf(desk).state]
  const then = (act: () => unknown) => {
    act()
    states.push(stateOf(desk).state)
  }
  then(() => desk.script())
  then(() => desk.bootFile())
  then(() => desk.disks(diskOf('S1')))
  then(() => desk.flash('flasher-flash-once'))
  then(() => desk.script())
  then(() => desk.bootFile())
  then(() => desk.plan())
  then(() => desk.failed('no space'))
  then(() => desk.script())
  then(() => desk.done())
  assert.equal(states, [
    'armed',
    'armed',
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
  const desk = createDesk()
  desk.flash('flasher-flash-once')
  desk.script()
  desk.failed('no space')
  assert.equal(stateOf(desk), {
    state: 'failed',
    is: 'It failed: no space',
    next: 'Its next network boot tries again.',
  })
  assert.is(stateOf(desk, { stalled: false }).state, 'running')
  assert.is(stateOf(desk, { stalled: true }).state, 'needs-you')
})

test('a doubtful disk, a loop and a lock need a person', () => {
  const doubtful = createDesk()
  doubtful.disks(diskOf('S1'), diskOf('S1'))
  doubtful.flash('flasher-flash-once')
  assert.is(stateOf(doubtful).state, 'needs-you')
  assert.match(stateOf(doubtful).is, '2 disks')

  const looping = createDesk()
  looping.flash('flasher-flash-once')
  for (let boot = 0; boot < PXE_RULES.loop_limit; boot++) looping.script()
  assert.is(stateOf(looping).state, 'needs-you', 'before the contact that tells')
  looping.script()
  assert.match(stateOf(looping).is, 'nothing was written')

  const locked = createDesk()
  locked.flash('flasher-flash-once')
  locked.machine = { ...locked.machine, locked: true }
  assert.match(stateOf(locked).is, 'locked')
})

test('what waits with its disk says why, and what an operator said about it', () => {
  const desk = createDesk()
  desk.surroundings = { ...desk.surroundings, sets: { x86_64: null, arm64: null } }
  desk.flash('flasher-flash-once')
  desk.plan()
  const waiting = stateOf(desk)
  assert.is(waiting.state, 'needs-you')
  assert.match(waiting.is, /^It waits: its disk may be half written, .* never reported/)
  assert.match(waiting.next, 'boot its disk anyway')
  assert.is(stateOf(desk, { stalled: true }).is, waiting.is, 'whatever was posted before')
  assert.is(stateOf(desk, { stalled: false }).state, 'running')
  assert.is(act(desk, 'boot-disk', null), '')
  assert.is(stateOf(desk).state, 'ready')
  assert.match(stateOf(desk).is, 'an operator said so')
  desk.failed('no space')
  assert.match(stateOf(desk).next, 'starts its own disk')
  assert.match(act(desk, 'boot-disk', null), 'nothing to override')
})

/** The refusal; empty: it was done. */
const act = (desk: Desk, name: keyof typeof ACTIONS, parameters: unknown) => {
  const acted = ACTIONS[name].apply(desk.machine, parameters, desk.now())
  if (acted.ok) desk.machine = acted.value
  return acted.ok ? '' : acted.refusal
}

test('Flash again arms what was flashed, with another image where one is named', () => {
  const desk = createDesk()
  assert.match(act(desk, 'flash', null), 'does not flash')
  desk.flash('flasher-flash-once')
  desk.script()
  desk.done()
  assert.is(stateOf(desk).state, 'done')
  assert.is(act(desk, 'flash', null), '')
  assert.is(stateOf(desk).state, 'armed')
  assert.is(act(desk, 'flash', { bty_image_ref: OTHER_REF }), '')
  assert.is(desk.machine.bty_image_ref, OTHER_REF)
  assert.match(act(desk, 'flash', { bty_image_ref: null }), 'no image')
  assert.match(act(desk, 'flash', { target_disk_serial: ' ' }), 'not picked')
  assert.is(desk.machine.bty_image_ref, OTHER_REF, 'a refused action changes nothing')
})

test('mode and image change nothing else, and obey the lock', () => {
  const desk = createDesk()
  desk.put({ labels: ['a'], sanboot_drive: '0x81', target_disk_serial: 'S1' })
  assert.is(act(desk, 'image', { bty_image_ref: REF }), '')
  assert.is(act(desk, 'mode', { boot_mode: 'flasher-flash-once' }), '')
  const { labels, sanboot_drive, target_disk_serial } = desk.machine
  assert.equal([labels, sanboot_drive, target_disk_serial], [['a'], '0x81', 'S1'])
  assert.is(act(desk, 'mode', { boot_mode: 'ipxe-exit' }), '')
  assert.is(act(desk, 'lock', null), '')
  assert.match(act(desk, 'mode', { boot_mode: 'flasher-flash-always' }), 'locked')
  assert.match(act(desk, 'flash', { boot_mode: 'flasher-flash-once' }), 'locked')
  assert.is(act(desk, 'unlock', null), '')
  assert.is(act(desk, 'flash', { boot_mode: 'flasher-flash-once' }), '')
})

test('labels are added and taken away, to sixteen', () => {
  const desk = createDesk()
  assert.is(act(desk, 'label', { add: ['b', 'a', 'a'] }), '')
  assert.is(act(desk, 'label', { add: ['c'], remove: ['b', 'x'] }), '')
  assert.equal(desk.machine.labels, ['a', 'c'])
  const many = Array.from({ length: 15 }, (_, at) => `l${at}`)
  assert.match(act(desk, 'label', { add: many }), 'more than 16')
  assert.is(act(desk, 'console', { serial_console: 'ttyS1' }), '')
  assert.is(desk.machine.serial_console, 'ttyS1')
})

test('parameters are checked before, and once more', () => {
  for (const [name, action] of Object.entries(ACTIONS)) {
    assert.ok(action.check({ other: 1 }), name)
    const acted = action.apply(createDesk().machine, { other: 1 }, createDesk().now())
    assert.not.ok(acted.ok, name)
  }
  assert.is(ACTIONS.mode.check({ boot_mode: 'ipxe-exit' }), null)
})

test('who waits for its turn says its place; who has not come yet says that it would wait', () => {
  const desk = createDesk()
  desk.flash('flasher-flash-once')
  desk.surroundings = {
    ...desk.surroundings,
    placeOf: () => ({ place: 3, waiting: 12, flashing: 4 }),
  }
  const before = stateOf(desk)
  assert.equal([before.state, before.is], ['armed', 'It is ready to be flashed.'])
  assert.match(before.next, /waits for its turn/)
  desk.script()
  const waiting = stateOf(desk)
  assert.equal(
    [waiting.state, waiting.is],
    ['armed', 'Place 3 of 12 in line: it waits for its turn.'],
  )
})

test.run()
