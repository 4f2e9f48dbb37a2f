import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseArguments, renderMisuse } from '#kit/terminal/command/rules/arguments.ts'
import {
  findCommand,
  groupsOf,
  nextWords,
  type CommandLine,
} from '#kit/terminal/command/rules/command.ts'

const PATH = { name: 'PATH', completes: 'file' } as const
const LINE: CommandLine = {
  program: 'tool',
  summary: '',
  about: [],
  commands: [
    {
      words: ['list', 'things'],
      summary: '',
      about: [],
      positionals: [],
      flags: [{ name: 'json', value: null, help: '' }],
      examples: [],
    },
    {
      words: ['copy'],
      summary: '',
      about: [],
      positionals: [{ value: PATH, help: '' }],
      flags: [
        { name: 'to', value: PATH, required: true, help: '' },
        {
          name: 'mode',
          value: { name: 'MODE', completes: 'choices', choices: ['fast', 'slow'] },
          help: '',
        },
        {
          name: 'id',
          value: {
            name: 'ID',
            completes: 'nothing',
            shape: { pattern: /^\d+$/, words: 'digits' },
          },
          help: '',
        },
        { name: 'no-check', value: null, help: '' },
        { name: 'json', value: null, help: '' },
      ],
      examples: [],
    },
    {
      words: ['undo'],
      summary: '',
      about: [],
      positionals: [
        { value: PATH, help: '' },
        { value: { ...PATH, name: 'STEP' }, optional: true, help: '' },
      ],
      flags: [],
      examples: [],
    },
  ],
  exitCodes: [],
  environment: [],
  files: [],
  revised: '2026-01-01',
}
const read = (line: string) => parseArguments(LINE, line === '' ? [] : line.split(' '))
const wrongWith = (line: string) => {
  const found = read(line)
  return found.ok ? `fine: ${found.value.kind}` : renderMisuse(found.refusal)
}
const givenOf = (line: string) => {
  const found = read(line)
  assert.ok(found.ok && found.value.kind === 'run', line)
  const { command, values, switches, positionals } = found.value.given
  return [command.words, values, [...switches], positionals]
}

const test = suite('parseArguments')

