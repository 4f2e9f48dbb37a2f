import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { COMMAND_LINE as CACHE } from '#cache/rules/commands.ts'
import { parseArguments, renderMisuse } from '#kit/terminal/command/rules/arguments.ts'
import {
  completeArguments,
  type Command,
  type CommandLine,
} from '#kit/terminal/command/rules/command.ts'
import { COMMAND_LINE as WEB } from '#server/current/commands/rules/commands.ts'

const command = (...words: readonly string[]): Command => ({
  words,
  summary: '',
  about: [],
  positionals: [],
  flags: [],
  examples: [],
})
const LINE: CommandLine = {
  program: 'program',
  summary: '',
  about: [],
  commands: [command('serve'), command('add'), command('config', 'show')],
  exitCodes: [],
  environment: [],
  files: [],
  revised: '2026-11-21',
}

const test = suite('arguments of servers')

test('without a command it is serve, and options before a command go behind it', () => {
  const rows = [
    ['', 'serve'],
    ['--config a.toml', 'serve --config a.toml'],
    ['--config=a.toml --config b', 'serve --config=a.toml --config b'],
    ['--config a.toml add x', 'add --config a.toml x'],
    ['--config a.toml config show --json', 'config show --config a.toml --json'],
    ['add x --config a.toml', 'add x --config a.toml'],
    ['--config', 'serve --config'],
    ['--wrong add', 'serve --wrong add'],
    ['wrong', 'wrong'],
    ['--help', '--help'],
    ['-h', '-h'],
    ['--version', '--version'],
  ] as const
  for (const [given, meant] of rows) {
    assert.is(completeArguments(LINE, given.split(' ').filter(Boolean)).join(' '), meant, given)
  }
})

test('every command of the server programs takes --config in front', () => {
  for (const line of [WEB, CACHE]) {
    for (const { words, positionals } of line.commands) {
      const values = positionals.map(({ value }) => value.choices?.[0] ?? 'x')
      for (const config of [['--config', 'a.toml'], ['--config=a.toml']]) {
        const reading = parseArguments(
          line,
          completeArguments(line, [...config, ...words, ...values]),
        )
        const told = reading.ok ? '' : renderMisuse(reading.refusal)
        assert.is(told, '', [line.program, ...words].join(' '))
      }
    }
  }
})

test.run()
