/** The earlier line: a `done` that comes twice or late, and what its run is of. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decideOutcome } from '#server/earlier/rules/machine.ts'
import { contactAt, createEarlierFixture } from '#test/support/server/earlier-machine.ts'

const test = suite('the earlier line: ends of flashes')
const armed = (image: string) => ({ boot_policy: 'flash', image })

test('a repeated done does not end an order that its machine has not asked for', () => {
  const fixture = createEarlierFixture()
  fixture.put(armed('a.img'))
  fixture.script()
  fixture.signal({ kind: 'done' })
  const { last_flashed_at } = fixture.machine
  fixture.put(armed('b.img'))
  const order = fixture.machine.armed_at
  for (let turn = 0; turn < 3; turn++) {
    fixture.signal({ kind: 'done' })
    assert.is.not(fixture.machine.last_flashed_at, last_flashed_at)
    assert.is(fixture.machine.armed_at, order, 'what was handed out for it is good')
    assert.is(decideOutcome(fixture.machine, order), null)
  }
  fixture.script()
  fixture.signal({ kind: 'done' })
  assert.is(decideOutcome(fixture.machine, order), 'flashed')
})

test('every done starts the workflow of cijoe-online, whichever order it ends', () => {
  const fixture = createEarlierFixture()
  const fields = { provisioning_mode: 'cijoe-online', cijoe_workflow_ref: 'smoke.yaml' }
  fixture.put({ ...armed('a.img'), ...fields })
  fixture.script()
  fixture.signal({ kind: 'done' })
  fixture.put({ boot_policy: 'tui', ...fields })
  const { last_workflow_run_at, armed_at } = fixture.machine
  // The specification names no other condition: one that a person flashed never asked for a script.
  fixture.signal({ kind: 'done' })
  assert.is.not(fixture.machine.last_workflow_run_at, last_workflow_run_at)
  assert.equal(
    [fixture.machine.last_workflow_status, fixture.machine.armed_at],
    ['running', armed_at],
  )
})

test('the run names the image that the machine was sent to write', () => {
  const fixture = createEarlierFixture()
  fixture.put(armed('a.img'))
  fixture.script()
  fixture.put(armed('b.img'))
  const order = fixture.machine.armed_at
  const describe = () => fixture.line.describeRun(fixture.machine, contactAt(fixture.now()))
  assert.is(describe().origin.image?.name, 'a.img')
  assert.ok(describe().plannedAt)
  fixture.signal({ kind: 'done' })
  assert.is(decideOutcome(fixture.machine, order), null)
  assert.is(describe().origin.image?.name, 'b.img')
})

test('an order ends when it is replaced or disarmed', () => {
  const fixture = createEarlierFixture()
  fixture.put(armed('a.img'))
  const order = fixture.machine.armed_at
  fixture.put(armed('b.img'))
  assert.is(decideOutcome(fixture.machine, order), 'replaced')
  fixture.put({ boot_policy: 'local' })
  assert.is(decideOutcome(fixture.machine, order), 'disarmed')
})

test.run()
