/** The program ended by signals at any moment: a disk is blank, as it was, or completely written. */
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { pipeThrough } from '#test/support/disk/compressed.ts'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { createFaultyDisk } from '#test/support/disk/faulty-disk.ts'
import { createSeededRandom, KILLS } from '#test/support/seed.ts'
import { startFlash } from '#test/support/terminal/program.ts'
import {
  assertSame,
  expectedDisk,
  makeStale,
  readDisk,
  untilFree,
} from '#test/support/disk/writer.ts'

const test = suite('a program that is killed')
const MIB = 1 << 20
const SIZE = 10
const IMAGE = makeDiskImage(SIZE * MIB)
const STORED = pipeThrough(['zstd', '-qc1'], IMAGE)
/** Slow enough that all steps, the last ones too, take a share of the time. */
const SLOW_DISK = [
  '--filter=delay',
  'memory',
  `${SIZE}M`,
  'wdelay=15ms',
  'rdelay=8ms',
  'delay-trim=40ms',
]

/** The image at an even pace. */
async function* slowly() {
  const step = Math.ceil(STORED.length / 20)
  for (let at = 0; at < STORED.length; at += step) {
    yield STORED.subarray(at, at + step)
    await sleep(10)
  }
}

const start = (device: string) => startFlash(slowly(), ['--format', 'img.zst', '--target', device])

/** What a disk may hold, when a flash was ended before its time. */
function judge(found: Buffer, before: Buffer): 'blank' | 'untouched' | 'complete' | 'half' {
  if (found.equals(IMAGE) && !before.equals(IMAGE)) return 'complete'
  if (found.subarray(0, 4096).every((byte) => byte === 0)) return 'blank'
  return found.equals(before) ? 'untouched' : 'half'
}

async function flashWhole(device: string): Promise<number> {
  const stale = await makeStale(device)
  const { started, ended } = start(device)
  await started
  const begun = performance.now()
  const { by, events } = await ended
  const lasted = performance.now() - begun
  assert.is(by, 0)
  assert.equal(events.slice(-3), ['synced', 'partprobed', 'done'])
  assertSame(await readDisk(device), expectedDisk(stale, IMAGE))
  return lasted
}

/** Kills one flash after so long from its start on; what it left, and how it ended. */
async function killAfter(device: string, signal: NodeJS.Signals, milliseconds: number) {
  const before = await readDisk(device)
  const { child, started, ended } = start(device)
  await started
  await sleep(milliseconds)
  child.kill(signal)
  const { by } = await ended
  await untilFree(device)
  return { by, left: judge(await readDisk(device), before) }
}

test(`SIGKILL at ${KILLS} moments; then a whole flash`, async () => {
  await using disk = await createFaultyDisk({ nbdkit: SLOW_DISK })
  const { device } = disk
  const lasts = await flashWhole(device)
  const random = createSeededRandom(11)
  let isWhole = true
  for (let n = 0; n < KILLS; n += 1) {
    // Every other time among the last steps, where the ends are written.
    const share = n % 2 === 0 ? random() : 0.7 + 0.35 * random()
    // A table to be found again, should it not be cleared; and what is whole says nothing of the next flash.
    if (n % 4 === 0 || isWhole) await makeStale(device)
    const { by, left } = await killAfter(device, 'SIGKILL', share * lasts)
    isWhole = left === 'complete'
    const isRight = left !== 'half' && (by === 'SIGKILL' || isWhole)
    assert.ok(isRight, `${left} (${by}) when killed after ${share} of the time`)
  }
  await flashWhole(device)
})

for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  test(`${signal} at ${KILLS} moments: it says so and leaves the disk blank, or as it was`, async () => {
    await using disk = await createFaultyDisk({ nbdkit: SLOW_DISK })
    const { device } = disk
    const lasts = await flashWhole(device)
    const random = createSeededRandom(12)
    for (let n = 0; n < KILLS; n += 1) {
      const share = 0.1 + 0.9 * random()
      // What was complete before is 'untouched' where nothing was written yet.
      await makeStale(device)
      const { by, left } = await killAfter(device, signal, share * lasts)
      const isStopped = left === 'blank' || left === 'untouched'
      const isRight = by === 0 ? left === 'complete' : by === code && isStopped
      assert.ok(isRight, `${left} (${by}) when interrupted after ${share} of the time`)
    }
    await flashWhole(device)
  })
}
test.run()
