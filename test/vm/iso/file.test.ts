/** Our ISO as a file on a stick, as Ventoy and GRUB's loopback start it: found again, images beside it offered. */
import { execFileSync } from 'node:child_process'
import {
  mkdtempDisposableSync,
  openSync,
  closeSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import { PARTITION_TYPES, renderTable } from '#build/gpt/table.ts'
import { findBuildObstacle, openIso } from '#test/support/vm/built-images.ts'
import { startQemu } from '#test/support/vm/qemu.ts'

const test = suite('ISO file')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 300
const MIB = 2048
const STICK = { sectors: 1024 * MIB, firstSector: MIB, lastSector: 1023 * MIB - 1 }

const call = (tool: string, ...args: readonly string[]) =>
  execFileSync(tool, args, { encoding: 'utf8', stdio: 'pipe' })

/** One FAT32 partition labelled `Ventoy`, with the ISO in a folder and an image in ours or in the root. */
function makeVentoyStick(folder: string, iso: string, place: string): string {
  const stick = join(folder, 'stick')
  call('truncate', '--size', String(STICK.sectors * 512), stick)
  const table = renderTable({
    id: 'ventoy',
    diskSectors: STICK.sectors,
    partitions: [{ ...STICK, name: 'Ventoy', type: PARTITION_TYPES.data }],
  })
  const file = openSync(stick, 'r+')
  for (const { sector, bytes } of table) writeSync(file, bytes, 0, bytes.length, sector * 512)
  closeSync(file)
  // The kernel takes a table only where the first sector says that there is one.
  call('sgdisk', '--move-second-header', stick)
  const at = `${stick}@@${STICK.firstSector * 512}`
  const size = String(STICK.lastSector + 1 - STICK.firstSector)
  call('mformat', '-i', at, '-F', '-v', 'Ventoy', '-T', size, '-h', '64', '-s', '32', '::')
  call('mmd', '-i', at, '::/isos', ...(place === '' ? [] : [`::/${place}`]))
  call('mcopy', '-i', at, iso, '::/isos/flasher.iso')
  const image = join(folder, 'beside.img')
  writeFileSync(image, Buffer.alloc(2 ** 20, 7))
  call('mcopy', '-i', at, image, `::/${place}`)
  return stick
}

for (const place of ['flasher-images', '']) {
  run(`an image in ${place === '' ? 'the root' : place} is offered`, async () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-isofile-'))
    const iso = await openIso()
    const out = (name: string) => join(folder.path, name)
    for (const name of ['vmlinuz', 'initrd', 'id']) {
      call('xorriso', '-osirrox', 'on', '-indev', iso, '-extract', `/live/${name}`, out(name))
    }
    const stick = makeVentoyStick(folder.path, iso, place)
    const media = readFileSync(out('id'), 'utf8').trim()
    const drive = `if=none,id=stick,format=raw,readonly=on,file=${stick}`
    await using machine = await startQemu({
      megabytes: 1024,
      args: [
        ['-kernel', out('vmlinuz'), '-initrd', out('initrd')],
        ['-append', `console=ttyS0,115200 flasher.media=${media}`],
        ['-device', 'virtio-rng-pci', '-device', 'qemu-xhci', '-drive', drive],
        ['-device', 'usb-storage,drive=stick,removable=on'],
      ].flat(),
    })
    await machine.waitFor(
      /the system is on \/dev\/sda1, in the file \/isos\/flasher\.iso/,
      PATIENCE,
    )
    await machine.waitFor(/images: those on \/dev\/sda1 are offered/, PATIENCE)
    await machine.waitFor(/beside\.img/, PATIENCE)
  })
}

test.run()