test('help on every level, and by default', () => {
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ['', []],
    ['--help', []],
    ['-h', []],
    ['list --help', ['list']],
    ['list things --json --help', ['list', 'things']],
    ['copy --nonsense -h', ['copy']],
  ]
  for (const [line, at] of rows) {
    const found = read(line)
    assert.equal(found, { ok: true, value: { kind: 'help', at } }, line)
  }
})
test('the version, at the top only', () => {
  assert.equal(read('--version'), { ok: true, value: { kind: 'version' } })
  assert.is(wrongWith('copy --version'), 'unknown flag: --version')
})
test('every way to write the same is read the same, and values stay as they were typed', () => {
  const meant = [['copy'], { to: '-' }, ['no-check'], ['a']]
  assert.equal(givenOf('copy a --to - --no-check'), meant)
  assert.equal(givenOf('copy --to=- --no-check a'), meant)
  assert.equal(givenOf('copy --to - --no-check -- a'), meant)
  assert.equal(givenOf('copy --to=--x -- --y'), [['copy'], { to: '--x' }, [], ['--y']])
  assert.equal(givenOf('copy - --to -x'), [['copy'], { to: '-x' }, [], ['-']])
  assert.equal(givenOf('copy a --to b=c'), [['copy'], { to: 'b=c' }, [], ['a']])
})
test('a default counts where nothing is given, and a repeatable flag keeps every value', () => {
  const value = { ...PATH, default: 'x' }
  const flags = [
    { name: 'from', value, help: '' },
    { name: 'config', value: PATH, repeatable: true, help: '' },
  ] as const
  const command = { words: ['go'], summary: '', about: [], positionals: [], flags, examples: [] }
  const line = { ...LINE, commands: [command] }
  const rows = [
    [['go'], { from: 'x' }, { config: [] }],
    [['go', '--config', 'a', '--from=y', '--config=b'], { from: 'y' }, { config: ['a', 'b'] }],
  ] as const
  for (const [argv, values, lists] of rows) {
    const found = parseArguments(line, argv)
    assert.ok(found.ok && found.value.kind === 'run')
    assert.equal([found.value.given.values, found.value.given.lists], [values, lists])
  }
})
test('what may be left out may be given, but not empty', () => {
  assert.equal(givenOf('undo a'), [['undo'], {}, [], ['a']])
  assert.equal(givenOf('undo a b'), [['undo'], {}, [], ['a', 'b']])
  assert.is(wrongWith('undo'), 'missing: PATH')
  assert.is(wrongWith('undo a b c'), 'unexpected argument: c')
  const empty = parseArguments(LINE, ['undo', 'a', ''])
  assert.is(empty.ok ? 'fine' : renderMisuse(empty.refusal), 'STEP needs a value: STEP')
})
test('what is wrong is named, and what was meant', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['list', 'list needs one of: things'],
    ['lits', 'unknown command: lits; did you mean list?'],
    ['list thing', 'unknown command: list thing; did you mean things?'],
    ['--json list things', '--json goes after its command: "tool list things", "tool copy"'],
    ['list --json things', '--json goes after its command: "tool list things"'],
    ['--verison', 'unknown flag: --verison; did you mean --version?'],
    ['copy a --to b --jsno', 'unknown flag: --jsno; did you mean --json?'],
    ['copy a --to b -j', 'unknown flag: -j'],
    ['copy a --to', '--to needs a value: PATH'],
    ['copy a --to=', '--to needs a value: PATH'],
    ['copy a --to --json', '--to needs a value: PATH'],
    ['copy a --to --', '--to needs a value: PATH'],
    ['copy a --to b --json=yes', '--json does not take a value'],
    ['copy a --to b --mode quick', '--mode must be one of fast, slow, not quick'],
    ['copy a --to b --mode fsat', '--mode must be one of fast, slow, not fsat; did you mean fast?'],
    ['copy a --to b --id x1', '--id must be digits, not x1'],
    ['copy a --to b --to c', '--to is given more than once'],
    ['copy a --to b --json --json', '--json is given more than once'],
    ['copy a', 'missing: --to PATH'],
    ['copy --to b', 'missing: PATH'],
    ['copy a b --to c', 'unexpected argument: b'],
    ['list things x', 'unexpected argument: x'],
    ['copy a --to b --__proto__=x', 'unknown flag: --__proto__'],
    ['constructor', 'unknown command: constructor'],
  ]
  for (const [line, words] of rows) assert.is(wrongWith(line), words, line)
})
test('an empty value is none', () => {
  const found = parseArguments(LINE, ['copy', '', '--to', 'b'])
  assert.is(found.ok ? 'fine' : renderMisuse(found.refusal), 'PATH needs a value: PATH')
})
test('groups and words of a table', () => {
  assert.equal(groupsOf(LINE), [[], ['list']])
  assert.equal(nextWords(LINE, []), ['list', 'copy', 'undo'])
  assert.equal(nextWords(LINE, ['list']), ['things'])
  assert.is(findCommand(LINE, ['list']), null)
})
test('a main program takes its flags in front of everything, also without a command', () => {
  const url = { name: 'URL', completes: 'nothing' } as const
  const flags = [{ name: 'server', value: url, help: '' }]
  const main = { words: [], summary: '', about: [], positionals: [], flags, examples: [] }
  const line = { ...LINE, main }
  const given = {
    command: main,
    values: {},
    lists: {},
    switches: new Set(),
    positionals: [],
  }
  const rows: readonly (readonly [readonly string[], unknown])[] = [
    [[], { kind: 'run', given }],
    [['--server', 'lab'], { kind: 'run', given: { ...given, values: { server: 'lab' } } }],
    [['--server=lab', '--help'], { kind: 'help', at: [] }],
    [['--server', 'lab', '--version'], { kind: 'version' }],
    [['--help'], { kind: 'help', at: [] }],
    [['--server', 'lab', 'list'], 'unexpected argument: list'],
    [['--server'], '--server needs a value: URL'],
    [['--serve', 'lab'], 'unknown flag: --serve; did you mean --server?'],
    [['--json'], '--json goes after its command: "tool list things", "tool copy"'],
  ]
  for (const [argv, meant] of rows) {
    const got = parseArguments(line, argv)
    assert.equal(got.ok ? got.value : renderMisuse(got.refusal), meant, argv.join(' '))
  }
})
test.run()
