/** The tables of "States and transitions", row by row, and the life of a machine in each mode. */
import { BOOT_MODES } from '#server/current/machines/rules/boot-mode.ts'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

import { flashAgain } from '#server/current/machines/rules/operator-edits.ts'
import {
  createFixture,
  diskOf,
  entryOf,
  OTHER_REF,
  PXE_RULES,
  REF,
  setOf,
  type Fixture,
} from '#test/support/server/machine-fixture.ts'

const test = suite('boot decisions')

const rules = (fixture: Fixture, times: number) =>
  Array.from({ length: times }, () => fixture.script().rule)

test('ipxe-exit boots the disk, drive 0x80 unless another is set', () => {
  const fixture = createFixture()
  fixture.put({})
  assert.is(fixture.machine.boot_mode, 'ipxe-exit')
  assert.equal(fixture.script().decision, { kind: 'to-disk', drive: '0x80' })
  fixture.put({ sanboot_drive: '0x81' })
  assert.equal(fixture.script().decision, { kind: 'to-disk', drive: '0x81' })
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
      const fixture = createFixture()
      fixture.put({ ...body, boot_mode, sanboot_drive: '0x82' })
      const ruling = fixture.script()
      assert.is(ruling.rule, rule)
      assert.equal(ruling.decision, { kind: 'to-disk', drive: '0x82' })
      assert.is(fixture.plan().plan.mode, plan)
    }
  }
})

test('what is no disk image is not flashed', () => {
  const fixture = createFixture({
    findImage: (ref) => entryOf(ref, { name: 'rootfs.tar.gz', format: '' }),
  })
  fixture.flash('flasher-flash-once')
  assert.is(fixture.script().rule, 'not-an-image')
  assert.is(fixture.plan().plan.mode, 'interactive')
})

test('an unknown MAC is discovered as flasher-inventory, lists its disks and boots on', () => {
  const fixture = createFixture()
  assert.is(fixture.machine.boot_mode, 'flasher-inventory')
  assert.is(fixture.machine.bty_image_ref, null)
  assert.is(fixture.script().rule, 'disks-wanted')
  fixture.bootFile()
  assert.is(fixture.plan().plan.mode, 'inventory')
  fixture.disks(diskOf('S1'))
  assert.equal(rules(fixture, 3), ['disks-known', 'disks-known', 'disks-known'])
})

test('flasher-tui is always live, and no guard counts it', () => {
  const fixture = createFixture()
  fixture.put({ boot_mode: 'flasher-tui' })
  assert.equal(new Set(rules(fixture, 50)), new Set(['wizard']))
  assert.is(fixture.machine.cycle.offers, 0)
  assert.is(fixture.plan().plan.mode, 'interactive')
})

test('flash-once is live until it is done, then the disk, always', () => {
  const fixture = createFixture()
  fixture.flash('flasher-flash-once')
  assert.is(fixture.script().rule, 'flash')
  fixture.bootFile()
  assert.is(fixture.plan().plan.mode, 'flash')
  fixture.done()
  assert.is(fixture.machine.saw_flasher_boot, true)
  assert.is(fixture.machine.boot_mode, 'flasher-flash-once')
  assert.is(fixture.machine.last_flashed_at, fixture.now())
  assert.is(fixture.plan().plan.mode, 'exit')
  assert.equal(rules(fixture, 3), ['flashed', 'flashed', 'flashed'])
  assert.is(fixture.machine.saw_flasher_boot, true)
})

test('done alone, of a client that asked for nothing before, ends a flash-once', () => {
  const fixture = createFixture()
  fixture.flash('flasher-flash-once')
  fixture.done()
  assert.is(fixture.script().rule, 'flashed')
  assert.is(fixture.machine.saw_flasher_boot, true)
})

test('a crash while flashing is flashed again, in the first cycle and in every later one', () => {
  for (const mode of ['flasher-flash-once', 'flasher-flash-always']) {
    const fixture = createFixture()
    fixture.flash(mode)
    for (let cycle = 1; cycle <= 3; cycle++) {
      assert.is(fixture.script().rule, 'flash')
      fixture.bootFile()
      fixture.plan()
      assert.is(fixture.script().rule, 'flash-retry', `${mode}, cycle ${cycle}`)
      fixture.bootFile()
      assert.is(fixture.plan().plan.mode, 'flash')
      fixture.done()
      if (mode === 'flasher-flash-once') {
        const again = flashAgain(fixture.machine, fixture.now())
        assert.ok(again.ok)
        fixture.machine = again.value
      }
    }
  }
})

test('flash-always is armed again by done itself', () => {
  const fixture = createFixture()
  fixture.flash('flasher-flash-always')
  for (let cycle = 1; cycle <= 20; cycle++) {
    assert.is(fixture.script().rule, 'flash')
    fixture.bootFile()
    assert.is(fixture.machine.saw_flasher_boot, true)
    assert.equal(fixture.plan().plan.mode, 'flash')
    fixture.done()
    fixture.done()
    assert.is(fixture.machine.saw_flasher_boot, false)
    assert.is(fixture.machine.boot_mode, 'flasher-flash-always')
  }
})

test('boot_disk_once_after_flash puts one disk boot between two flashes', () => {
  const fixture = createFixture({ settings: { ...PXE_RULES, boot_disk_once_after_flash: true } })
  fixture.flash('flasher-flash-always')
  assert.is(fixture.script().rule, 'flash')
  const { plan } = fixture.plan()
  assert.ok(plan.mode === 'flash' && plan.registerUefiBoot)
  fixture.done()
  assert.equal(rules(fixture, 2), ['disk-after-flash', 'flash'])
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
    [both, 'x86_64', { x86_64: both.x86_64, arm64: null }],
    [both, 'anything', { x86_64: both.x86_64, arm64: null }],
    [both, 'armadillo', { x86_64: both.x86_64, arm64: null }],
    [both, 'riscv64', null],
    [both, 'riscv32', null],
    [both, 'arm32', null],
    [both, 'arm', null],
    [both, 'loong64', null],
    [both, 'loongarch64', null],
  ] as const
  for (const [sets, arch, named] of rows) {
    const fixture = createFixture({ sets: () => sets })
    fixture.machine = { ...fixture.machine, arch }
    const { rule, decision } = fixture.script()
    assert.is(rule, named === null ? 'no-live-system' : 'disks-wanted')
    assert.equal(decision.kind === 'to-live' ? decision.sets : null, named)
  }
})

test('a locked machine is not flashed', () => {
  for (const boot_mode of BOOT_MODES) {
    const fixture = createFixture()
    fixture.flash(boot_mode)
    fixture.machine = { ...fixture.machine, locked: true }
    const { rule } = fixture.script()
    assert.not.ok(rule.startsWith('flash'), rule)
    assert.is.not(fixture.plan().plan.mode, 'flash')
    assert.is(flashAgain(fixture.machine, fixture.now()).ok, false)
    assert.throws(() => fixture.put({ boot_mode: 'flasher-flash-once', bty_image_ref: OTHER_REF }))
    fixture.put({ labels: ['kept'] })
  }
})

test.run()
