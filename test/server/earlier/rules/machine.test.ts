/** "Machine", "MachineUpsert" and "Transitions", row by row. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  applyPolicy,
  decideOutcome,
  disarm,
  keepHeldBack,
  parseRecord,
} from '#server/earlier/rules/machine.ts'
import { BY, contactAt, createEarlierFixture } from '#test/support/server/earlier-machine.ts'
import { MAC } from '#test/support/server/machine-fixture.ts'

const test = suite('the earlier line: machines')

/** The table's rows in their order, with what a discovered machine has. */
const DISCOVERED = {
  mac: MAC,
  image: null,
  provisioning_mode: 'none',
  hostname: null,
  cijoe_workflow_ref: null,
  last_known_good: null,
  discovered_at: BY.at,
  last_seen_at: null,
  last_seen_ip: null,
  boot_policy: 'tui',
  last_flashed_at: null,
  last_workflow_run_at: null,
  last_workflow_status: null,
  last_workflow_output_path: null,
  created_at: BY.at,
  updated_at: BY.at,
}

test('a machine has the fields of the table, in their order, and no others', () => {
  const { line, machine } = createEarlierFixture()
  assert.is(JSON.stringify(line.toWire(machine)), JSON.stringify(DISCOVERED))
})

test('PUT has the defaults of the table, and replaces all fields', () => {
  const { line } = createEarlierFixture()
  const made = line.parseUpsert({}, null, { mac: MAC, by: BY })
  assert.ok(made.ok)
  const { boot_policy, discovered_at, ...rest } = line.toWire(made.value)
  assert.equal([boot_policy, discovered_at], ['local', null])
  assert.is(rest['provisioning_mode'], 'none')
  const fixture = createEarlierFixture()
  fixture.put({
    image: 'debian.img.zst',
    provisioning_mode: 'cijoe-online',
    hostname: 'box-1',
    cijoe_workflow_ref: '/srv/workflows/smoke.yaml',
    boot_policy: 'flash',
  })
  const { image, provisioning_mode, hostname, cijoe_workflow_ref } = fixture.machine
  assert.equal(
    [image, provisioning_mode, hostname, cijoe_workflow_ref, fixture.machine.boot_policy],
    ['debian.img.zst', 'cijoe-online', 'box-1', '/srv/workflows/smoke.yaml', 'flash'],
  )
  fixture.put({ image: 'debian.img.zst' })
  assert.equal(
    [fixture.machine.hostname, fixture.machine.provisioning_mode, fixture.machine.boot_policy],
    [null, 'none', 'local'],
  )
})

test('PUT leaves what it does not name: when it was found, seen, flashed and tested', () => {
  const fixture = createEarlierFixture()
  fixture.signal({ kind: 'done' })
  const before = { ...fixture.machine, last_workflow_status: 'success' as const }
  fixture.machine = before
  const after = fixture.put({ boot_policy: 'local' })
  for (const field of [
    'discovered_at',
    'created_at',
    'last_flashed_at',
    'last_workflow_status',
    'last_known_good',
  ] as const) {
    assert.is(after[field], before[field], field)
  }
})

test('every value of the enumerations is taken, and no other', () => {
  const { line } = createEarlierFixture()
  const status = (body: unknown) => line.parseUpsert(body, null, { mac: MAC, by: BY }).ok
  for (const boot_policy of ['local', 'flash', 'tui']) assert.ok(status({ boot_policy }))
  for (const provisioning_mode of ['none', 'cloud-init', 'cijoe', 'cijoe-online']) {
    assert.ok(status({ provisioning_mode }))
  }
  for (const body of [
    { boot_policy: 'yolo' },
    { boot_policy: null },
    { provisioning_mode: 'ansible' },
    { image: 7 },
    { image: '../etc/shadow' },
    { image: 'a/b.img' },
    { image: 'a\nb.img' },
    { hostname: '-oProxyCommand=x' },
    { hostname: 'a b' },
    { cijoe_workflow_ref: '--help' },
    [],
    null,
    'text',
  ]) {
    assert.not(status(body), JSON.stringify(body))
  }
})

test('empty texts are none, and unknown keys are left out', () => {
  const fixture = createEarlierFixture()
  fixture.put({ image: '', hostname: ' ', cijoe_workflow_ref: '', colour: 'green' })
  const { image, hostname, cijoe_workflow_ref } = fixture.machine
  assert.equal([image, hostname, cijoe_workflow_ref], [null, null, null])
  assert.not('colour' in fixture.machine)
})

test('done sets last_flashed_at and leaves the policy; failed sets neither', () => {
  const fixture = createEarlierFixture()
  fixture.put({ image: 'a.img', boot_policy: 'flash' })
  fixture.signal({ kind: 'failed', reason: 'the disk is too small' })
  assert.is(fixture.machine.last_flashed_at, null)
  assert.is(fixture.machine.failure?.reason, 'the disk is too small')
  fixture.signal({ kind: 'done' })
  assert.ok(fixture.machine.last_flashed_at)
  assert.is(fixture.machine.boot_policy, 'flash')
  assert.is(fixture.machine.failure, null)
})

test('a contact without news changes nothing', () => {
  const { line, machine } = createEarlierFixture()
  const now = '2026-11-22T11:00:00.000Z'
  assert.is(line.decideBoot(machine, contactAt(now)).machine, machine)
})

test('a stored record comes back as it was, and damage does no harm', () => {
  const fixture = createEarlierFixture()
  fixture.put({ image: 'a.img', boot_policy: 'flash' })
  const stored: unknown = JSON.parse(JSON.stringify(fixture.machine))
  assert.equal(parseRecord(stored), fixture.machine)
  const { mac, created_at, updated_at } = fixture.machine
  const least = parseRecord({ mac, created_at, updated_at, boot_policy: 'local', image: 7 })
  assert.is(least?.image, null)
  assert.is(parseRecord({ ...fixture.machine, boot_policy: 'flasher-tui' }), null)
  assert.is(parseRecord('nonsense'), null)
})

test('an action sets the policy; a flash needs an image', () => {
  const { line, machine } = createEarlierFixture()
  assert.equal(Object.keys(line.actions), ['local', 'flash', 'tui'])
  assert.is(line.actions['flash']?.apply(machine, {}, BY).ok, false)
  const ordered = line.actions['flash']?.apply({ ...machine, image: 'a.img' }, {}, BY)
  assert.is(ordered?.ok && ordered.value.machine.boot_policy, 'flash')
  assert.is(line.actions['tui']?.check({ x: 1 })?.length, 1)
})

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

const armedEnd = (image: string) => ({ boot_policy: 'flash', image })

test('a repeated done does not end an order that its machine has not asked for', () => {
  const fixture = createEarlierFixture()
  fixture.put(armedEnd('a.img'))
  fixture.script()
  fixture.signal({ kind: 'done' })
  const { last_flashed_at } = fixture.machine
  fixture.put(armedEnd('b.img'))
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
  fixture.put({ ...armedEnd('a.img'), ...fields })
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
  fixture.put(armedEnd('a.img'))
  fixture.script()
  fixture.put(armedEnd('b.img'))
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
  fixture.put(armedEnd('a.img'))
  const order = fixture.machine.armed_at
  fixture.put(armedEnd('b.img'))
  assert.is(decideOutcome(fixture.machine, order), 'replaced')
  fixture.put({ boot_policy: 'local' })
  assert.is(decideOutcome(fixture.machine, order), 'disarmed')
})

test.run()
