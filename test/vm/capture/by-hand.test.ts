/** An installed Debian is captured, and its image is flashed onto a larger disk, which boots as another machine. */
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import {
  installDebian,
  readDigest,
  ROOT_OFFSET,
  visitDebian,
} from '#test/support/capture/installed-debian.ts'
import { findImageObstacle } from '#test/support/disk/debian-image.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'
import { FIRMWARE, type Firmware } from '#test/support/vm/ipxe.ts'
import { startQemu } from '#test/support/vm/qemu.ts'

const test = suite('an installed Debian is captured')
const obstacle = findImageObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

const LARGER_BYTES = 2 * 2 ** 30

/** One boot of a disk, up to its shutdown. */
async function boot(disk: string, firmware: Firmware) {
  const drive = ['-drive', `if=none,id=disk,format=raw,file=${disk}`]
  const device = ['-device', 'virtio-blk-pci,drive=disk']
  await using machine = await startQemu({ args: [...FIRMWARE[firmware], ...drive, ...device] })
  return await visitDebian(machine)
}

async function flasher(...argv: readonly string[]) {
  const { code, stdout, stderr } = await runFlasher([...argv, '--json'])
  assert.is(code, 0, stderr)
  return JSON.parse(stdout)
}

run('generalized, and grown on the other disk; the disk that was read is as it was', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-capture-'))
  const disk = join(folder.path, 'disk')
  const image = join(folder.path, 'debian.img.zst')
  await installDebian(disk)
  const first = await boot(disk, 'bios')
  assert.ok(first.keyBytes > 0)

  const digest = await readDigest(disk)
  {
    await using source = await createLoop({ backing: disk })
    const capture = ['capture', '--source', source.device, '--output', image, '--generalize']
    const { parts, generalized, warnings } = await flasher(...capture)
    assert.equal(
      parts.map(({ type, whole }: Record<string, unknown>) => [type, whole]),
      [
        [null, 'an unknown file system'],
        ['vfat', null],
        ['ext4', null],
      ],
    )
    assert.ok(generalized.includes('/etc/machine-id'))
    assert.ok(generalized.includes('/etc/ssh/ssh_host_ed25519_key'))
    assert.equal(warnings, [])
  }
  assert.is(await readDigest(disk), digest)

  await using larger = await createLoop({ sizeBytes: LARGER_BYTES })
  await flasher('flash', '--image', image, '--target', larger.device, '--grow', '--yes')
  await $({ quiet: true })`sfdisk --verify ${larger.device}`
  await $({ quiet: true })`e2fsck -f -n ${`${larger.device}?offset=${ROOT_OFFSET}`}`
  for (const firmware of ['bios', 'uefi'] as const) {
    const second = await boot(larger.device, firmware)
    assert.is.not(second.machineId, first.machineId)
    assert.is(second.keyBytes, 0)
    assert.ok(second.rootBytes > 0.9 * LARGER_BYTES, `${second.rootBytes} bytes`)
  }
})

test.run()
