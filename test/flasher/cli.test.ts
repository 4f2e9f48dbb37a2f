import { Readable } from 'node:stream'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseArguments } from '#kit/terminal/command/rules/arguments.ts'
import { cli } from '#flasher/programs.ts'
import { COMMAND_LINE, COMMANDS } from '#flasher/commands/rules/commands.ts'

/** Runs the program within this process; no disk is ever touched, as it is not root here. */
async function run(argv: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const said = { stdout: '', stderr: '' }
  const code = await cli({
    argv,
    env: { PATH: process.env['PATH'], ...env },
    stdin: Readable.from([]),
    stdout: { write: (text: string) => (said.stdout += text) },
    stderr: { write: (text: string) => (said.stderr += text) },
    isRoot: false,
    signal: new AbortController().signal,
    now: () => performance.now() / 1000,
  })
  return { code, ...said }
}

const test = suite('cli')

test('no arguments: help on stdout', async () => {
  const { code, stdout, stderr } = await run([])
  assert.is(code, 0)
  assert.match(stdout, /Usage: flasher COMMAND/)
  assert.is(stderr, '')
})
test('misuse: 2, the reason and the usage on stderr, nothing on stdout', async () => {
  for (const line of [
    'list',
    'lsit',
    '--json list disks',
    'flash --image a',
    'inspect image',
    'manual x',
  ]) {
    const { code, stdout, stderr } = await run(line.split(' '))
    assert.is(code, 2, line)
    assert.is(stdout, '', line)
    assert.match(stderr, /^flasher: .*\nUsage: flasher/, line)
  }
})
test('misuse of a command with --json: a document too', async () => {
  const { code, stdout, stderr } = await run(['inspect', 'image', '--json'])
  assert.is(code, 2)
  assert.equal(JSON.parse(stdout), {
    schema_version: '1',
    command: 'inspect-image',
    error: {
      code: 'misuse',
      message: 'missing: PATH',
      hint: 'Try "flasher inspect image --help" for more information.',
    },
  })
  assert.match(stderr, /missing: PATH/)
})
test('misuse with events: the document is one line', async () => {
  for (const progress of [['--progress', 'ndjson'], ['--progress=ndjson']]) {
    const { stdout } = await run(['flash', '--json', ...progress])
    assert.match(stdout, /^\{"schema_version": "1", "command": "flash", "error": .*\}\n$/)
  }
})
test('the texts, plain and in a document', async () => {
  const script = await run(['completion', 'bash'])
  assert.match(script.stdout, /complete -F _flasher flasher/)
  const inside: unknown = JSON.parse((await run(['completion', 'bash', '--json'])).stdout)
  assert.equal(inside, {
    schema_version: '1',
    command: 'completion',
    shell: 'bash',
    script: script.stdout,
  })
  assert.match((await run(['manual'])).stdout, /^\.\\" Made by/)
})
test('what is no image says so, and has no format; an image root that is not there is named', async () => {
  const folder = await run(['inspect', 'image', '/proc'])
  assert.equal([folder.code, folder.stderr], [0, ''])
  assert.match(folder.stdout, /^path: \/proc\nformat: null\n/)
  assert.match(folder.stdout, /^detail_error: \/proc is a folder, not an image$/m)
  const file = await run(['inspect', 'image', '/proc/version', '--json'])
  const { image } = JSON.parse(file.stdout)
  assert.equal([file.code, image.format], [0, null])
  assert.match(image.detail_error, /^\/proc\/version is not an image: its name ends in none of/)
  const listed = await run(['list', 'images', '--image-root', '/nope'])
  assert.is(listed.code, 1)
  assert.match(listed.stderr, /^flasher: there is no folder \/nope\n/)
  const document = JSON.parse(
    (await run(['list', 'images', '--image-root', '/nope', '--json'])).stdout,
  )
  assert.equal([document.error.code, document.images], ['source-broken', undefined])
})
test('an unexpected error: one line, 1, no stack unless it is asked for', async () => {
  const broken = { env: 'FLASHER_DEBUG' }
  const argv = ['list', 'images', '--image-root', '/proc/self/mem/x\u001b']
  const { code, stderr } = await run(argv)
  assert.ok([0, 1].includes(code))
  assert.not.match(stderr, / at .*:\d+:\d+/)
  const debug = await run(argv, { [broken.env]: '1' })
  assert.is(debug.code, code)
})
test('a command gets values as they were typed', () => {
  const sha256 = '1'.repeat(64)
  const argv = ['flash', '--image', '007', '--target=-', '--sha256', sha256, '--no-verify', '--yes']
  const reading = parseArguments(COMMAND_LINE, argv)
  assert.ok(reading.ok && reading.value.kind === 'run')
  const { given } = reading.value
  assert.equal(given.values, {
    image: '007',
    sha256,
    provision: 'none',
    progress: 'text',
  })
  assert.equal(given.lists['target'], ['-'])
  assert.equal([...given.switches].toSorted(), ['no-verify', 'yes'])
  assert.equal(given.positionals, [])
})
test('whatever is typed: 0, 1, 2 or 4 and something said, never a crash', async () => {
  const flags = COMMANDS.flatMap((command) => command.flags.map(({ name }) => `--${name}`))
  const words = COMMANDS.flatMap((command) => [...command.words])
  const word = fc.oneof(
    fc.constantFrom(...words, ...words),
    fc.constantFrom(...flags, '--help', '--version', '--', '-', '-h', '--=', '=', '--no-', '---'),
    fc.constantFrom(...flags).map((flag) => `${flag}=1`),
    fc.constantFrom(
      '__proto__',
      'constructor',
      '--__proto__=1',
      '--constructor',
      '0',
      '007',
      'text',
    ),
    fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\0', '')),
  )
  const argv = fc.oneof(
    fc.array(word, { maxLength: 12 }),
    fc
      .tuple(fc.constantFrom(...COMMANDS), fc.array(word, { maxLength: 8 }))
      .map(([command, rest]) => [...command.words, ...rest]),
  )
  await fc.assert(
    fc.asyncProperty(argv, async (given) => {
      const { code, stdout, stderr } = await run(given)
      assert.ok([0, 1, 2, 4].includes(code), `${code}`)
      assert.ok(stdout.length + stderr.length > 0)
      assert.not.match(stderr.replaceAll('\n', ''), /\p{Cc}/u)
    }),
    { numRuns: 300 },
  )
})
test('whatever the values are, a command gets them as they were typed', () => {
  const value = fc.string({ minLength: 1, unit: 'binary' })
  const files = ['image', 'target', 'user-data', 'meta-data', 'cijoe-config'] as const
  const switches = ['yes', 'dry-run', 'no-verify', 'fix-gpt', 'grow', 'json'] as const
  fc.assert(
    fc.property(
      fc.tuple(value, value, value, value, value),
      fc.subarray([...switches]),
      (texts, chosen) => {
        const flags = files.map((name, index) => `--${name}=${texts[index]}`)
        const argv = ['flash', ...flags, ...chosen.map((name) => `--${name}`)]
        const reading = parseArguments(COMMAND_LINE, argv)
        assert.ok(reading.ok && reading.value.kind === 'run')
        const { given } = reading.value
        assert.equal(
          files.map((name) => given.values[name] ?? given.lists[name]?.[0]),
          texts,
        )
        assert.equal([...given.switches].toSorted(), chosen.toSorted())
      },
    ),
  )
})
test('a positional is handed over whatever it looks like', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, unit: 'binary' }), (path) => {
      const reading = parseArguments(COMMAND_LINE, ['inspect', 'image', '--json', '--', path])
      assert.ok(reading.ok && reading.value.kind === 'run')
      const { given } = reading.value
      assert.equal([given.command.words, given.positionals], [['inspect', 'image'], [path]])
    }),
  )
})
test.run()
