/** A delta flash ended by SIGKILL at any moment: a disk is blank, as it was, or complete. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeDiskImage, makeNoise } from '#test/support/disk/disk-images.ts'
import { createFaultyDisk } from '#test/support/disk/faulty-disk.ts'
import { packBuffer } from '#test/support/disk/packed-image.ts'
import { readDisk, untilFree } from '#test/support/disk/writer.ts'
import { createSeededRandom, KILLS } from '#test/support/seed.ts'
import { startFlasher } from '#test/support/terminal/flasher.ts'

const test = suite('a delta flash that is killed')
const MIB = 1 << 20
/** Two versions of a system that share most of their frames, and zeros between them. */
const FIRST = Buffer.concat([makeDiskImage(8 * MIB), Buffer.alloc(4 * MIB), makeNoise(12 * MIB, 5)])
const SECOND = Buffer.concat([
  makeDiskImage(4 * MIB, { seed: 8 }),
  FIRST.subarray(4 * MIB, 20 * MIB),
  makeNoise(4 * MIB, 9),
])
const SLOW_DISK = [
  '--filter=delay',
  'memory',
  '24M',
  'wdelay=12ms',
  'rdelay=8ms',
  'delay-trim=20ms',
]

type Left = 'blank' | 'first' | 'second' | 'half'

function judge(found: Buffer): Left {
  if (found.equals(FIRST)) return 'first'
  if (found.equals(SECOND)) return 'second'
  return found.subarray(0, 4096).every((byte) => byte === 0) ? 'blank' : 'half'
}

test(`SIGKILL at ${KILLS} moments; then a whole flash`, async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-delta-kills-'))
  const paths = {
    first: join(folder.path, 'first.img.zst'),
    second: join(folder.path, 'second.img.zst'),
  }
  await writeFile(paths.first, (await packBuffer(FIRST)).file)
  await writeFile(paths.second, (await packBuffer(SECOND)).file)
  await using disk = await createFaultyDisk({ nbdkit: SLOW_DISK })
  const { device } = disk

  function start(wanted: 'first' | 'second') {
    const target = ['--image', paths[wanted], '--target', device, '--delta', '--yes']
    return startFlasher(['flash', ...target, '--progress', 'ndjson'])
  }
  async function flashWhole(wanted: 'first' | 'second') {
    const flash = start(wanted)
    await flash.saw('"started"')
    const begun = performance.now()
    assert.is((await flash.ended).code, 0)
    assert.is(judge(await readDisk(device)), wanted)
    return performance.now() - begun
  }

  await flashWhole('first')
  const lasts = await flashWhole('second')
  const random = createSeededRandom(31)
  let before: Left = 'second'
  for (let n = 0; n < KILLS; n += 1) {
    const wanted = n % 2 === 0 ? 'first' : 'second'
    const flash = start(wanted)
    await flash.saw('"started"')
    // Every other time among the last steps, where the ends are written.
    const share = n % 4 < 2 ? random() : 0.6 + 0.5 * random()
    await sleep(share * lasts)
    flash.child.kill('SIGKILL')
    const { code } = await flash.ended
    await untilFree(device)
    const left = judge(await readDisk(device))
    const isRight = left === 'blank' || left === wanted || (left === before && code === 137)
    assert.ok(isRight, `${left} (${code}) when killed after ${share} of the time`)
    before = left
  }
  await flashWhole('second')
})

test.run()
