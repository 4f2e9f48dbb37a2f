/** The other ways by which firmware comes to the live system; a power cut, and a server away, in mid-flash. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findBuildObstacle } from '../support/vm/built-images.ts'
import {
  discover,
  flash,
  isBlank,
  PATIENCE,
  startFlash,
  startPxeLab,
  waitFor,
  waitForEnd,
} from '../support/vm/pxe-flash.ts'

const test = suite('PXE, other ways')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** The least that is promised is enough for a whole flash. */
const WAYS = [
  { way: 'bios-rom', megabytes: 384 },
  { way: 'uefi-http', megabytes: 1024 },
] as const

for (const { way, megabytes } of WAYS) {
  run(`${way}, ${megabytes} MiB: discovered, bound, flashed, booted`, async () => {
    await using pxe = await startPxeLab()
    await discover(pxe, way, { megabytes })
    await pxe.bind()
    await flash(pxe, way, { megabytes })
    assert.is((await pxe.readRuns())[0]?.result, 'done')
    await using machine = await pxe.start(way)
    await machine.waitFor(/flasher-test login: /, PATIENCE)
  })
}

run(
  'a power cut in the middle of a flash: the disk does not boot, the next boot flashes it',
  async () => {
    await using pxe = await startPxeLab()
    await discover(pxe, 'uefi-pxe')
    await pxe.bind()
    {
      await using _cut = await startFlash(pxe, 'uefi-pxe')
    }
    assert.ok(await isBlank(pxe))
    await flash(pxe, 'uefi-pxe')
    const [second, first] = await pxe.readRuns()
    assert.equal([first?.result, second?.result], ['lost', 'done'])
    await using machine = await pxe.start('uefi-pxe')
    await machine.waitFor(/flasher-test login: /, PATIENCE)
  },
)

run(
  'the server goes away in the middle of a flash: the flash goes on, and is recorded after all',
  async () => {
    await using pxe = await startPxeLab()
    await discover(pxe, 'uefi-pxe')
    await pxe.bind()
    await using machine = await startFlash(pxe, 'uefi-pxe')
    assert.ok(await isBlank(pxe))
    await pxe.lab.stopServer()
    await waitFor(pxe, async () => !(await isBlank(pxe)))
    await pxe.lab.startServer()
    await waitForEnd(machine)
    assert.is((await pxe.readRuns())[0]?.result, 'done')
  },
)

test.run()
