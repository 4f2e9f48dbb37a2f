/** One image written to several disks at once: each gets it, and each ends for itself. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { pipeThrough } from '#test/support/disk/compressed.ts'
import { makeDiskImage, makeNoise, writeGpt } from '#test/support/disk/disk-images.ts'
import { createFaultyDisk, gated, inMemory, scripted } from '#test/support/disk/faulty-disk.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { packBuffer } from '#test/support/disk/packed-image.ts'
import { runFlasher, startFlasher } from '#test/support/terminal/flasher.ts'
import {
  assertBlank,
  assertSame,
  expectedDisk,
  makeStale,
  readDisk,
  untilFree,
} from '#test/support/disk/writer.ts'

const test = suite('an image on several disks')
const MIB = 1 << 20

async function withImage(name: string, content: Buffer, act: (path: string) => Promise<void>) {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-many-'))
  try {
    const path = join(folder, name)
    await writeFile(path, content)
    await act(path)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const flash = (image: string, targets: readonly string[], ...more: readonly string[]) =>
  runFlasher([
    'flash',
    `--image=${image}`,
    ...targets.map((target) => `--target=${target}`),
    '--json',
    ...more,
  ])

const resultsOf = (stdout: string): readonly unknown[] =>
  [...stdout.matchAll(/"(bytes_written|code)": ?"?([\w-]+)/g)].map(([, , value]) => value)

const RAW = makeDiskImage(21 * MIB + 512)

for (const [name, stored] of [
  ['disk.img', RAW],
  ['disk.img.zst', pipeThrough(['zstd', '-qc1'], RAW)],
] as const) {
  test(`${name} on disks of different sizes and sectors, one of them as large as the image`, async () => {
    await withImage(name, stored, async (path) => {
      await using exact = await createLoop({ sizeBytes: RAW.length })
      await using larger = await createLoop({ megabytes: 22 })
      await using largest = await createLoop({ megabytes: 40 })
      const devices = [exact.device, larger.device, largest.device]
      const stale = []
      for (const device of devices) stale.push(await makeStale(device))
      const { code, stdout, stderr } = await flash(path, devices, '--yes', '--verify-all')
      assert.is(code, 0, stderr)
      assert.is(resultsOf(stdout).length, 3)
      for (const [index, device] of devices.entries()) {
        const before = stale[index] ?? Buffer.alloc(0)
        assertSame(await readDisk(device), expectedDisk(before, RAW), device)
      }
    })
  })
}

test('one that fails ends alone; the exit code and the document tell which', async () => {
  await withImage('disk.img', RAW, async (path) => {
    await using good = await createLoop({ megabytes: 24 })
    await using bad = await createFaultyDisk({
      nbdkit: [
        '--filter=error',
        ...inMemory(24),
        'error-pwrite=EIO',
        'error-pwrite-rate=100%',
        'error-file={}/flag',
      ],
    })
    await makeStale(good.device)
    bad.setFlag(true)
    const { code, stdout, stderr } = await flash(path, [bad.device, good.device], '--yes')
    assert.is(code, 1)
    assert.equal(resultsOf(stdout), ['write-failed', String(RAW.length)])
    assert.match(stderr, `${bad.device}: `)
    assertSame((await readDisk(good.device)).subarray(0, RAW.length), RAW)
  })
})

/** Without zeros, which a disk would clear itself. */
const NOISE = makeNoise(21 * MIB)
writeGpt(NOISE, 512)

for (const [name, place] of [
  ['the first', 0],
  ['the last', 2],
] as const) {
  test(`a disk that keeps other bytes than it was given is found out alone, as ${name} of three`, async () => {
    await withImage('disk.img', NOISE, async (path) => {
      const at = 9 * MIB
      const isThere = `[ "$4" -le ${at} ] && [ $(($4 + $3)) -gt ${at} ]`
      const flip = `tr '\\000-\\377' '\\001-\\377\\000' | dd of={}/data bs=1M seek=$4 oflag=seek_bytes conv=notrunc status=none; exit 0`
      const pwrite = `if ${isThere}; then ${flip}; fi`
      await using liar = await createFaultyDisk({ nbdkit: scripted(24, { pwrite }) })
      await using one = await createLoop({ megabytes: 24 })
      await using other = await createLoop({ megabytes: 24 })
      const devices = [one.device, other.device].toSpliced(place, 0, liar.device)
      const { code, stdout, stderr } = await flash(path, devices, '--yes')
      assert.is(code, 1)
      const expected = [NOISE.length, NOISE.length].map(String).toSpliced(place, 0, 'verify-failed')
      assert.equal(resultsOf(stdout), expected)
      assert.match(stderr, `${liar.device} does not return what was written`)
      for (const { device } of [one, other]) {
        assertSame((await readDisk(device)).subarray(0, NOISE.length), NOISE)
      }
    })
  })
}

/** More than the buffer and what is under way. */
const LARGE = makeNoise(140 * MIB)
writeGpt(LARGE, 512)
const IMPATIENT = fileURLToPath(
  new URL('../../support/terminal/impatient-flasher.ts', import.meta.url),
)

