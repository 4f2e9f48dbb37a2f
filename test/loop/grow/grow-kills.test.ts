/** A growing flash ended by SIGKILL at any moment: a disk is blank or complete, never half of a system. */
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createFaultyDisk } from '#test/support/disk/faulty-disk.ts'
import {
  checkFileSystem,
  listLoopsOn,
  makeGrowingImage,
  PART_OFFSET,
  readLastPartition,
  readSize,
} from '#test/support/disk/growing-images.ts'
import { readDisk, untilFree } from '#test/support/disk/writer.ts'
import { createSeededRandom, KILLS } from '#test/support/seed.ts'
import { startFlash } from '#test/support/terminal/program.ts'

const test = suite('a growing flash that is killed')
const MIB = 1 << 20
const SIZE = 24
/** Slow enough that the growth, too, takes a share of the time. */
const SLOW_DISK = ['--filter=delay', 'memory', `${SIZE}M`, 'wdelay=10ms', 'rdelay=4ms']

async function start(image: Buffer, device: string) {
  const flash = startFlash([image], ['--format', 'img', '--target', device, '--grow'])
  await flash.started
  return flash
}

async function judge(device: string): Promise<'blank' | 'complete'> {
  if ((await readDisk(device, 0, 4096)).every((byte) => byte === 0)) return 'blank'
  const bytes = SIZE * MIB - PART_OFFSET - MIB
  assert.is(await readLastPartition(device), bytes)
  assert.is(await readSize(device, 'ext4'), bytes)
  await checkFileSystem(device, 'ext4')
  return 'complete'
}

async function untilDetached(device: string) {
  for (let tries = 0; (await listLoopsOn(device)).length > 0; tries += 1) {
    assert.ok(tries < 1000, `a loop device on ${device} is left`)
    await sleep(20)
  }
}

test(`SIGKILL at ${KILLS} moments, most of them in the growth; then a whole flash`, async () => {
  await using image = await makeGrowingImage('ext4')
  const bytes = await readFile(image.path)
  await using disk = await createFaultyDisk({ nbdkit: SLOW_DISK })
  const { device } = disk
  const flashWhole = async () => {
    const { ended } = await start(bytes, device)
    const begun = performance.now()
    assert.is((await ended).by, 0)
    assert.is(await judge(device), 'complete')
    return performance.now() - begun
  }
  const lasts = await flashWhole()
  const random = createSeededRandom(21)
  for (let n = 0; n < KILLS; n += 1) {
    const share = n % 3 === 0 ? random() : 0.4 + 0.6 * random()
    const { child, ended } = await start(bytes, device)
    await sleep(share * lasts)
    child.kill('SIGKILL')
    const { by } = await ended
    await untilFree(device)
    await untilDetached(device)
    const left = await judge(device)
    assert.ok(by === 'SIGKILL' || left === 'complete', `${left} (${by}) after ${share} of the time`)
  }
  await flashWhole()
})
test.run()
