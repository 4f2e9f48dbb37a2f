/** The tables of "States and transitions", row by row, and the life of a machine in each mode. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { BOOT_MODES } from '../../../../runtime/lines/current/rules/machine.ts'
import { flashAgain } from '../../../../runtime/lines/current/rules/edit.ts'
import {
  createDesk,
  diskOf,
  entryOf,
  OTHER_REF,
  PXE_RULES,
  REF,
  setOf,
  type Desk,
} from '../../../support/server/machine-fixture.ts'

const test = suite('boot decisions')

const rules = (desk: Desk, times: number) => Array.from({ length: times }, () => desk.script().rule)

test('ipxe-exit boots the disk, drive 0x80 unless another is set', () => {
  const desk = createDesk()
  desk.put({})
  assert.is(desk.machine.boot_mode, 'ipxe-exit')
  assert.equal(desk.script().decision, { kind: 'to-disk', drive: '0x80' })
  desk.put({ sanboot_drive: '0x81' })
  assert.equal(desk.script().decision, { kind: 'to-disk', drive: '0x81' })
})

test('without image, serial or a known image a flash mode answers as ipxe-exit does', () => {
  for (const boot_mode of ['flasher-flash-always', 'flasher-flash-once']) {
    const rows = [
      [{}, 'no-image', 'exit'],
      [{ target_disk_serial: 'S1' }, 'no-image', 'exit'],
      [{ bty_image_ref: REF }, 'no-target', 'interactive'],
      [{ bty_image_ref: REF, target_disk_serial: '  ' }, 'no-target', 'interactive'],
      [{ bty_image_ref: 'e'.repeat(64), target_disk_serial: 'S1' }, 'unknown-image', 'interactive'],
    ] as const
    for (const [body, rule, plan] of rows) {
      const desk = createDesk()
      desk.put({ ...body, boot_mode, sanboot_drive: '0x82' })
      const ruling = desk.script()
      assert.is(ruling.rule, rule)
      assert.equal(ruling.decision, { kind: 'to-disk', drive: '0x82' })
      assert.is(desk.plan().plan.mode, plan)
    }
  }
})

test('what is no disk image is not flashed', () => {
  const desk = createDesk({
    findImage: (ref) => entryOf(ref, { name: 'rootfs.tar.gz', format: '' }),
  })
  desk.flash('flasher-flash-once')
  assert.is(desk.script().rule, 'not-an-image')
  assert.is(desk.plan().plan.mode, 'interactive')
})

test('an unknown MAC is discovered as flasher-inventory, lists its disks and boots on', () => {
  const desk = createDesk()
  assert.is(desk.machine.boot_mode, 'flasher-inventory')
  assert.is(desk.machine.bty_image_ref, null)
  assert.is(desk.script().rule, 'disks-wanted')
  desk.bootFile()
  assert.is(desk.plan().plan.mode, 'inventory')
  desk.disks(diskOf('S1'))
  assert.equal(rules(desk, 3), ['disks-known', 'disks-known', 'disks-known'])
})

test('flasher-tui is always live, and no guard counts it', () => {
  const desk = createDesk()
  desk.put({ boot_mode: 'flasher-tui' })
  assert.equal(new Set(rules(desk, 50)), new Set(['wizard']))
  assert.is(desk.machine.cycle.offers, 0)
  assert.is(desk.plan().plan.mode, 'interactive')
})

test('flash-once is live until it is done, then the disk, always', () => {
  const desk = createDesk()
  desk.flash('flasher-flash-once')
  assert.is(desk.script().rule, 'flash')
  desk.bootFile()
  assert.is(desk.plan().plan.mode, 'flash')
  desk.done()
  assert.is(desk.machine.saw_flasher_boot, true)
  assert.is(desk.machine.boot_mode, 'flasher-flash-once')
  assert.is(desk.machine.last_flashed_at, desk.now())
  assert.is(desk.plan().plan.mode, 'exit')
  assert.equal(rules(desk, 3), ['flashed', 'flashed', 'flashed'])
  assert.is(desk.machine.saw_flasher_boot, true)
})

test('done alone, of a client that asked for nothing before, ends a flash-once', () => {
  const desk = createDesk()
  desk.flash('flasher-flash-once')
  desk.done()
  assert.is(desk.script().rule, 'flashed')
  assert.is(desk.machine.saw_flasher_boot, true)
})

test('a crash while flashing is flashed again, in the first cycle and in every later one', () => {
  for (const mode of ['flasher-flash-once', 'flasher-flash-always']) {
    const desk = createDesk()
    desk.flash(mode)
    for (let cycle = 1; cycle <= 3; cycle++) {
      assert.is(desk.script().rule, 'flash')
      desk.bootFile()
      desk.plan()
      assert.is(desk.script().rule, 'flash-retry', `${mode}, cycle ${cycle}`)
      desk.bootFile()
      assert.is(desk.plan().plan.mode, 'flash')
      desk.done()
      if (mode === 'flasher-flash-once') {
        const again = flashAgain(desk.machine, desk.now())
        assert.ok(again.ok)
        desk.machine = again.value
      }
    }
  }
})

test('flash-always is armed again by done itself', () => {
  const desk = createDesk()
  desk.flash('flasher-flash-always')
  for (let cycle = 1; cycle <= 20; cycle++) {
    assert.is(desk.script().rule, 'flash')
    desk.bootFile()
    assert.is(desk.machine.saw_flasher_boot, true)
    assert.equal(desk.plan().plan.mode, 'flash')
    desk.done()
    desk.done()
    assert.is(desk.machine.saw_flasher_boot, false)
    assert.is(desk.machine.boot_mode, 'flasher-flash-always')
  }
})

test('boot_disk_once_after_flash puts one disk boot between two flashes', () => {
  const desk = createDesk({ settings: { ...PXE_RULES, boot_disk_once_after_flash: true } })
  desk.flash('flasher-flash-always')
  assert.is(desk.script().rule, 'flash')
  const { plan } = desk.plan()
  assert.ok(plan.mode === 'flash' && plan.registerUefiBoot)
  desk.done()
  assert.equal(rules(desk, 2), ['disk-after-flash', 'flash'])
})

test('a live boot needs the files of the machine’s architecture', () => {
  const both = { x86_64: setOf('x86_64'), arm64: setOf('arm64') }
  const none = { x86_64: null, arm64: null }
  const rows = [
    [none, null, null],
    [{ ...none, x86_64: both.x86_64 }, 'arm64', null],
    [{ ...none, arm64: both.arm64 }, 'x86_64', null],
    [{ ...none, arm64: both.arm64 }, 'i386', null],
    [{ x86_64: setOf('x86_64', { vmlinuz: 'x'.repeat(81) }), arm64: null }, null, null],
    [both, null, both],
    [both, 'arm64', { x86_64: null, arm64: both.arm64 }],
    [both, 'i386', { x86_64: both.x86_64, arm64: null }],
  ] as const
  for (const [sets, arch, named] of rows) {
    const desk = createDesk({ sets })
    desk.machine = { ...desk.machine, arch }
    const { rule, decision } = desk.script()
    assert.is(rule, named === null ? 'no-live-system' : 'disks-wanted')
    assert.equal(decision.kind === 'to-live' ? decision.sets : null, named)
  }
})

test('a locked machine is not flashed', () => {
  for (const boot_mode of BOOT_MODES) {
    const desk = createDesk()
    desk.flash(boot_mode)
    desk.machine = { ...desk.machine, locked: true }
    const { rule } = desk.script()
    assert.not.ok(rule.startsWith('flash'), rule)
    assert.is.not(desk.plan().plan.mode, 'flash')
    assert.is(flashAgain(desk.machine, desk.now()).ok, false)
    assert.throws(() => desk.put({ boot_mode: 'flasher-flash-once', bty_image_ref: OTHER_REF }))
    desk.put({ labels: ['kept'] })
  }
})

test.run()
