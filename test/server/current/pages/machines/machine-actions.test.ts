/** The buttons of a machine's page, state by state. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Run } from '#engine/inventory/rules/run.ts'
import { listActions } from '#server/current/pages/machines/machine-calls.ts'
import { viewMachine } from '#server/current/pages/view/machine-view.ts'
import { allowDisk } from '#server/current/rules/operator-edits.ts'
import {
  createFixture,
  diskOf,
  MAC,
  PXE_RULES,
  type Fixture,
} from '#test/support/server/machine-fixture.ts'

const test = suite('the buttons of a machine')

/** The primary one in capitals. */
const offered = ({ machine, surroundings }: Fixture, run: Run | null = null) =>
  listActions(viewMachine(machine, surroundings, run))
    .map(({ action, isPrimary }) => (isPrimary ? action.toUpperCase() : action))
    .join(' ')

const RUN: Run = {
  id: 'c0ffee00-0001',
  mac: MAC,
  mode: 'flash',
  reported: true,
  phase: 'write',
  result: null,
  stalled: false,
  started_at: null,
  updated_at: '2026-05-01T00:00:00.000Z',
  ended_at: null,
  step_bytes: 0,
  step_total: null,
  total_bytes: null,
  has_log: false,
  bytes_read: 0,
  bytes_written: 0,
  bytes_kept: null,
  delta: null,
  rate: null,
  eta_seconds: null,
  image: null,
  sources: null,
  disk: null,
  armed_by: null,
  bottleneck: null,
  server: null,
  warning: null,
  verified: null,
  reason: null,
  steps: [],
  proof: null,
  stamps: null,
}

test('from its discovery to its end: nothing but its run while it is flashed', () => {
  const fixture = createFixture()
  assert.is(offered(fixture), '')
  fixture.disks(diskOf('S1'))
  assert.is(offered(fixture), 'refresh')
  fixture.flash('flasher-flash-once')
  assert.is(offered(fixture), 'disarm')
  fixture.script()
  fixture.bootFile()
  assert.is(offered(fixture), '', 'it is on its way')
  fixture.plan()
  assert.is(offered(fixture, RUN), 'show-run')
  fixture.done()
  assert.is(offered(fixture), 'flash')
})

test('what failed is to be flashed again first of all', () => {
  const failed = createFixture()
  failed.flash('flasher-flash-once')
  failed.script()
  failed.plan()
  failed.failed('no space')
  assert.is(offered(failed), 'FLASH')

  const looping = createFixture()
  looping.flash('flasher-flash-once')
  for (let boot = 0; boot <= PXE_RULES.loop_limit; boot++) looping.script()
  assert.is(offered(looping), 'FLASH')
})

test('a half-written disk is neither disarmed nor booted without a question', () => {
  const fixture = createFixture()
  fixture.flash('flasher-flash-once')
  fixture.plan()
  assert.is(offered(fixture), '', 'its next boot flashes it again')
  fixture.surroundings = { ...fixture.surroundings, sets: { x86_64: null, arm64: null } }
  assert.match(offered(fixture), 'boot-disk')
  assert.is(offered(fixture, { ...RUN, stalled: true }), 'show-run flash boot-disk')
  const allowed = allowDisk(fixture.machine, fixture.now())
  assert.ok(allowed.ok)
  fixture.machine = allowed.value
  assert.is(offered(fixture), 'flash')
})

test('a disk whose flash never ended can be vouched for in a mode that flashes nothing', () => {
  const fixture = createFixture()
  fixture.flash('flasher-flash-once')
  fixture.plan()
  fixture.put({ boot_mode: 'ipxe-exit' })
  assert.is(offered(fixture), 'boot-disk')
  const allowed = allowDisk(fixture.machine, fixture.now())
  assert.ok(allowed.ok)
  fixture.machine = allowed.value
  assert.is(offered(fixture), '')
})

test('a locked machine is unlocked before it is flashed; a missing disk is selected anew', () => {
  const locked = createFixture()
  locked.flash('flasher-flash-once')
  locked.machine = { ...locked.machine, locked: true }
  assert.is(offered(locked), 'UNLOCK')
  locked.put({ boot_mode: 'ipxe-exit' })
  assert.ok(locked.machine.locked)
  assert.is(offered(locked), 'UNLOCK', 'in every mode')

  const missing = createFixture()
  missing.disks(diskOf('S2'))
  missing.flash('flasher-flash-once')
  assert.is(offered(missing), '')
})

test.run()
