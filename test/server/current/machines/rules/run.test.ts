import type { BootMode } from '#server/current/machines/rules/boot-mode.ts'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Armer } from '#engine/inventory/rules/run.ts'
import { rememberDone, rememberPlan } from '#server/current/machines/rules/contact.ts'
import { flashAgain } from '#server/current/machines/rules/operator-edits.ts'
import { type Machine, parseRecord } from '#server/current/machines/rules/machine.ts'
import { rememberArmer, originOf } from '#server/current/machines/rules/run.ts'
import { diskOf, entryOf, REF } from '#test/support/server/machine-fixture.ts'
import { machineOf } from '#test/support/server/state.ts'

const test = suite('runs by the record')
const [THEN, NOW] = ['2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z']
const PERSON: Armer = { actor: 'operator', ip: '192.0.2.9', at: NOW }

const ENTRY = entryOf(REF)

const machineWith = (boot_mode: BootMode, fields: Partial<Machine> = {}): Machine =>
  machineOf(1, {
    boot_mode,
    bty_image_ref: ENTRY.ref,
    target_disk_serial: 'S1',
    known_disks: [diskOf('S0'), diskOf('S1', { model: 'SSD 980' })],
    ...fields,
  })

test('a flash mode says what is written to what, the wizard does not know', () => {
  const once = originOf(machineWith('flasher-flash-once'), () => ENTRY)
  assert.is(once.mode, 'flash')
  assert.equal([once.image?.name, once.image?.sha256], ['debian.img.zst', ENTRY.sha256])
  assert.equal([once.disk?.serial, once.disk?.model], ['S1', 'SSD 980'])
  for (const mode of ['flasher-tui', 'flasher-inventory', 'ipxe-exit'] as const) {
    const { mode: by, image, disk: target } = originOf(machineWith(mode), () => ENTRY)
    assert.equal([by, image, target], ['interactive', null, null])
  }
})

test('an image that is gone leaves its ref, a disk that is gone its serial', () => {
  const machine = machineWith('flasher-flash-always', { known_disks: null })
  const { image, disk: target } = originOf(machine, () => null)
  assert.equal([image?.name, image?.ref], ['a'.repeat(12), ENTRY.ref])
  assert.equal([target?.serial, target?.model, target?.path], ['S1', null, null])
})

test('people and tokens arm, machines and the server do not', () => {
  const before = machineWith('flasher-flash-once')
  const armed = flashAgain(before, NOW)
  if (!armed.ok) throw new Error(armed.refusal)
  assert.equal(rememberArmer(before, armed.value, PERSON).armed_by, PERSON)
  assert.equal(
    rememberArmer(null, before, { ...PERSON, actor: 'token:ci' }).armed_by?.actor,
    'token:ci',
  )
  for (const actor of ['pxe-client', 'system']) {
    assert.is(rememberArmer(before, armed.value, { ...PERSON, actor }), armed.value)
  }
  const labelled = { ...before, labels: ['x'] }
  assert.is(rememberArmer(before, labelled, PERSON), labelled, 'no new cycle')
})

test('who armed it outlives every flash of flash-always, and a restart', () => {
  const armed = { ...machineWith('flasher-flash-always'), armed_by: PERSON }
  const again = rememberDone(armed, NOW)
  assert.is.not(again.cycle, armed.cycle)
  assert.equal(again.armed_by, PERSON)
  assert.equal(parseRecord(JSON.parse(JSON.stringify(again)))?.armed_by, PERSON)
})

test('plans after which something is flashed are remembered, others are not', () => {
  const machine = machineWith('flasher-flash-once', { planned_at: THEN })
  const flash = {
    mode: 'flash',
    image: ENTRY,
    serial: 'S1',
    registerUefiBoot: false,
    grow: false,
  } as const
  assert.is(rememberPlan(machine, flash, NOW).planned_at, NOW)
  assert.is(rememberPlan(machine, { mode: 'interactive', reason: null }, NOW).planned_at, NOW)
  assert.is(rememberPlan(machine, { mode: 'inventory' }, NOW), machine)
  assert.is(rememberPlan(machine, { mode: 'exit', reason: '' }, NOW), machine)
})

test.run()
