/** The pure parts of the ISO: its partition table, its menu, the file on its images partition. */
import { execFileSync } from 'node:child_process'
import { mkdtempDisposableSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { BOOT_AT, IMAGES_VOLUME } from '#appliance/images-volume.ts'
import { IMAGES_SECTORS, renderImages } from '#build/exfat/images.ts'
import { PARTITION_TYPES, parseSpans, renderTable } from '#build/gpt/table.ts'
import { FILES_MENU, renderEarly, renderMark, renderMenu } from '#build/iso/grub.ts'
import { planHybrid } from '#build/iso/partitions.ts'
import { renderReadme } from '#build/iso/readme.ts'
import { isoStep } from '#build/steps/iso.ts'
import { createSparseDisk } from '#test/support/disk/sparse-disk.ts'

const test = suite('ISO parts')
const SECTOR = 512

/** As xorriso leaves it: a protective MBR, and two partitions of a smaller disk. */
function makeHead(partitions: readonly { firstSector: number; lastSector: number }[]) {
  const disk = createSparseDisk(2 ** 28)
  const mbr = Buffer.alloc(SECTOR)
  mbr.writeUInt8(0xee, 446 + 4)
  mbr.writeUInt32LE(1000, 446 + 12)
  mbr.writeUInt16LE(0xaa55, 510)
  disk.write(0, mbr)
  const named = partitions.map((span) => ({ ...span, name: 'any', type: PARTITION_TYPES.data }))
  const table = renderTable({ id: 'x', diskSectors: 2 ** 19, partitions: named })
  for (const { sector, bytes } of table) disk.write(sector * SECTOR, bytes)
  return disk.read(0, 64 * SECTOR)
}

const run = (tool: string, ...args: string[]) =>
  execFileSync(tool, args, { encoding: 'utf8', stdio: 'pipe' })

const TWO = [
  { firstSector: 64, lastSector: 267_415 },
  { firstSector: 267_416, lastSector: 279_703 },
]

test('three partitions that sgdisk and the kernel’s library approve of', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-iso-'))
  const path = join(folder.path, 'iso')
  const hybrid = planHybrid({ id: 'one', head: makeHead(TWO), imagesSectors: 65_536 })
  const disk = createSparseDisk(hybrid.sectors * SECTOR)
  for (const { sector, bytes } of hybrid.pieces) disk.write(sector * SECTOR, bytes)
  disk.save(path, 0, disk.bytes)
  assert.match(run('sgdisk', '--verify', path), 'No problems found')
  const columns = ['--raw', '--noheadings', '--output', 'START,SECTORS,NAME']
  assert.equal(
    run('partx', ...columns, path)
      .trim()
      .split('\n'),
    ['64 267352 FLASHER_LIVE', '267416 12288 FLASHER_EFI', '280576 65536 FLASHER_IMAGES'],
  )
  assert.is(hybrid.imagesStart % 2048, 0)
  assert.is(disk.read(0, SECTOR).readUInt32LE(446 + 12), 0xffffffff)
})

test('the images partition is 32 MiB when built, and its volume is laid out for 512 GiB', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-iso-'))
  const path = join(folder.path, 'iso')
  const hybrid = planHybrid({ id: 'one', head: makeHead(TWO), imagesSectors: IMAGES_SECTORS })
  const disk = createSparseDisk(hybrid.sectors * SECTOR)
  const start = hybrid.imagesStart * SECTOR
  const volume = renderImages({ version: '1.2.3', epoch: 1_760_000_000 })
  for (const { offset, bytes } of volume) disk.write(start + offset, bytes)
  for (const { sector, bytes } of hybrid.pieces) disk.write(sector * SECTOR, bytes)
  disk.save(path, 0, disk.bytes)
  const size = run('partx', '--raw', '--noheadings', '--bytes', '-n3', '-o', 'SIZE', path).trim()
  assert.is(size, String(32 * 2 ** 20))

  const boot = disk.read(start, SECTOR)
  assert.is(boot.readBigUInt64LE(BOOT_AT.volumeLength) * BigInt(SECTOR), BigInt(32 * 2 ** 20))
  // Four bytes in the FAT for each cluster of 512 GiB, and for the two numbers that no cluster has.
  const clusters = 2 ** 39 / IMAGES_VOLUME.clusterBytes
  assert.ok(boot.readUInt32LE(BOOT_AT.fatLength) * SECTOR >= (clusters + 2) * 4)
  disk.save(path, start, 32 * 2 ** 20)
  assert.match(run('fsck.exfat', '-n', path), 'clean. directories 1, files 1')
})

