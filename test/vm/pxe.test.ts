/** The other ways by which firmware comes to the live system; and a power cut in the middle of a flash. */
import { open } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findBuildObstacle } from '../support/built-images.ts'
import { discover, PATIENCE, startFlash, startPxeLab } from '../support/pxe-flash.ts'

const test = suite('PXE, other ways')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

for (const way of ['bios-rom', 'uefi-http'] as const) {
  run(`${way}: discovered, bound, flashed, booted`, async () => {
    await using pxe = await startPxeLab()
    await discover(pxe, way)
    await pxe.bind()
    {
      await using machine = await startFlash(pxe, way)
      await machine.ended
    }
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
    assert.ok(await isBlank(pxe.disk), 'what a firmware would boot is not there')
    {
      await using machine = await startFlash(pxe, 'uefi-pxe')
      await machine.ended
    }
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
    await pxe.lab.stopServer()
    await machine.waitFor(/server|Server/, PATIENCE)
    await pxe.lab.startServer()
    await machine.ended
    assert.is((await pxe.readRuns())[0]?.result, 'done')
  },
)

async function isBlank(disk: string): Promise<boolean> {
  await using file = await open(disk)
  const { buffer } = await file.read(Buffer.alloc(4096), 0, 4096, 0)
  return buffer.every((byte) => byte === 0)
}

test.run()
