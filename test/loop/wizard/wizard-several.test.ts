/** The wizard with several disks: ticked in the list, named before they are lost, each with its bar and its end. */
import { readFile, writeFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createShell } from '#kit/host/shell.ts'
import { createFaultyDisk, gated } from '#test/support/disk/faulty-disk.ts'
import { EXITED, type Terminal } from '#test/support/terminal/tmux.ts'
import {
  createTarget,
  createWizardFixture,
  numberOf,
  type WizardFixture,
  type WizardOptions,
} from '#test/support/terminal/wizard-fixture.ts'

const test = suite('wizard with several disks')
const MIB = 2 ** 20
const shell = createShell({ env: process.env })

async function goToDisks(terminal: Terminal, disks: readonly string[]) {
  await terminal.waitFor(/debian-13-amd64.img [^]*> Image:/)
  await terminal.press('1', 'Enter')
  let screen: readonly string[] = []
  for (const disk of disks) screen = await terminal.waitFor(new RegExp(`${disk} [^]*> Disk:`))
  return screen
}

/** Ticks them by number and the space bar, and goes on. */
async function confirmAll(terminal: Terminal, disks: readonly string[]) {
  const screen = await goToDisks(terminal, disks)
  for (const disk of disks) {
    await terminal.press(numberOf(screen, disk), 'Space')
    await terminal.waitFor(new RegExp(`^[✔*][>-]? +\\d+ +${disk} `, 'm'))
  }
  await terminal.press('Enter')
  return await terminal.waitFor('ERASE AND FLASH')
}

const holdsImage = async ({ content }: WizardFixture, backing: string) =>
  (await readFile(backing)).subarray(0, content.length).equals(content)

const SCREENS: readonly (readonly [string, WizardOptions])[] = [
  ['80x25', {}],
  ['200x50', { columns: 200, rows: 50 }],
  ['80x24 on a serial line', { rows: 24, env: { TERM: 'vt220', LANG: 'C' } }],
  ['80x25 without colour', { env: { NO_COLOR: '1' } }],
]
for (const [name, options] of SCREENS) {
  test(`${name}: two disks, from the list to their ends`, async () => {
    await using fixture = await createWizardFixture()
    await using one = await createTarget()
    await using two = await createTarget()
    await using terminal = await fixture.open(options)
    const disks = [one.device, two.device]
    const asked = (await confirmAll(terminal, disks)).join('\n')
    assert.match(asked, /Everything on these 2 disks will be lost:/)
    for (const disk of disks) assert.match(asked, new RegExp(`^ +${disk}: .*33\\.6 MB`, 'm'))
    assert.match(asked, /^disk: +2: \/dev\/loop\d+, \/dev\/loop\d+$/m)
    await terminal.press('y')
    const done = (await terminal.waitFor('? What next?')).join('\n')
    for (const disk of disks) {
      assert.match(done, new RegExp(`^[✔*] Done\\. Wrote .* to ${disk} in .*verified`, 'm'))
    }
    for (const { backing } of [one, two]) assert.ok(await holdsImage(fixture, backing))
    await terminal.press('q', 'Enter')
    await terminal.waitFor(`${EXITED}0`)
  })
}

test('none is written where one is another disk now; a line a disk while they are written', async () => {
  await using fixture = await createWizardFixture()
  await using good = await createTarget()
  await using bad = await createTarget()
  await using slow = await createFaultyDisk({ nbdkit: gated(32, 4 * MIB) })
  slow.setFlag(true)
  await using terminal = await fixture.open()
  await confirmAll(terminal, [good.device, bad.device, slow.device])
  // The disk is now as if it had been unplugged and another one been plugged in.
  await writeFile(bad.backing, Buffer.alloc(16 * MIB))
  await shell.require(['losetup', '--set-capacity', bad.device])
  await terminal.press('y')
  const refused = (await terminal.waitFor('? What next?')).join('\n')
  assert.match(refused, new RegExp(`✖ ${good.device}: .*is another disk now`))
  assert.match(refused, /Nothing was written\./)
  assert.not.ok(await holdsImage(fixture, good.backing))
  await terminal.press('b', 'Enter')
  const again = await terminal.waitFor(new RegExp(`${slow.device} [^]*> Disk:`))
  const numbers = [good, slow].map(({ device }) => numberOf(again, device))
  await terminal.press(numbers.join(','), 'Enter')
  await terminal.waitFor('ERASE AND FLASH')
  await terminal.press('y')
  // The slow one waits as long as its flag is set.
  await terminal.waitFor(new RegExp(`^${good.device}\\s+done$`, 'm'))
  const screen = (await terminal.screen()).join('\n')
  assert.match(screen, /^debian-13-amd64\.img -> 2 disks$/m)
  assert.match(screen, new RegExp(`^${slow.device}\\s+write +\\d+%`, 'm'))
  slow.setFlag(false)
  await terminal.waitFor('? What next?')
  await terminal.press('q', 'Enter')
  await terminal.waitFor(`${EXITED}0`)
})

test('on a terminal that cannot redraw, several numbers in one line', async () => {
  await using fixture = await createWizardFixture()
  await using one = await createTarget()
  await using two = await createTarget()
  await using terminal = await fixture.open({ env: { TERM: 'dumb' } })
  const screen = await goToDisks(terminal, [one.device, two.device])
  await terminal.press(`${numberOf(screen, one.device)} ${numberOf(screen, two.device)}`, 'Enter')
  await terminal.waitFor('ERASE AND FLASH')
  await terminal.press('y', 'Enter')
  await terminal.waitFor('Next:')
  const history = await terminal.history()
  for (const { device, backing } of [one, two]) {
    assert.match(history, new RegExp(`^${device} \\[done\\]`, 'm'))
    assert.ok(await holdsImage(fixture, backing))
  }
  await terminal.press('q', 'Enter')
  await terminal.waitFor(`${EXITED}0`)
})

test.run()
