import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createShell } from '#kit/host/shell.ts'
import { FLASHER, runFlasher, startFlasher } from '#test/support/terminal/flasher.ts'

const test = suite('flasher')

async function createFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-bin-'))
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) }
}

test('--version prints the version of package.json', async () => {
  const { version } = JSON.parse(await readFile('package.json', 'utf8'))
  assert.equal(await runFlasher(['--version']), {
    code: 0,
    stdout: `flasher ${version}\n`,
    stderr: '',
  })
})
test('--help on every level: 0, on stdout alone', async () => {
  for (const words of [[], ['list'], ['list', 'disks'], ['flash']]) {
    const { code, stdout, stderr } = await runFlasher([...words, '--help'])
    assert.is(code, 0)
    assert.match(stdout, /Usage: flasher/)
    assert.is(stderr, '')
  }
})
test('list images: from the flag, from the environment, the flag wins; exit 1 without the folder that it names', async () => {
  await using fixture = await createFolder()
  await mkdir(join(fixture.folder, 'img'))
  await writeFile(join(fixture.folder, 'img', 'UPPER.IMG'), 'x')
  await writeFile(join(fixture.folder, 'img', 'notes.txt'), '')
  const options = { cwd: fixture.folder, env: { FLASHER_IMAGE_ROOT: 'img' } }
  const { code, stdout, stderr } = await runFlasher(['list', 'images', '--json'], options)
  assert.equal({ code, stderr }, { code: 0, stderr: '' })
  assert.is(
    stdout,
    `${JSON.stringify(
      {
        schema_version: '1',
        command: 'list-images',
        image_root: 'img',
        images: [{ name: 'UPPER.IMG', path: 'img/UPPER.IMG', format: 'img', size_bytes: 1 }],
      },
      null,
      2,
    )}\n`,
  )
  const people = await runFlasher(['list', 'images'], options)
  assert.is(
    people.stdout,
    'NAME       FORMAT  SIZE\n---------  ------  ----\nUPPER.IMG  img     1 B\n',
  )
  const table = await runFlasher(['list', 'images', '--bytes'], options)
  assert.is(
    table.stdout,
    'NAME       FORMAT  SIZE_BYTES\n---------  ------  ----------\nUPPER.IMG  img     1\n',
  )
  const none = await runFlasher(['list', 'images', '--image-root', 'nowhere'], options)
  assert.equal({ code: none.code, stdout: none.stdout }, { code: 1, stdout: '' })
  assert.match(none.stderr, /there is no folder nowhere/)
})
test('a file name with terminal escapes is shown, not obeyed', async () => {
  await using fixture = await createFolder()
  await writeFile(join(fixture.folder, 'a\u001b[2J.img'), 'x')
  const { stdout } = await runFlasher(['list', 'images', '--image-root', fixture.folder])
  assert.ok(stdout.includes(String.raw`a\x1b[2J.img`))
  assert.not.ok(stdout.includes('\u001b'))
})
test('inspect image: 0; 2 with a JSON error when there is none', async () => {
  await using fixture = await createFolder()
  const path = join(fixture.folder, 'a.img')
  await writeFile(path, Buffer.alloc(1024))
  const found = await runFlasher(['inspect', 'image', path])
  assert.is(found.code, 0)
  assert.match(found.stdout, /^path: .*a\.img\nformat: img\nsize_bytes: 1024\nsize: 1.02 kB\n/)
  const none = await runFlasher(['inspect', 'image', '--json', 'nope.img'])
  assert.is(none.code, 2)
  const { command, error } = JSON.parse(none.stdout)
  assert.equal([command, error.code], ['inspect-image', 'input-missing'])
  assert.match(none.stderr, /^flasher: .*nope\.img/)
})
test('flash: what is wrong with the arguments is 2, in the order of the checks', async () => {
  await using fixture = await createFolder()
  const path = join(fixture.folder, 'a.img')
  await writeFile(path, Buffer.alloc(1024))
  const image = ['--image', path, '--target', '/dev/null']
  const rows: readonly (readonly [readonly string[], RegExp])[] = [
    [image, /--dry-run or --yes/],
    [[...image, '--yes', '--provision', 'cloud-init'], /--user-data/],
    [[...image, '--yes', '--provision', 'cijoe'], /--cijoe-workflow/],
    [[...image, '--yes', '--provision', 'cijoe-online'], /--provision must be one of/],
    [['--image', 'nope.img', '--target', '/dev/null', '--dry-run'], /image not found: nope\.img/],
    [
      [...image, '--dry-run', '--provision', 'cloud-init', '--user-data', 'nope'],
      /user-data not found: nope/,
    ],
    [['--image=-', '--target', '/dev/null', '--dry-run'], /needs --format/],
    [
      ['--image', 'http://127.0.0.1:9/a.img', '--target', '/dev/null', '--dry-run'],
      /127\.0\.0\.1:9/,
    ],
  ]
  for (const [argv, words] of rows) {
    const { code, stdout, stderr } = await runFlasher(['flash', ...argv])
    assert.is(code, 2, `${argv.join(' ')}: ${stderr}`)
    assert.match(stderr, words)
    assert.is(stdout, '')
  }
})
test('flash: a refused plan is 1, dry or not, root or not', async () => {
  await using fixture = await createFolder()
  const path = join(fixture.folder, 'a.img')
  await writeFile(path, Buffer.alloc(1024))
  for (const how of ['--dry-run', '--yes']) {
    const argv = ['flash', '--image', path, '--target', '/dev/null', how]
    const { code, stdout, stderr } = await runFlasher(argv)
    assert.is(code, 1)
    assert.match(stdout, /^Refused {2}target is not a block device: \/dev\/null$/m)
    assert.match(stderr, /^\[failed\] target is not a block device: \/dev\/null$/m)
  }
})
test('flash --dry-run --json: the document alone on stdout', async () => {
  await using fixture = await createFolder()
  await writeFile(join(fixture.folder, 'a.img'), Buffer.alloc(1024))
  const argv = ['flash', '--image', 'a.img', '--target', '/dev/null', '--dry-run', '--json']
  const { code, stdout } = await runFlasher(argv, { cwd: fixture.folder })
  assert.is(code, 1)
  const document = JSON.parse(stdout)
  assert.equal(Object.keys(document).slice(0, 6), [
    'schema_version',
    'command',
    'dry_run',
    'plan',
    'errors',
    'ok',
  ])
  assert.equal(document.plan.image, {
    path: 'a.img',
    url: null,
    format: 'img',
    size_bytes: 1024,
    virtual_size_bytes: 1024,
  })
  assert.is(document.error.code, 'plan-refused')
})
test('flash --progress ndjson: nothing but JSON lines on stdout, the document last', async () => {
  await using fixture = await createFolder()
  await writeFile(join(fixture.folder, 'a.img'), Buffer.alloc(1024))
  const argv = [
    'flash',
    '--image',
    'a.img',
    '--target',
    '/dev/null',
    '--yes',
    '--progress',
    'ndjson',
  ]
  const events = await runFlasher(argv, { cwd: fixture.folder })
  assert.is(
    events.stdout,
    '{"event": "failed", "note": "target is not a block device: /dev/null"}\n',
  )
  assert.match(events.stderr, /Image .*a\.img/)
  const both = await runFlasher([...argv, '--json'], { cwd: fixture.folder })
  const [first = '', last = '', ...rest] = both.stdout.split('\n')
  assert.is(JSON.parse(first).event, 'failed')
  assert.is(JSON.parse(last).ok, false)
  assert.equal(rest, [''])
})
test('a digest file beside the image that is none: refused before the target is looked at', async () => {
  await using fixture = await createFolder()
  await writeFile(join(fixture.folder, 'a.img'), Buffer.alloc(1024))
  await writeFile(join(fixture.folder, 'a.img.sha256'), 'not a digest\n')
  const argv = ['flash', '--image', 'a.img', '--target', '/dev/null', '--dry-run', '--json']
  const broken = await runFlasher(argv, { cwd: fixture.folder })
  assert.is(broken.code, 1)
  assert.is(JSON.parse(broken.stdout).error.code, 'input-invalid')
  await writeFile(join(fixture.folder, 'a.img.sha256'), `${'AB'.repeat(32)}  out/a.img\n`)
  const read = await runFlasher(argv, { cwd: fixture.folder })
  assert.is(JSON.parse(read.stdout).plan.sha256, 'ab'.repeat(32))
  const named = await runFlasher([...argv, '--sha256', '1'.repeat(64)], { cwd: fixture.folder })
  assert.is(JSON.parse(named.stdout).plan.sha256, '1'.repeat(64))
})
test('a missing tool is 4: cijoe, where it is not installed', async () => {
  if (await createShell({ env: process.env }).has('cijoe')) return
  await using fixture = await createFolder()
  await writeFile(join(fixture.folder, 'a.img'), Buffer.alloc(1024))
  const argv = ['flash', '--image', 'a.img', '--target', '/dev/null', '--yes']
  const provision = ['--provision', 'cijoe', '--cijoe-workflow', 'a.img']
  const { code, stderr } = await runFlasher([...argv, ...provision], { cwd: fixture.folder })
  assert.is(code, 4)
  assert.match(stderr, /cijoe is not installed/)
})
test('a slow reader gets everything', async () => {
  await using fixture = await createFolder()
  const name = `${'n'.repeat(200)}.img`
  await Promise.all(
    Array.from({ length: 500 }, (_, index) =>
      writeFile(join(fixture.folder, `${index}${name}`), 'x'),
    ),
  )
  const { child, ended } = startFlasher([
    'list',
    'images',
    '--json',
    '--image-root',
    fixture.folder,
  ])
  child.stdin?.end()
  child.stdout?.pause()
  // More than a pipe holds, read only when the program has long been done with its work.
  await new Promise((resolve) => {
    setTimeout(resolve, 1000)
  })
  child.stdout?.resume()
  const { code, stdout } = await ended
  assert.is(code, 0)
  assert.is(JSON.parse(stdout).images.length, 500)
})
test('a full disk under standard output is a failure', async () => {
  const full = ['-c', 'exec "$0" "$@" >/dev/full', process.execPath, FLASHER, 'manual']
  const { exitCode, stderr } = await createShell({ env: process.env }).run(['sh', ...full])
  assert.is(exitCode, 1)
  assert.is(
    stderr,
    'flasher: standard output: no space left on the disk\n  Free space there, then try again.\n',
  )
})
test('standard output may go away at any time', async () => {
  const { child, ended } = startFlasher(['flash', '--help'])
  child.stdout?.destroy()
  child.stdin?.end()
  const { code, stderr } = await ended
  assert.equal({ code, stderr }, { code: 0, stderr: '' })
})
/** A server that takes requests and never answers. */
async function createSilence() {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/a.img`,
    asked: () => once(server, 'request'),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

test('a cancel while a server is awaited: 130, 143 or 129, and said so', async () => {
  await using silence = await createSilence()
  for (const [signal, expected] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    const asked = silence.asked()
    const argv = ['flash', '--image', silence.url, '--target', '/dev/null', '--dry-run', '--json']
    const { child, ended } = startFlasher(argv)
    child.stdin?.end()
    await asked
    child.kill(signal)
    const { code, stdout, stderr } = await ended
    assert.is(code, expected, stderr)
    assert.is(JSON.parse(stdout).error.code, 'cancelled')
    assert.match(stderr, /^\[failed\] .*cancelled/m)
  }
})
test('one command loads nothing of another', async () => {
  const hook = `
    import { registerHooks } from 'node:module'
    import { writeSync } from 'node:fs'
    registerHooks({ load: (url, context, next) => (writeSync(2, url + '\\n'), next(url, context)) })`
  const nodeOptions = ['--import', `data:text/javascript,${encodeURIComponent(hook)}`]
  const loadedBy = async (words: readonly string[]) =>
    (await runFlasher(words, { nodeOptions })).stderr
  const list = await loadedBy(['list', 'images'])
  assert.match(list, /runtime\/engine\/image\/images\.ts/)
  assert.not.match(list, /writer\.ts|provisioner\.ts|manual\.ts/)
  assert.not.match(
    await loadedBy(['--version']),
    /runtime\/engine\/(image\/images|disk\/disks)\.ts/,
  )
})
test('it is a program of its own', async () => {
  assert.match(await readFile(FLASHER, 'utf8'), /^#!\/usr\/bin\/env node\n/)
})
test.run()
