/** A real iPXE waits in line until it is its turn, and brings its token to the kernel. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findImageObstacle } from '#test/support/disk/debian-image.ts'
import { MAC, REF } from '#test/support/server/machine-fixture.ts'
import { asJson } from '#test/support/server/server.ts'
import { startStation } from '#test/support/vm/station.ts'

const test = suite('iPXE in line')

const obstacle = findImageObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 120
const OTHER = '52:54:00:12:34:57'
const FLASH = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }
const ASKED = `GET /pxe/${MAC.replaceAll(':', '-')}`

for (const firmware of ['bios', 'uefi'] as const) {
  run(
    `${firmware.toUpperCase()}: it waits, asks again, and boots when another is done`,
    async () => {
      await using station = await startStation({
        FLASHER_PXE_MAX_FLASHES: '1',
        FLASHER_PXE_TOKENS: 'require',
      })
      const ask = await station.operator()
      await ask(`/machines/${OTHER}`, asJson(FLASH, 'PUT'))
      const script = await (await station.request(`/pxe/${OTHER}`)).text()
      const token = / flasher\.token=(\S+) /.exec(script)?.[1] ?? ''
      await station.put(FLASH)

      await using machine = await station.boot({ firmware })
      await machine.waitFor(/waits: place 1 of 1, 1 is being flashed/, PATIENCE)
      await machine.waitFor(/waits: place 1 of 1, 1 is being flashed/, PATIENCE)
      assert.equal(station.requests, ['GET /pxe-bootstrap.ipxe', ASKED, ASKED])
      assert.is((await station.machines.find(MAC))?.cycle.offers, 0, 'waiting is no live boot')

      const headers = { authorization: `Bearer ${token}` }
      const done = await station.request(`/pxe/${OTHER}/done`, { method: 'POST', headers })
      assert.is(done.status, 204)
      await machine.waitFor(/starts the live system \(flash\)/, PATIENCE)
      const said = await machine.waitFor(/Command line: .*\n/, PATIENCE)
      const own = / flasher\.token=(\S+) /.exec(said)?.[1] ?? ''
      assert.is.not(own, token)
      const plan = (bearer: string) =>
        station.request(`/pxe/${MAC}/plan`, { headers: { authorization: `Bearer ${bearer}` } })
      assert.equal([(await plan(token)).status, (await plan(own)).status], [401, 200])
      assert.is((await station.machines.find(MAC))?.cycle.queued_at, null)
    },
  )
}

test.run()
