import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createShell } from '#kit/host/shell.ts'
import { FLASHER, runFlasher, startFlasher } from '#test/support/terminal/flasher.ts'
import { createLoop } from '#test/support/disk/loop.ts'

const test = suite('flash command')
const shell = createShell({ env: process.env })
const MIB = 1024 * 1024

async function createFixture(bytes = 4 * MIB) {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-command-'))
  const image = join(folder, 'disk.img')
  const content = randomBytes(bytes)
  await writeFile(image, content)
  const sha256 = createHash('sha256').update(content).digest('hex')
  return {
    folder,
    image,
    content,
    sha256,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  }
}

async function readStart(device: string, length: number): Promise<Buffer> {
  await using file = await open(device, 'r')
  const into = Buffer.alloc(length)
  await file.read(into, 0, length, 0)
  return into
}

const eventsOf = (stdout: string): readonly string[] =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line): unknown => JSON.parse(line).event)
    .filter((name) => typeof name === 'string')

test('--yes: writes, verifies, says exactly which disk is lost, and exits 0', async () => {
  await using fixture = await createFixture()
  await using loop = await createLoop()
  const argv = ['flash', '--image', fixture.image, '--target', loop.device, '--yes']
  const { code, stdout, stderr } = await runFlasher(argv)
  assert.is(code, 0, stderr)
  assert.ok(fixture.content.equals(await readStart(loop.device, fixture.content.length)))
  assert.match(
    stdout,
    /^Writing .*disk\.img to \/dev\/loop\d+: loop device, no serial number, 67\.1 MB$/m,
  )
  assert.match(stdout, /^Everything on \/dev\/loop\d+ will be lost\.$/m)
  assert.match(stdout, /^Done\. Wrote 4\.19 MB \(4194304 bytes\) to .*, verified\.\n$/m)
  assert.match(stderr, /^\[started\] total_bytes=4194304\n\[writing\] img\n/)
  assert.match(stderr, /\n\[synced\]\n\[partprobed\]\n\[done\]\n$/)
})
test("afterwards the kernel knows the image's partitions", async () => {
  await using fixture = await createFixture()
  await using loop = await createLoop()
  const input = 'label: gpt\nsize=1M\n'
  await shell.require(['sfdisk', '--quiet', fixture.image], { input })
  const argv = ['flash', '--image', fixture.image, '--target', loop.device, '--yes']
  const { code, stderr } = await runFlasher(argv)
  assert.is(code, 0, stderr)
  const name = basename(loop.device)
  const sectors = await readFile(`/sys/class/block/${name}p1/size`, 'utf8')
  assert.is(Number(sectors), 2048)
})
test('--dry-run wins over --yes: nothing is written, 0', async () => {
  await using fixture = await createFixture()
  await using loop = await createLoop()
  const argv = ['flash', '--image', fixture.image, '--target', loop.device, '--yes', '--dry-run']
  const { code, stdout, stderr } = await runFlasher(argv)
  assert.equal({ code, stderr }, { code: 0, stderr: '' })
  assert.match(stdout, /Nothing was written\.\n$/)
  assert.ok(Buffer.alloc(MIB).equals(await readStart(loop.device, MIB)))
})
test('ndjson and --json: events, then the document with the result as the last line', async () => {
  await using fixture = await createFixture()
  await using loop = await createLoop()
  const flags = [
    '--yes',
    '--progress',
    'ndjson',
    '--json',
    '--sha256',
    fixture.sha256,
    '--verify-all',
  ]
  const argv = ['flash', '--image', fixture.image, '--target', loop.device, ...flags]
  const { code, stdout, stderr } = await runFlasher(argv)
  assert.is(code, 0, stderr)
  const events = eventsOf(stdout)
  assert.equal([events[0], ...events.slice(-3)], ['started', 'synced', 'partprobed', 'done'])
  const document = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '')
  assert.equal([document.dry_run, document.ok, document.errors], [false, true, []])
  const { bytes_written, verified, sha256 } = document.result
  assert.equal([bytes_written, verified, sha256], [4 * MIB, true, fixture.sha256])
})
test('standard input, with --format, as - or joined', async () => {
  await using fixture = await createFixture()
  for (const image of [['--image', '-'], ['--image=-']]) {
    await using loop = await createLoop()
    const argv = [
      'flash',
      ...image,
      '--format',
      'img',
      '--target',
      loop.device,
      '--yes',
      '--no-verify',
    ]
    const { code, stdout, stderr } = await runFlasher(argv, { input: fixture.content })
    assert.is(code, 0, stderr)
    assert.match(stdout, /standard input to \/dev\/loop/)
    assert.ok(fixture.content.equals(await readStart(loop.device, fixture.content.length)))
  }
})
test('a wrong digest, named or beside the image: 1, failed, and the disk does not boot', async () => {
  await using fixture = await createFixture()
  await writeFile(`${fixture.image}.sha256`, `${'0'.repeat(64)}  disk.img\n`)
  for (const flags of [['--sha256', '1'.repeat(64)], []]) {
    await using loop = await createLoop()
    const argv = [
      'flash',
      '--image',
      fixture.image,
      '--target',
      loop.device,
      '--yes',
      '--json',
      ...flags,
    ]
    const { code, stdout, stderr } = await runFlasher(argv)
    assert.is(code, 1)
    const document = JSON.parse(stdout)
    assert.equal([document.ok, document.error.code], [false, 'digest-mismatch'])
    assert.match(stderr, /\[failed\] .*sha256/i)
    assert.match(stderr, /was left without a partition table/)
    assert.ok(Buffer.alloc(MIB).equals(await readStart(loop.device, MIB)))
  }
})
test('without root: 3, after the plan was found good', async () => {
  await using fixture = await createFixture()
  await using loop = await createLoop()
  await shell.require(['chmod', '755', fixture.folder])
  const argv = ['flash', '--image', fixture.image, '--target', loop.device, '--yes', '--json']
  const { code, stdout, stderr } = await runFlasher(argv, { uid: 65534 })
  assert.is(code, 3, stderr)
  const document = JSON.parse(stdout)
  assert.equal([document.ok, document.error.code], [false, 'root-required'])
  assert.match(stderr, /sudo/)
  const bad = await runFlasher(
    ['flash', '--image', fixture.image, '--target', '/dev/null', '--yes'],
    {
      uid: 65534,
    },
  )
  assert.is(bad.code, 1)
})
test('mounted and too small: both are said, 1', async () => {
  await using fixture = await createFixture(8 * MIB)
  await using loop = await createLoop({ megabytes: 4 })
  await shell.require(['mkfs.ext4', '-q', loop.device])
  const place = join(fixture.folder, 'place')
  await shell.require(['mkdir', place])
  await shell.require(['mount', loop.device, place])
  try {
    const argv = ['flash', '--image', fixture.image, '--target', loop.device, '--yes', '--json']
    const { code, stdout } = await runFlasher(argv)
    assert.is(code, 1)
    const document = JSON.parse(stdout)
    assert.equal(document.plan.target.mountpoints, [place])
    assert.equal(document.errors, [
      `target has mounted partitions: ${place}`,
      'image (8388608 bytes) is larger than target (4194304 bytes)',
    ])
    assert.equal(
      document.refusals.map(({ why }: { readonly why: string }) => why),
      ['mounted', 'image-too-big'],
    )
  } finally {
    await shell.require(['umount', place])
  }
})
test('mounted between the check and the first byte: 5, nothing written', async () => {
  await using fixture = await createFixture()
  await using loop = await createLoop()
  await shell.require(['mkfs.ext4', '-q', loop.device])
  const before = await readStart(loop.device, MIB)
  const place = join(fixture.folder, 'place')
  await shell.require(['mkdir', place])
  const argv = ['flash', '--image', '-', '--format', 'img', '--target', loop.device, '--yes']
  const { child, ended, saw } = startFlasher(argv)
  // The image has not begun yet, so nothing can be written before the target is mounted.
  await saw('will be lost')
  await shell.require(['mount', '-o', 'ro', loop.device, place])
  try {
    child.stdin?.end(fixture.content)
    const { code, stderr } = await ended
    assert.is(code, 5, stderr)
    assert.match(stderr, /^ {2}Nothing was written\.$/m)
  } finally {
    await shell.require(['umount', place])
  }
  assert.ok(before.equals(await readStart(loop.device, MIB)))
})
test('SIGINT and SIGTERM in the middle: 130 and 143, the disk left without a partition table', async () => {
  await using fixture = await createFixture(8 * MIB)
  for (const [signal, expected] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    await using loop = await createLoop()
    const flags = ['--yes', '--json', '--progress', 'ndjson']
    const argv = ['flash', '--image', '-', '--format', 'img', '--target', loop.device, ...flags]
    const { child, ended, saw } = startFlasher(argv)
    child.stdin?.write(fixture.content)
    // The rest of the image never comes: the writer waits in the middle.
    await saw('"event": "writing"')
    child.kill(signal)
    const { code, stdout, stderr } = await ended
    assert.is(code, expected, stderr)
    assert.is(eventsOf(stdout).at(-1), 'failed')
    assert.is(JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '').error.code, 'cancelled')
    assert.match(stderr, /was left without a partition table/)
    assert.ok(Buffer.alloc(MIB).equals(await readStart(loop.device, MIB)))
  }
})
test('on a terminal: a bar between the event lines, none in a log', async () => {
  if (!(await shell.has('script'))) return
  await using fixture = await createFixture(24 * MIB)
  await using loop = await createLoop()
  const line = `${process.execPath} ${FLASHER} flash --image ${fixture.image} --target ${loop.device} --yes`
  const record = join(fixture.folder, 'record')
  const env = { TERM: 'xterm', LC_ALL: 'C.UTF-8', COLUMNS: '100' }
  const { exitCode } = await shell.run(['script', '-qec', line, record], { env })
  assert.is(exitCode, 0)
  const said = await readFile(record, 'utf8')
  assert.match(said, /\r write .*MB/)
  assert.match(said, /\r verify .*MB/)
  assert.match(said, /Everything is on the disk\.\r?\nThe kernel .*\r?\nThe disk is ready\./)
})
test.run()
