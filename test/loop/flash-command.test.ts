import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, mkdtempDisposable, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { createShell } from '#kit/host/shell.ts'
import { makeDiskImage, makeNoise } from '#test/support/disk/disk-images.ts'
import { ENCODINGS } from '#test/support/disk/encodings.ts'
import { createFaultyDisk, type DiskRequest, inMemory } from '#test/support/disk/faulty-disk.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { createMemorySource } from '#test/support/disk/memory-source.ts'
import { assertSame, expectedDisk, flash, makeStale, readDisk } from '#test/support/disk/writer.ts'
import { FLASHER, runFlasher, startFlasher } from '#test/support/terminal/flasher.ts'

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
    assert.match(stderr, /has no partition table and cannot boot/)
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
    assert.match(stderr, /has no partition table and cannot boot/)
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

const IMAGE = makeDiskImage(4 * 1024 * 1024)

/** One of each format. */
const OF_EACH = new Map(ENCODINGS.map((encoding) => [encoding.format, encoding])).values()

for (const { name, format, encode } of OF_EACH) {
  test(`${name}: a table for other sectors is found before anything is written`, async () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-dry-run-'))
    const image = join(folder.path, `disk.${format}`)
    writeFileSync(image, encode(IMAGE))
    for (const [sectorBytes, expected] of [
      [512, 0],
      [4096, 1],
    ] as const) {
      await using loop = await createLoop({ megabytes: 16, sectorBytes })
      const argv = ['flash', '--image', image, '--target', loop.device, '--dry-run', '--json']
      const { code, stdout } = await runFlasher(argv)
      const { ok, errors } = JSON.parse(stdout)
      assert.equal([code, ok, errors.length], [expected, expected === 0, expected])
      if (expected === 1) assert.match(errors[0], /made for disks with 512-byte sectors/)
      assert.ok((await readFile(loop.backing)).every((byte) => byte === 0))
    }
  })
}

test('standard input is not read', async () => {
  await using loop = await createLoop({ megabytes: 16 })
  const argv = ['flash', '--image', '-', '--format', 'img', '--target', loop.device, '--dry-run']
  const { code, stdout } = await runFlasher(argv, { input: Buffer.alloc(0) })
  assert.is(code, 0)
  assert.match(stdout, /would go ahead/)
})

if (process.geteuid?.() === 0) test.run()

const DISK_MIB = 12
const DISK_BYTES = DISK_MIB * MIB

/** Where a request goes: the first 4 KiB, the first MiB without them, the body, the last MiB. */
function placeOf({ offset, bytes }: DiskRequest): string {
  const end = offset + bytes
  if (end <= 4096) return 'first'
  if (offset >= 4096 && end <= MIB) return 'rest'
  if (offset >= DISK_BYTES - MIB) return 'tail'
  return offset >= MIB && end <= DISK_BYTES - MIB ? 'body' : `astride ${offset}`
}

/** The places written to before each flush, in no order: the kernel may cut and reorder them. */
function summarize(requests: readonly DiskRequest[]): readonly string[] {
  const groups: Set<string>[] = [new Set()]
  for (const request of requests) {
    if (request.kind === 'Flush') groups.push(new Set())
    else if (request.kind !== 'Read') groups.at(-1)?.add(placeOf(request))
  }
  const places = groups.map((group) => [...group].toSorted().join(' '))
  // The kernel may flush once more; nothing may come behind the last flush.
  return places.filter((place, n) => place !== '' || n === places.length - 1)
}

/** What shows a disk that is smaller than it says stands at its end before the image; nothing boots from it. */
const IN_ORDER = ['tail', 'body', 'tail', 'rest', 'first', '']

for (const sectorBytes of [512, 4096] as const) {
  for (const verify of ['none', 'data', 'all'] as const) {
    test(`on a disk of ${sectorBytes}-byte sectors, verify ${verify}: the ends come last`, async () => {
      const nbdkit = inMemory(DISK_MIB)
      await using disk = await createFaultyDisk({ nbdkit, log: true, sectorBytes })
      const { device } = disk
      const stale = await makeStale(device, sectorBytes)
      const image = makeDiskImage(DISK_BYTES - 512 * 7, { sectorBytes })
      const source = createMemorySource(image, { name: 'disk.img' })
      disk.takeRequests()
      await flash({ source, device, verify })
      const [cleared, ...written] = summarize(disk.takeRequests())
      assert.match(cleared ?? '', /^first rest tail$/)
      assert.equal(written, IN_ORDER)
      assertSame(await readDisk(device), expectedDisk(stale, image, sectorBytes))
    })
  }
}

// An old RAID or ZFS is found by what it left there.
test('an image that ends before the last MiB has zeros written there with the ends', async () => {
  await using disk = await createFaultyDisk({ nbdkit: inMemory(DISK_MIB), log: true })
  const { device } = disk
  const stale = await makeStale(device)
  const image = makeDiskImage(5 * MIB + 1000)
  disk.takeRequests()
  await flash({ source: createMemorySource(image, { name: 'disk.img' }), device })
  const [cleared, ...written] = summarize(disk.takeRequests())
  assert.match(cleared ?? '', /^first rest tail$/)
  assert.equal(written, IN_ORDER)
  assertSame(await readDisk(device), expectedDisk(stale, image))
})

const run = $({ quiet: true })

interface Case {
  /** Sectors, as sfdisk takes them. */
  readonly table: string
  /** Where an ext4 lies; absent: nowhere. */
  readonly at?: number
  readonly code: 0 | 1
  readonly words: RegExp
}