const render = (id: string) => planHybrid({ id, head: makeHead(TWO), imagesSectors: 65_536 })

test('the same medium has the same GUIDs, another one others', () => {
  assert.equal(render('one'), render('one'))
  assert.not.equal(render('one'), render('two'))
})

test('an ISO of another shape is an error', () => {
  for (const partitions of [
    [],
    TWO.slice(1),
    [...TWO, { firstSector: 300_000, lastSector: 300_001 }],
  ]) {
    const head = makeHead(partitions)
    assert.throws(
      () => planHybrid({ id: 'x', head, imagesSectors: 65_536 }),
      /exactly two partitions/,
    )
  }
  assert.equal(parseSpans(makeHead(TWO)), TWO)
})

test('the menu: three entries of one medium, on screen and serial line', () => {
  const menu = renderMenu({ version: '1.2.3', media: '1.2.3-abc', asks: 'wizard' })
  const entries = menu.split('menuentry').slice(1)
  assert.is(entries.length, 3)
  assert.match(menu, 'menuentry "Flasher 1.2.3" {')
  for (const entry of entries) {
    assert.match(entry, ' flasher.media=1.2.3-abc gpt ')
    assert.match(entry, 'modprobe.blacklist=nouveau,rndis_host')
    assert.match(entry, 'console=tty0 console=ttyS0,115200')
    assert.is(entry.match(/console=ttyS/g)?.length, 1)
  }
  assert.match(entries[1] ?? '', 'flasher.toram=1')
  assert.match(entries[2] ?? '', 'flasher.onfail=shell')
  // A machine without a serial port keeps its screen.
  assert.match(menu, /^if serial .*; then\n(  terminal.*\n){2}fi\n/)
})

test('the stick of the earlier line starts the terminal UI, and the other one does not', () => {
  const args = { version: '1.2.3', media: '1.2.3-abc' }
  const panes = renderMenu({ ...args, asks: 'panes' })
    .split('menuentry')
    .slice(1)
  assert.is(panes.length, 3)
  for (const entry of panes) assert.match(entry, ' flasher.mode=interactive ')
  assert.not.match(renderMenu({ ...args, asks: 'wizard' }), 'flasher.mode')
})

test('only a stick of files has its root verified at each start', () => {
  const args = { version: '1.2.3', media: '1.2.3-abc', asks: 'wizard' } as const
  assert.not.match(renderMenu(args), 'flasher.verify')
  const entries = renderMenu({ ...args, place: FILES_MENU })
    .split('menuentry')
    .slice(1)
  for (const entry of entries) assert.match(entry, ' flasher.verify=1 ')
})

test('GRUB looks for a file that lies on this medium alone', () => {
  const early = renderEarly('1.2.3-abc')
  assert.match(early, `search --file --set=root /${renderMark('1.2.3-abc')}\n`)
  assert.not.match(early, '/.disk/info')
  assert.not.equal(early, renderEarly('1.2.3-def'))
})

test('the file on the images partition is one that Windows shows in lines', () => {
  const text = renderReadme('1.2.3')
  assert.ok(text.split('\n').every((line, at, all) => line.endsWith('\r') || at === all.length - 1))
  assert.match(text, 'Flasher 1.2.3')
})

test('the step depends on all that it puts together', () => {
  const facts = { version: '1.2.3', epoch: 1, level: 'dev' } as const
  const from = { kernel: '@a/k', initrd: '@b/i', squashfs: '@c/s', packages: '@d/root' }
  const step = isoStep({ name: 'iso', arch: 'x86_64', facts, ...from })
  for (const input of Object.values(from)) assert.ok(step.inputs.includes(input))
  assert.match(step.argv.join(' '), '--version 1.2.3 --epoch 1 --out @iso/image.iso')
  assert.equal(step.makes, ['image.iso'])
})

test.run()
