/** Secure Boot enforced with Microsoft's keys: Debian's shim and GRUB, the product alone serving everything. */
import { basename, join } from 'node:path'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openDebianImage } from '#test/support/disk/debian-image.ts'
import { makeSecureDisk } from '#test/support/disk/secure-disk.ts'
import { findBuildObstacle, openSecureBoot } from '#test/support/vm/built-images.ts'
import { discover, flash, openPxeLab, PATIENCE } from '#test/support/vm/pxe-flash.ts'

const test = suite('network boot with Secure Boot')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

for (const way of ['secure-pxe', 'secure-http'] as const) {
  run(`${way}: from an unknown machine to the login of the flashed system`, async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-secure-'))
    const image = join(folder.path, 'secure-debian.img')
    const secureBoot = await openSecureBoot()
    await makeSecureDisk(await (await openDebianImage()).file('img'), image, secureBoot)
    await using pxe = await openPxeLab({ secureBoot, images: [image] })
    await discover(pxe, way)
    assert.is((await pxe.readMachine()).secure_boot, true)
    await pxe.bind()
    await flash(pxe, way)
    const [last] = await pxe.readRuns()
    assert.equal([last?.result, last?.verified, last?.image?.name], ['done', true, basename(image)])
    await using machine = await pxe.start(way)
    await machine.waitFor(/boots its own disk \(flashed\)/, PATIENCE)
    await machine.waitFor(/starts \(hd0,gpt2\)\/EFI\/BOOT\/BOOTX64\.EFI/, PATIENCE)
    await machine.waitFor(/flasher-test login: /, PATIENCE)
  })
}

test.run()