const CASES: Readonly<Record<string, Case>> = {
  'a partition that would end beyond the disk': {
    table: 'start=2048,size=40960,type=83',
    at: MIB,
    code: 1,
    words: /with its 4096-byte sectors, partition 1 would end beyond the disk/,
  },
  'a file system at the place of 512-byte sectors': {
    table: 'start=2048,size=4096,type=83',
    at: MIB,
    code: 1,
    words:
      /made for disks with 512-byte sectors: the file system of partition 1 begins at byte 1048576/,
  },
  'a file system at the place of 4096-byte sectors': {
    table: 'start=2048,size=4096,type=83',
    at: 8 * MIB,
    code: 0,
    words: /^Image(?![^]*MBR)/,
  },
  'no file system anywhere': {
    table: 'start=2048,size=4096,type=83',
    code: 0,
    words: /^Note +its MBR does not say for which sectors it is made/m,
  },
}

for (const [what, { table, at, code, words }] of Object.entries(CASES)) {
  test(`${what}: ${code === 0 ? 'goes ahead' : 'is refused before the first byte'}`, async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-mbr-'))
    const path = join(folder.path, 'disk.img')
    await writeFile(path, '')
    await run`truncate -s ${32 * MIB} ${path}`
    await run({ input: `label: dos\n${table}\n` })`sfdisk --quiet ${path}`
    if (at !== undefined) await run`mkfs.ext4 -q -F -E offset=${at} ${path} 4M`
    const stored = join(folder.path, 'disk.img.zst')
    await run`zstd -q ${path} -o ${stored}`
    for (const image of [path, stored]) {
      await using disk = await createLoop({ megabytes: 64, sectorBytes: 4096 })
      const stale = await makeStale(disk.device, 4096)
      const argv = ['--image', image, '--target', disk.device]
      const dry = await runFlasher(['flash', ...argv, '--dry-run'])
      const { code: ended, stdout, stderr } = await runFlasher(['flash', ...argv, '--yes'])
      assert.equal([dry.code, ended], [code, code], stderr)
      assert.match(stdout + stderr, words)
      assert.match(dry.stdout + dry.stderr, words)
      if (code === 1) assertSame(await readDisk(disk.device), stale)
      await using usual = await createLoop({ megabytes: 64 })
      const fine = await runFlasher(['flash', ...argv.slice(0, -1), usual.device, '--dry-run'])
      assert.is(fine.code, 0)
      assert.not.match(fine.stdout, /sectors/)
    }
  })
}

const PROGRAM = fileURLToPath(new URL('../../runtime/bin/flasher.ts', import.meta.url))
const IMAGE_BYTES = 1024 * MIB
/** What the program itself may take at most; a few copies of what is in flight, not of the image. */
const MAX_BYTES = 250 * MIB

/** Some data, far apart. */
async function makeSparse(path: string) {
  await using file = await open(path, 'wx')
  await file.truncate(IMAGE_BYTES)
  for (let n = 0; n < 12; n += 1) {
    await file.write(makeNoise(6 * MIB, n), 0, 6 * MIB, n * 84 * MIB + n * 4096)
  }
}

/** Runs the program to its end; the most memory that it took. */
async function measure(argv: readonly string[], program = PROGRAM): Promise<number> {
  const child = spawn(process.execPath, [program, ...argv], { stdio: ['ignore', 'ignore', 'pipe'] })
  let words = ''
  child.stderr.on('data', (bytes: Buffer) => {
    words += bytes.toString()
  })
  let most = 0
  const code = new Promise((resolve) => {
    child.once('close', resolve)
  })
  while (child.exitCode === null && child.signalCode === null) {
    most = Math.max(most, peakOf(child.pid))
    await sleep(20)
  }
  assert.is(await code, 0, words)
  return most
}

/** The peak since its start, which the kernel keeps; 0 when it is gone. */
function peakOf(pid: number | undefined): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return 1024 * Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0)
  } catch {
    return 0
  }
}

test('1 GiB, most of it zeros, as zstd and as qcow2', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-memory-'))
  const raw = join(folder.path, 'disk.img')
  await makeSparse(raw)
  const zst = join(folder.path, 'disk.img.zst')
  const qcow2 = join(folder.path, 'disk.qcow2')
  await run`zstd -q -1 -T2 ${raw} -o ${zst}`
  await run`qemu-img convert -f raw -O qcow2 -c -o compression_type=zstd ${raw} ${qcow2}`
  for (const path of [zst, qcow2]) {
    await using loop = await createLoop({ sizeBytes: IMAGE_BYTES })
    const most = await measure(['flash', '--image', path, '--target', loop.device, '--yes'])
    assert.ok(most > 30 * MIB, 'the peak was not seen')
    assert.ok(most < MAX_BYTES, `${path}: ${Math.round(most / MIB)} MiB`)
    await run`cmp ${raw} ${loop.backing}`
  }
})
test('eight disks at once take little more than one', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-memory-'))
  const [raw, zst] = [join(folder.path, 'disk.img'), join(folder.path, 'disk.img.zst')]
  // More than all buffers hold.
  await writeFile(raw, makeNoise(160 * MIB, 3))
  await run`zstd -q -1 -T2 ${raw} -o ${zst}`
  await using disks = new AsyncDisposableStack()
  const targets: string[] = []
  for (let disk = 0; disk < 8; disk += 1) {
    targets.push('--target', disks.use(await createLoop({ megabytes: 160 })).device)
  }
  // As it is installed: reading TypeScript takes some 40 MiB of its own.
  const most = await measure(['flash', '--image', zst, ...targets, '--yes'], FLASHER)
  assert.ok(most > 30 * MIB, 'the peak was not seen')
  assert.ok(most < MAX_BYTES, `${Math.round(most / MIB)} MiB`)
})

test.run()
