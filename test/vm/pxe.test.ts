/** The other ways by which firmware comes to the live system, up to the boot of what was flashed. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findBuildObstacle } from '#test/support/vm/built-images.ts'
import { discover, flash, PATIENCE, startPxeLab } from '#test/support/vm/pxe-flash.ts'

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

test.run()
