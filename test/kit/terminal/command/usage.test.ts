import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { groupsOf } from '#kit/terminal/command/rules/command.ts'
import { COMMAND_LINE } from '#flasher/commands/rules/commands.ts'
import { COMMAND_LINE as SERVER } from '#server/current/commands/rules/commands.ts'
import { renderHelp, renderUsage } from '#kit/terminal/command/usage.ts'
import { wrap, wrapColumns } from '#kit/terminal/text/columns.ts'

const test = suite('usage')
const levels = [...groupsOf(COMMAND_LINE), ...COMMAND_LINE.commands.map(({ words }) => words)]

test('usage lines', () => {
  assert.is(renderUsage(COMMAND_LINE, []), 'Usage: flasher COMMAND [OPTION...]')
  assert.is(renderUsage(COMMAND_LINE, ['list']), 'Usage: flasher list {disks,images} [OPTION...]')
  assert.is(
    renderUsage(COMMAND_LINE, ['inspect', 'image']),
    'Usage: flasher inspect image PATH [OPTION...]',
  )
  assert.is(
    renderUsage(COMMAND_LINE, ['flash']),
    'Usage: flasher flash --image IMAGE --target DISK [OPTION...]',
  )
})
test('what may be left out is in brackets', () => {
  assert.is(renderUsage(SERVER, ['restore']), 'Usage: flasher-web restore [ID|FILE] [OPTION...]')
  assert.match(renderHelp(SERVER, ['restore'], 80), /^ {2}ID\|FILE {2,}name of a backup/m)
})
test('help names every command, flag and example', () => {
  const whole = renderHelp(COMMAND_LINE, [], 80)
  for (const { words, summary, flags, examples } of COMMAND_LINE.commands) {
    assert.ok(whole.includes(`${words.join(' ')} `) && whole.includes(summary))
    const own = renderHelp(COMMAND_LINE, words, 80)
    for (const { name } of flags) assert.ok(own.includes(`  --${name}`))
    for (const { line } of examples) assert.ok(own.includes(line))
  }
})
test('help keeps within the terminal, examples excepted', () => {
  for (const at of levels) {
    for (const line of renderHelp(COMMAND_LINE, at, 80).split('\n')) {
      const isExample = line.startsWith('  ') && line.includes('flasher ')
      assert.ok(isExample || line.length <= 80, line)
      assert.is(line, line.trimEnd())
    }
  }
})
test('wrapping loses and adds no word', () => {
  fc.assert(
    fc.property(
      fc.array(fc.stringMatching(/^\w{1,12}$/)),
      fc.integer({ min: 1, max: 60 }),
      (words, width) => {
        const text = words.join(' ')
        assert.is(wrap(text, width).join(' '), text)
      },
    ),
  )
})
test('a long name gets a line of its own', () => {
  assert.equal(
    wrapColumns(
      [
        ['a', 'x'],
        ['b'.repeat(40), 'y'],
      ],
      60,
    ),
    [`  a${' '.repeat(27)}x`, `  ${'b'.repeat(40)}`, `${' '.repeat(30)}y`],
  )
})
test.run()
