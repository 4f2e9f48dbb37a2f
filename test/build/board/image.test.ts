/** The board image from stand-ins of its parts: partitions as others read them, and what firmware would start. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempDisposableSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderPiCommandLine, UEFI_LOADERS } from '#build/board/firmware.ts'
import { planBoard } from '#build/board/layout.ts'
import { makeBoardParts } from '#test/support/boot/board-parts.ts'
import { openPiVolume, parsePiConfig, readPiBoot } from '#test/support/boot/pi-boot.ts'

const test = suite('board image')
const isThere = ['mformat', 'mke2fs', 'debugfs', 'sfdisk'].every(
  (tool) => spawnSync(tool, ['-V']).error === undefined,
)
const withTools = isThere ? test : test.skip
const SECTOR = 512
const MIB = 2 ** 20

const run = (tool: string, ...args: readonly string[]) =>
  execFileSync(tool, args, { encoding: 'utf8', stdio: 'pipe' })

function build(folder: string): Buffer {
  const out = join(folder, 'image.gz')
  const from = (name: string) => `--${name}=${join(folder, name)}`
  const parts = ['kernel', 'initrd', 'squashfs', 'tree', 'packages'].map(from)
  const facts = ['--version=1.2.3', '--epoch=1760000000', '--level=1']
  const argv = ['build/programs/board.ts', ...parts, ...facts, `--out=${out}`]
  execFileSync(process.execPath, argv, { stdio: 'pipe' })
  return readFileSync(out)
}

withTools('partitions, and what each kind of firmware starts', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-board-'))
  makeBoardParts(folder.path)
  truncateSync(join(folder.path, 'squashfs'), 5 * MIB + 1)
  const packed = build(folder.path)
  const image = join(folder.path, 'image')
  writeFileSync(image, gunzipSync(packed))
  assert.match(run('sfdisk', '--verify', image), 'No errors detected')

  const volume = openPiVolume(image, 4 * MIB)
  for (const board of ['pi4', 'pi5'] as const) {
    const { kernel, initrd, settings, commandLine } = readPiBoot(volume, board)
    assert.equal([kernel.toString(), initrd.toString()], ['kernel', 'initrd'])
    assert.is(settings.get('arm_64bit'), '1')
    const live = join(folder.path, 'live')
    run('dd', 'status=none', 'bs=1M', 'skip=132', 'count=8', `if=${image}`, `of=${live}`)
    run('e2fsck', '-fn', live)
    const id = run('debugfs', '-R', 'cat live/id', live).trim()
    assert.ok(commandLine.includes(` flasher.media=${id} `), commandLine)
    assert.match(run('debugfs', '-R', 'stat live/root.squashfs', live), `Size: ${5 * MIB + 1}`)
  }
  for (const path of Object.keys(UEFI_LOADERS)) assert.ok(volume.paths.has(`/${path}`), path)
  assert.not.ok([...volume.paths].some((path) => /bcm2837|start\.elf/.test(path)))
  const menu = volume.read('/boot/grub/grub.cfg').toString()
  for (const path of ['/vmlinuz', '/initrd']) {
    assert.ok(volume.paths.has(path))
    assert.match(menu, new RegExp(`^  (linux|initrd) ${path}\\b`, 'm'))
  }
  assert.not.match(menu, 'ttyS0')
})

test('the first partition is one that a Raspberry Pi reads, and the images come last', () => {
  const { firmware, live, images, sectors, pieces } = planBoard({ id: 'x', squashfsBytes: 117e6 })
  // FAT32 has at least 65525 clusters, here of one sector.
  assert.ok(firmware.sectors > 65_525)
  for (const { first } of [firmware, live, images]) assert.is((first * SECTOR) % (4 * MIB), 0)
  assert.ok(live.sectors * SECTOR > 117e6 + MIB)
  assert.ok(firmware.first + firmware.sectors <= live.first)
  assert.ok(live.first + live.sectors <= images.first)
  assert.ok(images.first + images.sectors < sectors)
  assert.is(images.sectors * SECTOR, 32 * MIB)
  assert.ok(sectors * SECTOR < 320e6)
  const [protective] = pieces
  assert.is(protective?.bytes[446 + 4], 0xee)
  assert.is(protective?.bytes.readUInt32LE(446 + 12), 0xffffffff)
})

test('another medium has other identifiers', () => {
  const [one, same, another] = ['one', 'one', 'two'].map(
    (id) => planBoard({ id, squashfsBytes: 1 }).pieces,
  )
  assert.equal(one, same)
  assert.not.equal(one, another)
})

test('the command line is one line, and names the medium', () => {
  const line = renderPiCommandLine('1.2.3-abc')
  assert.is(line.split('\n').length, 2)
  assert.match(line, / flasher\.media=1\.2\.3-abc gpt /)
})

test('a section of config.txt counts for its board alone', () => {
  const text = 'a=1\n[pi5]\na=5\n# a=6\n[all]\ninitramfs x followkernel\n'
  assert.is(parsePiConfig(text, 'pi4').get('a'), '1')
  assert.is(parsePiConfig(text, 'pi5').get('a'), '5')
  assert.is(parsePiConfig(text, 'pi5').get('initramfs'), 'x followkernel')
})

test.run()
