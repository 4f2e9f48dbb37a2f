/** A flash of several disks ended by SIGKILL at any moment: each disk is blank, as it was, or complete. */
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { createFaultyDisk } from '#test/support/disk/faulty-disk.ts'
import { makeStale, readDisk, untilFree } from '#test/support/disk/writer.ts'
import { createSeededRandom, KILLS } from '#test/support/seed.ts'
import { startFlash } from '#test/support/terminal/program.ts'

const test = suite('a flash of several disks that is killed')
const MIB = 1 << 20
const SIZE = 10
const IMAGE = makeDiskImage(SIZE * MIB)

/** The second disk is slower, so that the ends of the two are written at different times. */
const slow = (milliseconds: number) => [
  '--filter=delay',
  'memory',
  `${SIZE}M`,
  `wdelay=${milliseconds}ms`,
  `rdelay=${milliseconds / 2}ms`,
  `delay-trim=${2 * milliseconds}ms`,
]

function judge(found: Buffer, before: Buffer): 'blank' | 'untouched' | 'complete' | 'half' {
  if (found.equals(IMAGE)) return 'complete'
  if (found.subarray(0, 4096).every((byte) => byte === 0)) return 'blank'
  return found.equals(before) ? 'untouched' : 'half'
}

async function start(devices: readonly string[]) {
  const targets = devices.flatMap((device) => ['--target', device])
  const flash = startFlash([IMAGE], ['--format', 'img', ...targets])
  await flash.started
  return flash
}

test(`SIGKILL at ${KILLS} moments; then a whole flash`, async () => {
  await using one = await createFaultyDisk({ nbdkit: slow(8) })
  await using two = await createFaultyDisk({ nbdkit: slow(14) })
  const devices = [one.device, two.device]
  async function flashWhole() {
    const { ended } = await start(devices)
    const begun = performance.now()
    assert.is((await ended).by, 0)
    for (const device of devices) {
      assert.is(judge(await readDisk(device), IMAGE), 'complete', device)
    }
    return performance.now() - begun
  }
  const lasts = await flashWhole()
  const random = createSeededRandom(32)
  for (let n = 0; n < KILLS; n += 1) {
    if (n % 4 === 0) for (const device of devices) await makeStale(device)
    const before = await Promise.all(devices.map((device) => readDisk(device)))
    const share = n % 2 === 0 ? random() : 0.6 + 0.45 * random()
    const { child, ended } = await start(devices)
    await sleep(share * lasts)
    child.kill('SIGKILL')
    const { by } = await ended
    for (const [index, device] of devices.entries()) {
      await untilFree(device)
      const left = judge(await readDisk(device), before[index] ?? IMAGE)
      const isRight = left !== 'half' && (by === 'SIGKILL' || left === 'complete')
      assert.ok(isRight, `${left} (${by}) on disk ${index} after ${share} of the time`)
    }
  }
  await flashWhole()
})
test.run()
