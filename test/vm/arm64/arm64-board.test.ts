/** The board image starts UEFI machines for arm64, up to the wizard; and a Raspberry Pi finds in it what it looks for. */
import { mkdtempDisposable, open, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openPiVolume, PI_BOARDS, readPiBoot } from '#test/support/boot/pi-boot.ts'
import { startArmMachine } from '#test/support/vm/arm64-machine.ts'
import { findBuildObstacle, unpackBoard } from '#test/support/vm/built-images.ts'
import { LOCKED_DOWN } from '#test/support/vm/secure-firmware.ts'
import { makeUsbStick } from '#test/support/vm/usb-stick.ts'

const test = suite('board image')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, twenty times what a free machine needs: the processor is emulated. */
const PATIENCE = 1800
const FIRMWARE_OFFSET = 4 * 2 ** 20
/** Bytes that the length of a cpio archive is a multiple of. */
const CPIO_BLOCK = 512
const ZSTD_MAGIC = 0xfd2fb528
/** Whatever their order: to the end of what was said when the last one had been listed. */
const ALL_DISKS =
  /^(?=[^]*\d {2}\/dev\/mmcblk0)(?=[^]*\d {2}\/dev\/nvme0n1)(?=[^]*\d {2}\/dev\/sda)[^]*/
const tiny = { name: 'tiny.img', content: Buffer.alloc(2 ** 20, 7) }

run('a Raspberry Pi 4 and a 5 find kernel, initrd and device trees', async () => {
  await using board = await unpackBoard()
  const volume = openPiVolume(board.path, FIRMWARE_OFFSET)
  const trees = Object.values(PI_BOARDS).flat()
  for (const name of trees) {
    assert.is(volume.read(`/${name}`).readUInt32BE(0), 0xd00dfeed, name)
  }
  assert.is(volume.read('/start4.elf').toString('latin1', 1, 4), 'ELF')
  for (const name of ['pi4', 'pi5'] as const) {
    const { settings, kernel, initrd, commandLine } = readPiBoot(volume, name)
    assert.is(settings.get('arm_64bit'), '1')
    // An image of arm64, by the magic number of its header; a compressed one is recognized, too.
    const image = kernel.readUInt16BE(0) === 0x1f8b ? gunzipSync(kernel) : kernel
    assert.is(image.toString('latin1', 56, 60), 'ARMd')
    // A plain archive that names the only root, then the compressed one of drivers and scripts.
    assert.is(initrd.toString('latin1', 0, 6), '070701')
    const end = initrd.indexOf('TRAILER!!!') + 'TRAILER!!!'.length
    assert.is(initrd.readUInt32LE(Math.ceil(end / CPIO_BLOCK) * CPIO_BLOCK), ZSTD_MAGIC)
    assert.match(commandLine, / flasher\.media=\S+ gpt /)
  }
  // What a comment of config.txt offers must be there as well.
  const [, offered] = /^#device_tree=(.+)$/m.exec(volume.read('/config.txt').toString()) ?? []
  assert.ok(volume.paths.has(`/${offered}`), offered)
})

/** An empty disk of 1 GiB, sparse. */
async function makeDisk(path: string): Promise<string> {
  await writeFile(path, '')
  await truncate(path, 2 ** 30)
  return path
}

/** Its number in a list of disks, and the sign before it: `-` where it cannot be chosen. */
function findRow(listed: string, disk: string) {
  const [, sign, number] = new RegExp(`(.) (\\d) {2}${disk}`).exec(listed) ?? []
  return { sign, number }
}

run('UEFI: grown; its image flashed to another disk, never to the stick itself', async () => {
  await using board = await unpackBoard()
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-disks-'))
  const disk = await makeDisk(join(folder.path, 'nvme'))
  const card = await makeDisk(join(folder.path, 'card'))
  await using stick = await makeUsbStick({ iso: board.path, gigabytes: 2, files: [tiny] })
  const options = { firmware: 'uefi', stick: stick.path, disk, card } as const
  await using machine = await startArmMachine(options)
  await machine.waitFor(/flasher: the system is on \/dev\/sda2/, PATIENCE)
  await machine.waitFor(/images: \/dev\/sda3 has grown/, PATIENCE)
  await machine.waitFor(/Images in: \/var\/lib\/flasher\/images/, PATIENCE)
  await machine.waitFor(/tiny\.img/, PATIENCE)
  const { room, said } = await stick.check()
  assert.ok(room > 1.5 * 2 ** 30, String(room))
  assert.match(said, 'clean. directories 1, files 1')
  machine.send('1\r')
  const listed = await machine.waitFor(ALL_DISKS, PATIENCE)
  assert.is(findRow(listed, '/dev/mmcblk0').sign, ' ')
  // The stick is on the list, too, and cannot be chosen.
  const { sign, number } = findRow(listed, '/dev/sda')
  assert.is(sign, '-')
  machine.send(`${number}\r`)
  await machine.waitFor(
    new RegExp(`Number ${number} cannot be chosen: this system runs from it`),
    PATIENCE,
  )
  machine.send(`${findRow(listed, '/dev/nvme0n1').number}\r`)
  await machine.waitFor(/Everything on \/dev\/nvme0n1 will be lost/, PATIENCE)
  await machine.waitFor(/ERASE AND FLASH/, PATIENCE)
  machine.send('y')
  const end = await machine.waitFor(/Done\.|The flash failed\.|Cancelled\./, PATIENCE)
  if (!end.endsWith('Done.')) throw new Error(`see ${machine.keepLog()}`)
  await using written = await open(disk)
  const { length } = tiny.content
  const { buffer } = await written.read(Buffer.alloc(length), 0, length, 0)
  assert.ok(buffer.equals(tiny.content))
})

run('UEFI with Secure Boot, 512 MiB of memory: up to the wizard', async () => {
  await using board = await unpackBoard()
  await using stick = await makeUsbStick({ iso: board.path, gigabytes: 1, files: [tiny] })
  const options = { firmware: 'secure', stick: stick.path, megabytes: 512 } as const
  await using machine = await startArmMachine(options)
  const kernel = await machine.waitFor(/flasher: boot system/, PATIENCE)
  if (!LOCKED_DOWN.test(kernel)) throw new Error(`see ${machine.keepLog()}`)
  await machine.waitFor(/tiny\.img/, PATIENCE)
})

test.run()
