/** Debian's memtest86+ as a boot entry: ordered once, started by a real iPXE on BIOS and UEFI, and the next boot is the order's. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findImageObstacle } from '#test/support/disk/debian-image.ts'
import { MAC, REF } from '#test/support/server/machine-fixture.ts'
import { asJson } from '#test/support/server/server.ts'
import { startStation } from '#test/support/vm/station.ts'

const test = suite('something else, booted once')
/** Debian's two programs: a BIOS starts one as a kernel, UEFI the other as its own. */
const MEMTEST = {
  bios: { path: '/boot/memtest86+x64.bin', part: 'kernel', says: /Memtest86\+/ },
  // It has begun, and finds no screen in this machine.
  uefi: { path: '/boot/memtest86+x64.efi', part: 'program', says: /set_screen_info\(\) failed/ },
} as const
const isThere = Object.values(MEMTEST).every(({ path }) => existsSync(path))
const obstacle = findImageObstacle() ?? (isThere ? null : 'memtest86+ is not installed')
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, many times what a free machine needs. */
const PATIENCE = 180
const ARMED = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }

for (const firmware of ['bios', 'uefi'] as const) {
  run(
    `${firmware}: memtest86+ runs once, then the armed machine starts the live system`,
    async () => {
      await using station = await startStation()
      await station.put(ARMED)
      const { path, part, says } = MEMTEST[firmware]
      const bytes = await readFile(path)
      await station.putBootFile('memtest', bytes)
      const ask = await station.operator()
      const sha256 = createHash('sha256').update(bytes).digest('hex')
      const entry = {
        processor: 'x86_64',
        firmware,
        [part]: { name: 'memtest', sha256 },
        arguments: 'console=ttyS0,115200',
      }
      const kept = await ask('/boot-entries/memtest', asJson(entry, 'PUT'))
      assert.is(kept.status, 200, await kept.text())
      const ordered = await ask(`/machines/${MAC}/once`, asJson({ entry: 'memtest' }))
      assert.is(ordered.status, 200, await ordered.text())
      {
        await using machine = await station.boot({ firmware })
        await machine.waitFor(/starts memtest once/, PATIENCE)
        await machine.waitFor(says, PATIENCE)
      }
      const fetched = station.requests.filter((line) => line.includes('/once/'))
      assert.is.not(fetched.length, 0)
      assert.ok(
        fetched.every((line) => line.endsWith(`/${part}`)),
        fetched.join('\n'),
      )
      assert.is(station.machines.peek(MAC)?.cycle.offers, 0)
      await using again = await station.boot({ firmware })
      await again.waitFor(/starts the live system \(flash\)/, PATIENCE)
      assert.is(station.machines.peek(MAC)?.once, null)
    },
  )
}

test.run()
