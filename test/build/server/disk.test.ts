/** The disk of the server appliance: its partitions, its boot sector, and what its boot loader starts. */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  mkdtempSync,
  rmSync,
  truncateSync,
  writeFileSync,
  openSync,
  writeSync,
  closeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { planBios } from '#build/server/bios.ts'
import { ARCHS, type Arch } from '#appliance/appliance.ts'
import { makeEfiVolume } from '#build/server/efi.ts'
import { renderGrubEnvironment, renderServerGrub } from '#build/server/grub.ts'
import { planServerDisk } from '#build/server/layout.ts'
import { renderProtective } from '#build/gpt/table.ts'
import { makeBoardParts } from '#test/support/boot/board-parts.ts'
import { openPiVolume, readPiStart } from '#test/support/boot/pi-boot.ts'

const test = suite('disk of the server appliance')
const has = (program: string) => spawnSync(program, ['--version']).status === 0
const withSfdisk = has('sfdisk') ? test : test.skip

/** The partitions of an empty disk, as sfdisk reads them. */
function readPartitions(arch: Arch) {
  const folder = mkdtempSync(join(tmpdir(), 'flasher-server-'))
  try {
    const disk = join(folder, 'disk')
    const { sectors, pieces, bios } = planServerDisk('1.2.3', arch)
    const [boot, core] = [Buffer.alloc(512), Buffer.alloc(9000)]
    const first =
      bios === null
        ? renderProtective()
        : planBios({ boot, core, sector: bios.first, sectors: bios.sectors }).first
    writeFileSync(disk, '')
    truncateSync(disk, sectors * 512)
    const file = openSync(disk, 'r+')
    for (const { sector, bytes } of [{ sector: 0, bytes: first }, ...pieces]) {
      writeSync(file, bytes, 0, bytes.length, sector * 512)
    }
    closeSync(file)
    assert.is(spawnSync('sfdisk', ['--verify', disk]).status, 0)
    const said = execFileSync('sfdisk', ['--dump', disk], { encoding: 'utf8' })
    const rows = said.matchAll(/start= *(\d+), size= *(\d+), type=([^,]+),.* name="([^"]*)"/g)
    return [...rows].map(([, start, size, type, name]) => ({
      start: Number(start),
      size: Number(size),
      type,
      name,
    }))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const SLOTS = ['flasher-efi', 'flasher_1.2.3', '_empty', 'flasher-state']

withSfdisk('two slots of one size, and the state last, as sfdisk reads them', () => {
  for (const arch of ARCHS) {
    const rows = readPartitions(arch)
    const names = rows.map(({ name }) => name)
    assert.equal(names, arch === 'x86_64' ? ['flasher-bios', ...SLOTS] : SLOTS)
    const [slot, empty] = rows.slice(-3)
    assert.is(slot?.size, empty?.size)
    assert.is(slot?.type, empty?.type)
    // It fits on a disk or card of 2 GB.
    const end = Math.max(...rows.map(({ start, size }) => start + size))
    assert.ok(end * 512 < 2e9, arch)
  }
})

withSfdisk('the slots of a processor have the type by which systemd knows its root', () => {
  assert.equal(
    ARCHS.map((arch) => readPartitions(arch).at(-3)?.type),
    ['4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709', 'B921B045-1DF0-41C3-AF44-4C6F280D3FAE'],
  )
})

withSfdisk(
  'a Raspberry Pi finds its firmware in the first partition, at a whole erase block',
  () => {
    const [first] = readPartitions('arm64')
    assert.equal([first?.name, (first?.start ?? 1) % 8192], ['flasher-efi', 0])
    // FAT32 has at least 65525 clusters, here of one sector.
    assert.ok((first?.size ?? 0) > 65_525)
  },
)

const withMtools = spawnSync('mformat', ['-V']).error === undefined ? test : test.skip

withMtools('arm64: what starts a Raspberry Pi leads to the loader that UEFI starts', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'flasher-efi-'))
  try {
    makeBoardParts(folder)
    const part = (name: string) => join(folder, name)
    const image = await makeEfiVolume(
      {
        arch: 'arm64',
        packages: part('packages'),
        kernel: part('kernel'),
        initrd: part('initrd'),
        tree: part('tree'),
        uboot: part('uboot'),
        version: '1.2.3',
        epoch: 1_760_000_000,
      },
      { sectors: 2 ** 17, scratch: folder },
    )
    const volume = openPiVolume(image, 0)
    for (const board of ['pi4', 'pi5'] as const) {
      const { settings, kernel } = readPiStart(volume, board)
      assert.equal([settings.get('kernel'), kernel.toString()], ['u-boot.bin', 'uboot'])
      assert.is(settings.get('initramfs'), undefined)
    }
    // U-Boot and UEFI start the first, which starts the second, which reads the third.
    for (const path of ['EFI/BOOT/BOOTAA64.EFI', 'EFI/BOOT/grubaa64.efi']) {
      assert.ok(volume.paths.has(`/${path}`), path)
    }
    const early = volume.read('/boot/grub/arm64-efi/grub.cfg').toString()
    assert.is(early, 'source /boot/grub/grub.cfg\n')
    const menu = volume.read('/boot/grub/grub.cfg').toString()
    assert.match(menu, '  linux /flasher/$slot.vmlinuz flasher.slot=$slot ')
    assert.is(volume.read('/flasher/1.2.3.vmlinuz').toString(), 'kernel')
    assert.is(volume.read('/flasher/1.2.3.initrd').toString(), 'initrd')
    assert.match(volume.read('/boot/grub/grubenv').toString(), '\ngood=1.2.3\n')
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('the boot sector leads to the core, and the core to its own sectors', () => {
  const core = Buffer.alloc(3 * 512 + 1, 7)
  const planned = planBios({ boot: Buffer.alloc(512, 1), core, sector: 2048, sectors: 2048 })
  assert.is(planned.first.readBigUInt64LE(0x5c), 2048n)
  assert.is(planned.first.readUInt16LE(510), 0xaa55)
  assert.is(planned.first[450], 0xee)
  assert.is(planned.core.length, 4 * 512)
  assert.is(planned.core.readBigUInt64LE(500), 2049n)
  assert.is(planned.core.readUInt16LE(508), 3)
  assert.throws(() => planBios({ boot: core, core, sector: 1, sectors: 3 }), /takes 4 sectors/)
})

const withGrub = has('grub-script-check') ? test : test.skip

withGrub('GRUB accepts the configuration', () => {
  const folder = mkdtempSync(join(tmpdir(), 'flasher-grub-'))
  try {
    const file = join(folder, 'grub.cfg')
    for (const arch of ARCHS) {
      writeFileSync(file, renderServerGrub(arch))
      const { status, stderr } = spawnSync('grub-script-check', [file], { encoding: 'utf8' })
      assert.is(status, 0, stderr)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test("GRUB's own variables are left alone", () => {
  for (const name of ['chosen', 'root', 'prefix']) {
    for (const arch of ARCHS) {
      assert.not.match(renderServerGrub(arch), new RegExp(`set ${name}=`), name)
    }
  }
})

test('on arm64 the firmware names the console: boards differ', () => {
  assert.match(renderServerGrub('x86_64'), ' console=tty0 console=ttyS0,115200')
  assert.not.match(renderServerGrub('arm64'), /console=|serial/)
})

test('what the boot loader keeps always has the size that it overwrites in place', () => {
  const text = renderGrubEnvironment({ good: '1.2.3' })
  assert.is(text.length, 1024)
  assert.ok(text.startsWith('# GRUB Environment Block\ngood=1.2.3\n#'))
})

test.run()
