/** A flash with a cloud-init seed ended by SIGKILL at any moment: a disk that boots has the seed. */
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { SEED_FOLDER } from '#engine/flash/rules/provisioning.ts'
import { createFaultyDisk } from '#test/support/disk/faulty-disk.ts'
import { readPartFile } from '#test/support/disk/first-boot-image.ts'
import { listLoopsOn } from '#test/support/disk/growing-images.ts'
import {
  makeSeededImage,
  PLAIN_ROOT,
  USER_DATA,
  WHOLE_ROOT,
} from '#test/support/disk/provisioning-fixture.ts'
import { readDisk, untilFree } from '#test/support/disk/writer.ts'
import { createSeededRandom, KILLS } from '#test/support/seed.ts'
import { startFlash } from '#test/support/terminal/program.ts'

const test = suite('a seeding flash that is killed')
/** Slow enough that the steps at the end take a share of the time. */
const slowDisk = (megabytes: number) => [
  '--filter=delay',
  'memory',
  `${megabytes}M`,
  'wdelay=10ms',
  'rdelay=4ms',
]

const isBlank = async (device: string) =>
  (await readDisk(device, 0, 4096)).every((byte) => byte === 0)

for (const [what, layout, megabytes] of [
  ['in the middle of the disk', PLAIN_ROOT, 32],
  ['on all of it', WHOLE_ROOT, 24],
] as const) {
  test(`a root ${what}: SIGKILL at ${KILLS} moments, most of them near the end`, async () => {
    await using image = await makeSeededImage(layout)
    const bytes = await readFile(image.path)
    await using disk = await createFaultyDisk({ nbdkit: slowDisk(megabytes) })
    const { device } = disk
    const start = async () => {
      const flash = startFlash([bytes], ['--format', 'img', '--target', device, ...image.flags])
      await flash.started
      return flash
    }
    async function judge() {
      if (await isBlank(device)) return 'blank'
      const path = `${SEED_FOLDER}/user-data`
      assert.is(
        await readPartFile(device, layout.offset, path),
        USER_DATA,
        'boots without its seed',
      )
      return 'seeded'
    }
    const whole = await start()
    const begun = performance.now()
    const { by, events } = await whole.ended
    const lasts = performance.now() - begun
    assert.is(by, 0)
    assert.equal(events.slice(-4), ['synced', 'partprobed', 'provisioning', 'done'])
    assert.is(await judge(), 'seeded')
    const random = createSeededRandom(27)
    const seen = { blank: 0, seeded: 0 }
    for (let n = 0; n < KILLS; n += 1) {
      const share = n % 4 === 0 ? random() : 0.6 + 0.42 * random()
      const { child, ended } = await start()
      // The first comes as soon as the disk is blank, however busy the machine is.
      if (n === 0) while (!(await isBlank(device))) await sleep(5)
      else await sleep(share * lasts)
      child.kill('SIGKILL')
      const end = await ended
      await untilFree(device)
      for (let tries = 0; (await listLoopsOn(device)).length > 0; tries += 1) {
        assert.ok(tries < 1000, `a loop device on ${device} is left`)
        await sleep(20)
      }
      const left = await judge()
      seen[left] += 1
      assert.ok(end.by === 'SIGKILL' || left === 'seeded', `${left} (${end.by}) after ${share}`)
    }
    assert.ok(seen.blank > 0, JSON.stringify(seen))
  })
}
test.run()
