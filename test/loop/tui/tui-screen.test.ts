import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'
import { listen } from '#test/support/server/server.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'
import { EXITED, type Terminal } from '#test/support/terminal/tmux.ts'
import { openTui, TUI_PROGRAM } from '#test/support/terminal/tui-fixture.ts'
import { createTarget, createWizardFixture } from '#test/support/terminal/wizard-fixture.ts'

const test = suite('flasher-tui screens')

const quit = async (terminal: Terminal) => {
  await terminal.press('q')
  await terminal.waitFor(`${EXITED}0`)
}

/** The right edges of both panes stand below each other, and nothing is wider than the terminal. */
function expectAligned(screen: readonly string[], columns: number, edge: string) {
  const rows = screen.filter((line) => line.startsWith(edge))
  assert.ok(rows.length > 4, screen.join('\n'))
  for (const row of rows) assert.is(row.length, columns - 1, row)
  const middles = new Set(rows.map((row) => row.indexOf(edge, 1)))
  assert.is(middles.size, 1, screen.join('\n'))
}

test('80x25, 200x50 and back: both panes are aligned, the reason stands in full', async () => {
  await using fixture = await createWizardFixture({
    'debian-13-amd64.img': 'x',
    'größe-東京-with-a-name-that-is-far-too-long-for-its-column.img': 'x',
    'empty.qcow2': '',
  })
  await using target = await createTarget()
  await using terminal = await openTui({ ...fixture, disk: target.device })
  const small = await terminal.waitFor(`${target.device} `)
  const ascii = small.filter((line) => !line.includes('größe'))
  expectAligned(ascii, 80, '│')
  await terminal.press('Down', 'Down')
  await terminal.waitFor('Image  größe-東京')
  await terminal.press('Up')
  await terminal.waitFor('Cannot be chosen: the file is empty.')
  await terminal.resize(200, 50)
  const large = await terminal.waitFor(/Path +Size +Model .*On it now/)
  expectAligned(
    large.filter((line) => !line.includes('größe')),
    200,
    '│',
  )
  await terminal.resize(60, 14)
  // There is room for one pane alone.
  const narrow = await terminal.waitFor(/\[ Images @ .* \]─+┐$/m)
  assert.not.match(narrow.join('\n'), /Disks/)
  await terminal.press('Tab')
  await terminal.waitFor(/\[ Disks \]/)
  await quit(terminal)
})

test('on a serial console it is plain ASCII, without colours where they are off', async () => {
  await using fixture = await createWizardFixture()
  await using target = await createTarget()
  const env = { TERM: 'vt220', LC_ALL: 'C', NO_COLOR: '1' }
  await using terminal = await openTui({ ...fixture, disk: target.device, env })
  const screen = await terminal.waitFor(`${target.device} `)
  assert.match(screen.join('\n'), /^\+\[ Images @ .* \]-*\+\+- Disks -+\+$/m)
  assert.match(screen.join('\n'), /^\| > debian-13-amd64\.img/m)
  expectAligned(screen, 80, '|')
  // oxlint-disable-next-line no-control-regex
  assert.not.match(await terminal.painted(), /\x1b\[[0-9;]*m|[^\n -~]/)
  await terminal.press('Tab', 'f')
  await terminal.waitFor('[y] ERASE AND FLASH')
  await terminal.press('n')
  await terminal.waitFor('[Tab] other pane')
  await quit(terminal)
})

test('a server that is gone is named in the left pane, and asked again with r', async () => {
  await using fixture = await createWizardFixture()
  await using target = await createTarget()
  await using server = await createEarlierServer()
  const open = await listen(server)
  await server.putImage('one.img', 'x')
  const argv = ['--server', open.url]
  await using terminal = await openTui({ ...fixture, disk: target.device, argv, columns: 120 })
  await terminal.waitFor('one.img')
  await open[Symbol.asyncDispose]()
  await terminal.press('r')
  await terminal.waitFor('The images cannot be listed: connection refused.')
  await terminal.press('Tab', 'f')
  await terminal.waitFor('Choose an image first.')
  await quit(terminal)
})

test('wrong arguments, or no terminal: refused in one line', async () => {
  const rows = [
    [[], 'flasher-tui: flasher-tui needs a terminal\n'],
    [['--mac', 'nonsense'], 'flasher-tui: --mac "nonsense" is not a MAC address\n'],
    [['--server', 'http://'], 'flasher-tui: --server "http://" is not an address\n'],
  ] as const
  for (const [argv, said] of rows) {
    const { code, stdout, stderr } = await runFlasher(argv, { program: TUI_PROGRAM })
    assert.equal([code, stdout, stderr.startsWith(said)], [2, '', true], stderr)
  }
})

test.run()
