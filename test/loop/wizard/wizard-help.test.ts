import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeContent } from '#test/support/disk/disk-images.ts'
import { EXITED, type Terminal } from '#test/support/terminal/tmux.ts'
import {
  createTarget,
  createWizardFixture,
  goToConfirm,
} from '#test/support/terminal/wizard-fixture.ts'

const test = suite('wizard help')

const LOOKS = [
  { columns: 80, rows: 25, env: {} },
  { columns: 200, rows: 50, env: {} },
  { columns: 80, rows: 25, env: { TERM: 'linux' } },
  { columns: 80, rows: 25, env: { TERM: 'vt220' } },
] as const

/** `?` shows the help of this screen, any key the screen again. */
async function readHelp(terminal: Terminal, title: RegExp, back: string, columns: number) {
  await terminal.press('?')
  const help = await terminal.waitFor('Any key: back to the screen.')
  assert.match(help.join(' '), title)
  assert.match(help.join('\n'), /^\? +shows this help$/m)
  for (const line of help) assert.ok(line.length < columns, line)
  // A key that would do something on the screen itself.
  await terminal.press('y')
  await terminal.waitFor(back)
}

for (const { columns, rows, env } of LOOKS) {
  const name = `${columns}x${rows} ${'TERM' in env ? env.TERM : 'with Unicode'}`
  test(`the last line names the keys, and ? explains every screen: ${name}`, async () => {
    const content = makeContent(2 ** 20)
    await using fixture = await createWizardFixture({ 'a.img': content, 'b.img': content })
    await using target = await createTarget()
    await using terminal = await fixture.open({ columns, rows, env })
    const images = await terminal.waitFor('> Image:')
    assert.match(images.join('\n'), /^\[(↑↓|arrows)\] choose {2}\[\/\] filter .*\[\?\] help$/m)
    await readHelp(terminal, /Choose the image to write/, '> Image:', columns)
    await terminal.press('b', 'Enter')
    const catalogs = await terminal.waitFor('? Where do the images come from?')
    assert.match(catalogs.join('\n'), /\?:? help$/m)
    await readHelp(terminal, /Choose where the images come from/, 'Where do the images', columns)
    await terminal.press('c', 'Enter')
    await terminal.waitFor('> Location:')
    await readHelp(terminal, /Type the location of a catalog/, '> Location:', columns)
    await terminal.press('q', 'Enter')
    await goToConfirm(terminal, 'a.img', target.device)
    await readHelp(terminal, /Nothing has been written yet/, 'ERASE AND FLASH', columns)
    await terminal.press('b', 'Enter')
    const disks = await terminal.waitFor(new RegExp(`${target.device} [^]*> Disk:`))
    assert.match(disks.join('\n'), /^\[(↑↓|arrows)\] choose {2}.*\[b\] image .*\[\?\] help$/m)
    await readHelp(terminal, /Everything on it will be lost/, '> Disk:', columns)
    await terminal.press('C-c')
    await terminal.waitFor(`${EXITED}0`)
  })
}

test('Ctrl-C leaves from within the help', async () => {
  await using fixture = await createWizardFixture({})
  await using terminal = await fixture.open()
  await terminal.waitFor('? Where do the images come from?')
  await terminal.press('?')
  await terminal.waitFor('Any key: back')
  await terminal.press('C-c')
  await terminal.waitFor(`${EXITED}0`)
})

test('on a small terminal the help has pages', async () => {
  await using fixture = await createWizardFixture()
  await using terminal = await fixture.open({ columns: 40, rows: 12, env: { TERM: 'vt220' } })
  await terminal.waitFor('> Image:')
  await terminal.press('?')
  await terminal.waitFor('Any key: more help.')
  await terminal.press('Space')
  await terminal.waitFor('1, 2, ...')
  await terminal.press('Space')
  await terminal.waitFor('m, make')
  await terminal.press('Space')
  await terminal.waitFor('Any key: back to the screen.')
  await terminal.press('Space')
  await terminal.waitFor('> Image:')
})

test('a terminal that cannot redraw prints the help and asks again', async () => {
  await using fixture = await createWizardFixture()
  await using terminal = await fixture.open({ env: { TERM: 'dumb' }, rows: 50 })
  const first = await terminal.waitFor('> Image:')
  assert.match(first.join('\n'), /^\[number\] choose/m)
  await terminal.press('?', 'Enter')
  await terminal.waitFor(/a number +chooses that row[^]*> Image:$/m)
})

const nameOf = (day: string) => `debian-13-generic-amd64-202501${day}-daily-of-the-lab.img`

test('images that differ in their middle are distinguishable on 40 columns', async () => {
  await using fixture = await createWizardFixture({ [nameOf('01')]: 'x', [nameOf('02')]: 'x' })
  for (const columns of [80, 60, 40]) {
    await using terminal = await fixture.open({ columns })
    const screen = await terminal.waitFor('> Image:')
    const [one = '', two = ''] = screen.filter((line) => line.includes('debian'))
    assert.is.not(one.slice(7), two.slice(7))
    for (const line of screen) assert.ok(line.length < columns, line)
    // All of the name, as long as there is room for it.
    if (columns === 80) assert.ok(one.includes(nameOf('01')), one)
  }
})
test.run()
