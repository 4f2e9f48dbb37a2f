/** The state of a machine as pages show it, from its record and what is known beside it. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { disarm } from '#server/earlier/rules/machine.ts'
import { decideState, MAX_SILENT_FLASH_MS } from '#server/earlier/rules/state.ts'
import { BY, createEarlierFixture } from '#test/support/server/earlier-machine.ts'

const test = suite('the earlier line: states')
const QUIET = { run: null, workflowError: null, now: new Date(BY.at) } as const

/** A machine, and its state with what comes next. */
function createStateFixture() {
  const fixture = createEarlierFixture()
  return {
    fixture,
    state: () => decideState(fixture.machine, QUIET).state,
    view: () => decideState(fixture.machine, QUIET),
  }
}
const FLASH = { image: 'a.img', boot_policy: 'flash' } as const

test('discovered, armed, being flashed, flashed, and flashed again', () => {
  const { fixture, state, view } = createStateFixture()
  assert.is(state(), 'needs-you')
  assert.match(view().is, 'New machine')
  fixture.put(FLASH)
  assert.is(state(), 'armed')
  fixture.script()
  assert.is(state(), 'running')
  fixture.signal({ kind: 'done' })
  assert.is(state(), 'done')
  // It is never said that a disk is safe which the next network boot erases.
  assert.equal(
    [view().word, view().is],
    ['done, armed', 'Flashed. Its next network boot erases the disk and flashes it.'],
  )
  fixture.script()
  assert.is(state(), 'running')
  fixture.signal({ kind: 'done' })
  fixture.put({ ...FLASH, boot_policy: 'local' })
  assert.equal([state(), view().next], ['done', 'Its next network boot starts its own disk.'])
  fixture.put({ ...FLASH, image: 'b.img' })
  assert.is(state(), 'armed')
})

test('a failure has its reason until the machine is sent to flash again', () => {
  const { fixture, state, view } = createStateFixture()
  fixture.put(FLASH)
  fixture.script()
  fixture.signal({ kind: 'failed', reason: 'the disk is too small' })
  assert.is(state(), 'failed')
  assert.is(view().is, 'The flash failed: the disk is too small')
  assert.is(view().next, 'Its next network boot tries again.')
  fixture.script()
  assert.is(state(), 'running')
  fixture.signal({ kind: 'failed', reason: null })
  assert.equal([state(), view().is], ['failed', 'The flash failed.'])
  fixture.put({ ...FLASH, boot_policy: 'local' })
  assert.is(state(), 'ready')
})

test('a flash that reports nothing runs for two hours, and then needs somebody', () => {
  const { fixture } = createStateFixture()
  fixture.put(FLASH)
  fixture.script()
  const offered = Date.parse(fixture.machine.offered_at ?? '')
  const after = (ms: number) =>
    decideState(fixture.machine, { ...QUIET, now: new Date(offered + ms) })
  assert.is(after(MAX_SILENT_FLASH_MS).state, 'running')
  const late = after(MAX_SILENT_FLASH_MS + 1)
  assert.equal([late.state, /half written/.test(late.is)], ['needs-you', true])
  // One that reports its progress is judged by its reports.
  const run = { stalled: false }
  assert.is(
    decideState(fixture.machine, { ...QUIET, run, now: new Date(offered + 9e7) }).state,
    'running',
  )
  fixture.signal({ kind: 'done' })
  assert.is(after(MAX_SILENT_FLASH_MS + 1).state, 'done')
})

test('a flash that reports its progress runs; one that stopped responding needs attention', () => {
  const { fixture } = createStateFixture()
  fixture.put(FLASH)
  const stateOf = (stalled: boolean) =>
    decideState(fixture.machine, { ...QUIET, run: { stalled } }).state
  assert.equal([stateOf(false), stateOf(true)], ['running', 'needs-you'])
})

test('set to be flashed without an image, or disarmed by a restored state', () => {
  const { fixture, state, view } = createStateFixture()
  fixture.put({ boot_policy: 'flash' })
  assert.match(view().is, 'no image is assigned')
  fixture.put(FLASH)
  const armed = fixture.machine
  fixture.machine = disarm(armed, fixture.now())
  assert.is(state(), 'needs-you')
  assert.match(view().is, 'Disarmed')
  fixture.machine = armed
  fixture.script()
  fixture.machine = disarm(fixture.machine, fixture.now())
  assert.match(view().is, 'half written')
})

test('the workflow after the flash: it runs, fails with its reason, or succeeded', () => {
  const { fixture, state, view } = createStateFixture()
  const body = { ...FLASH, provisioning_mode: 'cijoe-online', cijoe_workflow_ref: '/srv/w.yaml' }
  fixture.put(body)
  fixture.script()
  fixture.signal({ kind: 'done' })
  assert.equal([state(), view().is], ['running', 'Flashed; its workflow is running.'])
  const failed = { ...fixture.machine, last_workflow_status: 'failed' as const }
  const workflowError = 'cijoe is not installed'
  assert.match(
    decideState(failed, { ...QUIET, workflowError }).is,
    'failed: cijoe is not installed',
  )
  assert.is(decideState(failed, QUIET).state, 'failed')
  fixture.machine = { ...failed, last_workflow_status: 'success' }
  assert.match(view().is, /^Flashed, and its workflow succeeded\. .*erases/)
  // A new order counts more than how the workflow of the last one ended.
  fixture.machine = failed
  fixture.put({ ...body, image: 'b.img' })
  assert.is(state(), 'armed')
})

test('a machine that somebody configured boots its disk or asks, and needs nobody', () => {
  const { fixture, view } = createStateFixture()
  fixture.put({ boot_policy: 'local' })
  assert.equal([view().state, view().word], ['ready', 'boots its disk'])
  fixture.put({ boot_policy: 'tui' })
  assert.equal([view().state, view().word], ['ready', 'asks'])
})

test.run()
