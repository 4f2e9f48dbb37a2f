/** The earlier line: a flash that a restored state brought back. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { applyPolicy, disarm, keepHeldBack, parseRecord } from '#server/earlier/rules/machine.ts'
import { BY, contactAt, createEarlierFixture } from '#test/support/server/earlier-machine.ts'

const test = suite('the earlier line: disarming')
const ARMED = { boot_policy: 'flash', image: 'debian.img' }

function armed() {
  const fixture = createEarlierFixture()
  fixture.put(ARMED)
  return fixture
}
type Fixture = ReturnType<typeof armed>

function disarmed(begin: (fixture: Fixture) => void = () => {}) {
  const fixture = armed()
  begin(fixture)
  fixture.machine = disarm(fixture.machine, fixture.now())
  return fixture
}

const planOf = ({ line, machine, now }: Fixture) => line.decidePlan(machine, contactAt(now())).mode
const flashes = (script: string) => script.includes('flasher.image_url=')
const isLive = (script: string) => /^kernel /m.test(script)

test('policy and image stay, and it boots its disk until it is ordered again', () => {
  const fixture = disarmed()
  assert.equal([fixture.machine.boot_policy, fixture.machine.image], ['flash', 'debian.img'])
  assert.is(isLive(fixture.script()), false)
  assert.is(planOf(fixture), 'exit')
  fixture.put(ARMED)
  assert.is(isLive(fixture.script()), false, 'equal values are no order')
  const again = applyPolicy(fixture.machine, 'flash', { ...BY, at: fixture.now() })
  assert.ok(again.ok)
  fixture.machine = again.value
  assert.ok(flashes(fixture.script()))
})

test('another image is an order of its own', () => {
  const fixture = disarmed()
  fixture.put({ ...ARMED, image: 'other.img' })
  assert.ok(flashes(fixture.script()))
})

test('a flash that began and never ended: the terminal UI, until its end is heard', () => {
  const fixture = disarmed((begun) => void begun.script())
  const script = fixture.script()
  assert.equal([isLive(script), flashes(script)], [true, false])
  assert.match(script, 'flasher.mode=interactive')
  assert.is(planOf(fixture), 'interactive')
  fixture.signal({ kind: 'done' })
  assert.is(isLive(fixture.script()), false)
})

test('what is being written now is held back, whatever an older state says of it', () => {
  const present = armed()
  present.script()
  const fixture = createEarlierFixture()
  fixture.put({ boot_policy: 'local' })
  const held = keepHeldBack(fixture.machine, present.machine, fixture.now())
  assert.ok(held !== null)
  fixture.machine = held
  assert.match(fixture.script(), 'flasher.mode=interactive')
  fixture.put({ boot_policy: 'tui' })
  fixture.put({ boot_policy: 'local' })
  assert.is(isLive(fixture.script()), false, 'an operator knows better')
})

test('where there is no order, the very same record stays; it is stored and read again', () => {
  const fixture = createEarlierFixture()
  assert.is(disarm(fixture.machine, fixture.now()), fixture.machine)
  const { machine } = disarmed()
  assert.is(disarm(machine, fixture.now()), machine)
  assert.equal(parseRecord(JSON.parse(JSON.stringify(machine))), machine)
})

test.run()
