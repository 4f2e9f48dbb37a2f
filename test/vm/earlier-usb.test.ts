/** The earlier line's stick: what is on it is listed, it starts by BIOS and UEFI up to the terminal UI, and that flashes a disk. */
import { execFileSync } from 'node:child_process'
import {
  closeSync,
  ftruncateSync,
  mkdtempDisposableSync,
  openSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { tmpdir } from 'node:os'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { packageListOf, stemOf } from '#appliance/assets.ts'
import { makeBytes } from '#test/support/collect.ts'
import { findBuildObstacle, openLiveUsb } from '#test/support/vm/built-images.ts'
import { startUsbMachine } from '#test/support/vm/usb-machine.ts'
import { makeUsbStick } from '#test/support/vm/usb-stick.ts'

const test = suite("the earlier line's stick")
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 300

const execute = (tool: string, ...args: readonly string[]) =>
  execFileSync(tool, args, { encoding: 'utf8', stdio: 'pipe' })

/** What people write to a stick: the file, unpacked. */
function unpack(folder: string, packed: string): string {
  const raw = join(folder, 'stick.img')
  execute('zstd', '--quiet', '--decompress', '--sparse', packed, '-o', raw)
  return raw
}

run('what is in it is listed, with the tools that its commands start', async () => {
  const packed = await openLiveUsb()
  const list = readFileSync(packageListOf(packed.replace(/[^/]+$/, stemOf)), 'utf8')
  const packages = list.split('\n').map((line) => line.split(' ')[0] ?? '')
  for (const name of ['qemu-utils', 'xz-utils', 'zstd', 'bzip2', 'gzip', 'util-linux', 'gdisk']) {
    assert.ok(packages.includes(name), name)
  }
  assert.match(list, /^# Debian packages of the boot loaders$/m)
  const cwd = dirname(packed)
  execFileSync('sha256sum', ['--check', '--quiet', `${packed}.sha256`], { cwd })
})

for (const firmware of ['bios', 'uefi'] as const) {
  run(`${firmware}: an image from the stick onto an NVMe disk, in the terminal UI`, async () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-earlier-usb-'))
    const raw = join(folder.path, 'raw')
    const [image, disk] = [join(folder.path, 'tiny.qcow2'), join(folder.path, 'disk')]
    const content = Buffer.concat([makeBytes(2 ** 20, 7), Buffer.alloc(2 ** 20)])
    // The last bytes of a boot sector: otherwise it would be refused as no disk image.
    content.writeUInt16LE(0xaa55, 510)
    writeFileSync(raw, content)
    execute('qemu-img', 'convert', '-c', '-O', 'qcow2', raw, image)
    const handle = openSync(disk, 'w')
    ftruncateSync(handle, 2 ** 26)
    closeSync(handle)
    await using stick = await makeUsbStick({
      iso: unpack(folder.path, await openLiveUsb()),
      gigabytes: 1,
      files: [{ name: 'tiny.qcow2', content: readFileSync(image) }],
    })
    await using machine = await startUsbMachine({ firmware, medium: { stick: stick.path }, disk })
    await machine.waitFor(/tiny\.qcow2/, PATIENCE)
    await machine.waitFor(/nvme0n1/, PATIENCE)
    // To the disks: the stick cannot be chosen, so the mark is on the other one.
    machine.send('\rf')
    await machine.waitFor(/ERASE AND FLASH/, PATIENCE)
    machine.send('y')
    await machine.waitFor(/The disk is ready/, PATIENCE)
    const written = readFileSync(disk).subarray(0, content.length)
    assert.ok(written.equals(content))
  })
}

test.run()
