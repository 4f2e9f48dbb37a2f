/** arm64 machines that boot the live system over the network: by our iPXE, and by Debian's GRUB under Secure Boot. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openDebianImage } from '#test/support/disk/debian-image.ts'
import { findBuildObstacle, openIpxe, openSecureBoot } from '#test/support/vm/built-images.ts'
import { discover, flash, openPxeLab } from '#test/support/vm/pxe-flash.ts'

const test = suite('network boot of arm64')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

const openImages = async (): Promise<readonly [string]> => [
  await (await openDebianImage()).file('img.zst'),
]

run('UEFI, iPXE: a new machine reports its disks', async () => {
  await using pxe = await openPxeLab({
    arch: 'arm64',
    ipxe: await openIpxe(),
    images: await openImages(),
  })
  await discover(pxe, 'arm64-pxe')
  assert.is((await pxe.readMachine()).known_disks?.length, 1)
})

// The disk of another processor is flashed like any other; only booting it is left out.
run('Secure Boot, signed GRUB: from an unknown machine to a flashed disk', async () => {
  const secureBoot = await openSecureBoot('arm64')
  await using pxe = await openPxeLab({ arch: 'arm64', secureBoot, images: await openImages() })
  await discover(pxe, 'arm64-secure-pxe')
  assert.is((await pxe.readMachine()).secure_boot, true)
  await pxe.bind()
  await flash(pxe, 'arm64-secure-pxe')
  const [last] = await pxe.readRuns()
  assert.equal([last?.result, last?.verified], ['done', true])
})

test.run()
