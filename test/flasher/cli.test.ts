import { execFileSync } from 'node:child_process'
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { zstdCompressSync } from 'node:zlib'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { COMMAND_LINE, COMMANDS } from '#flasher/commands/rules/commands.ts'
import { cli } from '#flasher/programs.ts'
import { parseArguments } from '#kit/terminal/command/rules/arguments.ts'

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

const RAW = Buffer.alloc(2 ** 20, 7)

/** An image of each format, and what is none, in a folder. */
async function createImages() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'flasher-rows-'))
  const at = (name: string) => join(folder.path, name)
  await writeFile(at('a.img'), RAW)
  await writeFile(at('b.img.zst'), zstdCompressSync(RAW))
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', at('c.qcow2'), '4M'])
  await writeFile(at('d.iso'), 'x')
  await mkdir(at('below'))
  await writeFile(at('below/e.img'), RAW)
  return { folder: folder.path, at, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

test('every leaf command takes --json: an object with schema_version "1" and its command', async () => {
  await using images = await createImages()
  const target = ['--image', images.at('a.img'), '--target', '/dev/null', '--dry-run']
  for (const [argv, command, code] of [
    [['list', 'disks'], 'list-disks', 0],
    [['list', 'images', '--image-root', images.folder], 'list-images', 0],
    [['inspect', 'image', images.at('a.img')], 'inspect-image', 0],
    [['flash', ...target], 'flash', 1],
  ] as const) {
    const ended = await run([...argv, '--json'])
    const document = JSON.parse(ended.stdout)
    assert.equal([document.schema_version, document.command, ended.code], ['1', command, code])
  }
})

test('list disks: each record has the fields of the table', async () => {
  const { stdout } = await run(['list', 'disks', '--json'])
  const fields = ['path', 'size', 'tran', 'vendor', 'model', 'serial', 'removable']
  const { disks } = JSON.parse(stdout)
  for (const disk of disks) {
    for (const field of fields) assert.ok(field in disk, field)
    assert.match(disk.path, /^\/dev\//)
    assert.type(disk.removable, 'boolean')
  }
  const table = await run(['list', 'disks'])
  assert.is(table.code, 0)
  if (disks.length === 0) return
  const [head = ''] = table.stdout.split('\n')
  assert.equal(head.trim().split(/ +/).slice(0, 7).join(' ').toLowerCase(), fields.join(' '))
})

const listImages = async (flags: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  JSON.parse((await run(['list', 'images', '--json', ...flags], env)).stdout)

test('list images: the recognised formats directly in the root, which the flag, the variable or the default names', async () => {
  await using images = await createImages()
  const found = await listImages(['--image-root', images.folder])
  assert.equal(
    found.images.map(({ name, format }: Readonly<Record<string, string>>) => [name, format]),
    [
      ['a.img', 'img'],
      ['b.img.zst', 'img.zst'],
      ['c.qcow2', 'qcow2'],
    ],
  )
  const env = { FLASHER_IMAGE_ROOT: images.at('below') }
  const named = await listImages([], env)
  assert.equal([named.image_root, named.images.length], [images.at('below'), 1])
  assert.is((await listImages(['--image-root', images.folder], env)).images.length, 3)
  assert.is((await listImages([])).image_root, '/var/lib/flasher/images')
})

test('inspect image: path, format and size_bytes always; a detail for qcow2 and zst, none for img', async () => {
  await using images = await createImages()
  for (const [name, format, detail] of [
    ['a.img', 'img', 'undefined'],
    ['b.img.zst', 'img.zst', 'string'],
    ['c.qcow2', 'qcow2', 'object'],
  ] as const) {
    const { code, stdout } = await run(['inspect', 'image', images.at(name), '--json'])
    const { image } = JSON.parse(stdout)
    assert.equal(
      [code, image.path, image.format, typeof image.size_bytes, typeof image.detail],
      [0, images.at(name), format, 'number', detail],
    )
  }
  for (const argv of [[images.at('none.img')], [], [images.at('a.img'), '--wrong'], ['a', 'b']]) {
    assert.is((await run(['inspect', 'image', ...argv])).code, 2, argv.join(' '))
  }
})

test('flash: without an image or a target, and with a progress or a mode of no table, 2', async () => {
  await using images = await createImages()
  const image = ['--image', images.at('a.img')]
  const target = ['--target', '/dev/null']
  for (const argv of [
    [...image, '--dry-run'],
    [...target, '--dry-run'],
    [...image, ...target, '--dry-run', '--progress', 'bars'],
    [...image, ...target, '--dry-run', '--provision', 'ansible'],
  ]) {
    const { code, stderr } = await run(['flash', ...argv])
    assert.is(code, 2, `${argv.join(' ')}: ${stderr}`)
  }
})

test('flash: neither --dry-run nor --yes: a hint that names both', async () => {
  await using images = await createImages()
  const argv = ['flash', '--image', images.at('a.img'), '--target', '/dev/null', '--json']
  const { code, stdout } = await run(argv)
  const { hint } = JSON.parse(stdout).error
  assert.equal([code, /--dry-run/.test(hint), /--yes/.test(hint)], [2, true, true])
})

test('flash: an image without a recognised format is a refused plan, 1', async () => {
  await using images = await createImages()
  const argv = ['flash', '--image', images.at('d.iso'), '--target', '/dev/null', '--dry-run']
  const { code, stderr } = await run(argv)
  assert.is(code, 1, stderr)
})

test('--progress: [failed] on stderr by default, an object on stdout with ndjson, nothing with none', async () => {
  await using images = await createImages()
  const argv = ['flash', '--image', images.at('a.img'), '--target', '/dev/null', '--yes']
  const rows = [
    [[], true, false],
    [['--progress', 'text'], true, false],
    [['--progress', 'ndjson'], false, true],
    [['--progress', 'none'], false, false],
  ] as const
  for (const [flags, isLine, isObject] of rows) {
    const { stdout, stderr } = await run([...argv, ...flags])
    const said = [/^\[failed\] ./m.test(stderr), /^\{"event": "failed", /m.test(stdout)]
    assert.equal(said, [isLine, isObject], flags.join(' '))
    assert.not.match(stdout, '[failed]')
  }
})

test.run()
