/** The board image starts UEFI machines for arm64, up to the wizard; and a Raspberry Pi finds in it what it looks for. */
import { createReadStream, createWriteStream, closeSync, ftruncateSync, openSync } from 'node:fs'
import { mkdtemp, mkdtempDisposable, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip, gunzipSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openPiVolume, PI_BOARDS, readPiBoot } from '../support/boot/pi-boot.ts'
import { startArmMachine } from '../support/vm/arm64-machine.ts'
import { findBuildObstacle, openBoard } from '../support/vm/built-images.ts'
import { LOCKED_DOWN } from '../support/vm/secure-firmware.ts'
import { makeUsbStick } from '../support/vm/usb-stick.ts'

const test = suite('board image')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 600
const FIRMWARE_OFFSET = 4 * 2 ** 20
const BOTH_DISKS = /\d {2}\/dev\/nvme0n1[^]*\/dev\/sda|\/dev\/sda[^]*\d {2}\/dev\/nvme0n1/
const tiny = { name: 'tiny.img', content: Buffer.alloc(2 ** 20, 7) }

/** Removed at the end. */
async function unpackBoard() {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-board-'))
  const path = join(folder, 'board.img')
  await pipeline(createReadStream(await openBoard()), createGunzip(), createWriteStream(path))
  return { path, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) }
}

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
    assert.is(initrd.readUInt32LE(0), 0xfd2fb528)
    assert.match(commandLine, / flasher\.media=\S+ gpt /)
  }
  // What a comment of config.txt offers must be there as well.
  const [, offered] = /^#device_tree=(.+)$/m.exec(volume.read('/config.txt').toString()) ?? []
  assert.ok(volume.paths.has(`/${offered}`), offered)
})

run('UEFI: grown, its image offered, another disk as well, and not the stick itself', async () => {
  await using board = await unpackBoard()
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-nvme-'))
  const disk = join(folder.path, 'disk')
  const handle = openSync(disk, 'w')
  ftruncateSync(handle, 2 ** 30)
  closeSync(handle)
  await using stick = await makeUsbStick({ iso: board.path, gigabytes: 2, files: [tiny] })
  await using machine = await startArmMachine({ firmware: 'uefi', stick: stick.path, disk })
  await machine.waitFor(/flasher: the system is on \/dev\/sda2/, PATIENCE)
  await machine.waitFor(/images: \/dev\/sda3 has grown/, PATIENCE)
  await machine.waitFor(/image_root: \/var\/lib\/flasher\/images/, PATIENCE)
  await machine.waitFor(/tiny\.img/, PATIENCE)
  machine.send('1\r')
  // The stick is on the list, too, without a number; in whatever order.
  const listed = await machine.waitFor(BOTH_DISKS, PATIENCE)
  assert.not.match(listed, /\d {2}\/dev\/sda/)
  assert.match((await stick.check()).said, 'clean. directories 1, files 1')
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
