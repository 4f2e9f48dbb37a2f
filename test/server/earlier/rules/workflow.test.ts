/** "cijoe-online": the transitions of the specification, and what is true of every order of signals. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseRecord } from '#server/earlier/rules/machine.ts'
import {
  beginWorkflow,
  endWorkflow,
  findRun,
  findTarget,
  NEXT_STATUS,
  rememberBoot,
} from '#server/earlier/rules/workflow.ts'
import { createEarlierFixture } from '#test/support/server/earlier-machine.ts'

const test = suite('the earlier line: workflows after done')
const ONLINE = {
  image: 'a.img',
  provisioning_mode: 'cijoe-online',
  cijoe_workflow_ref: '/srv/smoke.yaml',
}
const AT = '2026-11-22T12:00:00.000Z'

function createOnline(more: object = {}) {
  const fixture = createEarlierFixture()
  fixture.put({ ...ONLINE, ...more })
  return fixture
}

const ROWS: readonly (readonly [keyof typeof NEXT_STATUS, string | null, string | null])[] = [
  // before, after success, after failure
  ['none', null, null],
  ['running', 'success', 'failed'],
  ['success', null, null],
  ['failed', null, null],
]
for (const [before, succeeded, failed] of ROWS) {
  test(`${before}: begins with done; an end counts only while it runs`, () => {
    assert.equal(NEXT_STATUS[before], { begin: 'running', succeed: succeeded, fail: failed })
  })
}

test('done begins a run where the mode is cijoe-online and a workflow is set', () => {
  const fixture = createOnline()
  fixture.signal({ kind: 'done' })
  const { machine } = fixture
  assert.is(machine.last_workflow_status, 'running')
  assert.is(machine.last_workflow_run_at, machine.last_flashed_at)
  assert.match(
    machine.last_workflow_output_path ?? '',
    /^\/srv\/workflows\/[0-9a-f:]{17}\/\d{8}T\d{9}Z\/$/,
  )
  assert.is(findRun(machine)?.workflow, '/srv/smoke.yaml')
  for (const other of [
    { ...ONLINE, cijoe_workflow_ref: null },
    ...['none', 'cloud-init', 'cijoe'].map((provisioning_mode) => ({
      ...ONLINE,
      provisioning_mode,
    })),
  ]) {
    const none = createOnline(other)
    none.signal({ kind: 'done' })
    assert.is(none.machine.last_workflow_status, null, JSON.stringify(other))
    assert.is(findRun(none.machine), null)
  }
})

test('a failed flash begins none', () => {
  const fixture = createOnline()
  fixture.signal({ kind: 'failed', reason: 'no' })
  assert.is(fixture.machine.last_workflow_status, null)
})

test('success leaves what was good: image, provisioning, workflow, time; failure leaves the one before', () => {
  const fixture = createOnline()
  fixture.signal({ kind: 'done' })
  const run = findRun(fixture.machine)?.id ?? ''
  const good = endWorkflow(fixture.machine, run, 'succeed', AT)
  assert.equal(good.last_known_good, { ...ONLINE, at: AT })
  assert.is(good.last_workflow_run_at, fixture.machine.last_workflow_run_at)
  fixture.machine = good
  fixture.signal({ kind: 'done' })
  const failed = endWorkflow(fixture.machine, findRun(fixture.machine)?.id ?? '', 'fail', AT)
  assert.equal([failed.last_workflow_status, failed.last_known_good?.['at']], ['failed', AT])
})

test('the target is the host name, else the address of a disk boot after done; never one before', () => {
  const fixture = createOnline()
  fixture.signal({ kind: 'done' })
  // The live system has been seen, and so has its address.
  fixture.machine = { ...fixture.machine, last_seen_ip: '192.0.2.9' }
  assert.is(findTarget(fixture.machine), null)
  fixture.script()
  assert.is(findTarget(fixture.machine), '192.0.2.9')
  // It boots the live system again: that address is another system's.
  fixture.put({ ...ONLINE, boot_policy: 'flash' })
  fixture.script()
  assert.is(findTarget(fixture.machine), null)
  fixture.put({ ...ONLINE, hostname: 'box-1.lab' })
  assert.is(findTarget(fixture.machine), 'box-1.lab')
  // A flash ends what was known.
  fixture.put({ ...ONLINE })
  fixture.script()
  assert.is(findTarget(fixture.machine), '192.0.2.9')
  fixture.signal({ kind: 'done' })
  assert.is(findTarget(fixture.machine), null)
})

test('no host name of a record becomes an option, a path or several words', () => {
  const { machine } = createOnline()
  for (const hostname of ['-oProxyCommand=x', 'a b', 'a\nb', '', 'a;b', '$(x)', '../x', 'ü']) {
    assert.is(findTarget({ ...machine, hostname }), null, hostname)
  }
  for (const hostname of ['box-1', '10.0.0.5', 'fe80::1', '::1']) {
    assert.is(findTarget({ ...machine, hostname }), hostname)
  }
})

test('without a run, contacts change nothing, and a stored record comes back as it was', () => {
  const fixture = createOnline()
  const before = fixture.machine
  assert.is(rememberBoot(before, true, { now: AT, ip: '192.0.2.9' }), before)
  fixture.signal({ kind: 'done' })
  fixture.script()
  assert.equal(parseRecord(JSON.parse(JSON.stringify(fixture.machine))), fixture.machine)
})

test('whatever the order of signals: only the newest run ends, once, and nothing but done begins one', () => {
  const step = fc.oneof(
    fc.constant({ kind: 'done' } as const),
    fc.record({
      kind: fc.constantFrom('succeed', 'fail'),
      run: fc.nat(5),
    }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const { machine } = createOnline()
      let now = machine
      const runs: string[] = []
      let running: string | null = null
      steps.forEach((each, at) => {
        if (each.kind === 'done') {
          now = beginWorkflow(now, '/w', new Date(Date.parse(AT) + at).toISOString())
          running = findRun(now)?.id ?? null
          runs.push(running ?? '')
          return
        }
        const run = runs.at(-1 - (each.run % Math.max(1, runs.length))) ?? ''
        const after = endWorkflow(now, run, each.kind, AT)
        assert.is(after !== now, running !== null && run === running)
        if (after !== now) running = null
        now = after
      })
      assert.is(now.last_workflow_status === 'running', running !== null)
      assert.is(new Set(runs).size, runs.length)
    }),
  )
})

test.run()