for (const [name, stored] of [
  ['disk.img', LARGE],
  ['disk.img.zst', (await packBuffer(LARGE)).file],
] as const) {
  test(`${name}: a disk that pauses holds up the other one, and both are whole in the end`, async () => {
    await withImage(name, stored, async (path) => {
      await using fast = await createLoop({ megabytes: 144 })
      await using slow = await createFaultyDisk({ nbdkit: gated(144, 21 * MIB) })
      slow.setFlag(true)
      const targets = [slow.device, fast.device].map((device) => `--target=${device}`)
      const more = ['--yes', '--progress=ndjson']
      const { child, ended, saw } = startFlasher(['flash', `--image=${path}`, ...targets, ...more])
      let [most, isHeld] = [0, true]
      const ahead = Promise.withResolvers<void>()
      createInterface({ input: child.stdout ?? Readable.from([]) }).on('line', (line) => {
        const isFast = line.startsWith(`{"target": "${fast.device}", "event": "writing"`)
        const written = /"phase": "write".*"bytes_written": (\d+)/.exec(line)
        if (isFast && isHeld) most = Math.max(most, Number(written?.[1] ?? 0))
        if (most > 48 * MIB) ahead.resolve()
      })
      await Promise.race([ahead.promise, saw('"failed"')])
      isHeld = false
      slow.setFlag(false)
      const { code, stderr } = await ended
      assert.is(code, 0, stderr)
      // What the slow one had, the buffer, and what was under way.
      assert.ok(most < (21 + 64 + 24) * MIB, `${most / MIB} MiB`)
      for (const { device } of [slow, fast]) {
        assertSame((await readDisk(device)).subarray(0, LARGE.length), LARGE, device)
      }
    })
  })
}

test('disks that hang, each in another place, fail alone: the others go on without them', async () => {
  await withImage('disk.img', LARGE, async (path) => {
    await using undo = new AsyncDisposableStack()
    const good = []
    for (let n = 0; n < 2; n += 1) good.push(undo.use(await createLoop({ megabytes: 144 })))
    const hanging = []
    // Twenty-one writes hang at once: each holds a thread of the process.
    for (const from of [0, 30, 60, 30, 60]) {
      const disk = undo.use(await createFaultyDisk({ nbdkit: gated(144, from * MIB) }))
      disk.setFlag(true)
      hanging.push(disk)
    }
    const all = [...hanging, ...good]
    const targets = all.map(({ device }) => `--target=${device}`)
    const argv = ['flash', `--image=${path}`, ...targets, '--yes', '--json']
    const { ended, saw } = startFlasher(argv, { program: IMPATIENT })
    // The document comes while they still hang.
    await saw('"targets"')
    for (const disk of hanging) disk.setFlag(false)
    const { code, stdout, stderr } = await ended
    assert.is(code, 1)
    const failed = hanging.map(() => 'write-failed')
    assert.equal(resultsOf(stdout), [...failed, ...good.map(() => String(LARGE.length))])
    for (const { device } of hanging) {
      assert.match(stderr, `${device} did nothing for 1 s while the other disks waited for it`)
      await untilFree(device)
      assert.ok(
        (await readDisk(device, 0, MIB)).every((byte) => byte === 0),
        device,
      )
    }
    for (const { device } of good) {
      assertSame((await readDisk(device)).subarray(0, LARGE.length), LARGE, device)
    }
  })
})

test('two names of one disk, and a damaged image, leave every disk as it was or blank', async () => {
  await withImage('disk.img', RAW, async (path) => {
    await using one = await createLoop({ megabytes: 24 })
    await using two = await createLoop({ megabytes: 24 })
    const before = await makeStale(one.device)
    const again = `/dev/../dev/${one.device.slice(5)}`
    const { code, stdout } = await flash(path, [one.device, two.device, again], '--yes')
    assert.is(code, 1)
    assert.match(stdout, `target is given twice: ${again} is, or is part of, ${one.device}`)
    assertSame(await readDisk(one.device), before)
    const damaged = pipeThrough(['zstd', '-qc1'], RAW)
    damaged.fill(0xff, damaged.length >> 1, (damaged.length >> 1) + 4096)
    await writeFile(`${path}.zst`, damaged)
    const broken = await flash(`${path}.zst`, [one.device, two.device], '--yes')
    assert.is(broken.code, 1)
    assert.equal(resultsOf(broken.stdout), ['image-broken', 'image-broken'])
    await assertBlank(one.device)
    await assertBlank(two.device)
  })
})

test('JSON lines name the disk of each event', async () => {
  await withImage('disk.img', RAW, async (path) => {
    await using one = await createLoop({ megabytes: 24 })
    await using two = await createLoop({ megabytes: 24 })
    const { stdout } = await flash(path, [one.device, two.device], '--yes', '--progress=ndjson')
    for (const { device } of [one, two]) {
      const lines = stdout.split('\n').filter((line) => line.includes(`{"target": "${device}"`))
      assert.match(lines.at(0) ?? '', '"event": "started"')
      assert.match(lines.at(-1) ?? '', '"event": "done"')
    }
  })
})
test.run()
