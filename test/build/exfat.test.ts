/** The images volume as the builder writes it, read back as others would. */
import { execFileSync } from 'node:child_process'
import { mkdtempDisposableSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { countClusters, IMAGES_VOLUME, sectorOf } from '#appliance/images-volume.ts'
import { renderFileEntries } from '#build/exfat/directory.ts'
import { capitalOf, renderUpcase } from '#build/exfat/upcase.ts'
import { renderVolume, type VolumeFile } from '#build/exfat/volume.ts'
import { createSparseDisk } from '#test/support/disk/sparse-disk.ts'

const test = suite('exFAT volume')
const SECTORS = 65_536
const plan = { sectors: SECTORS, label: 'FLASHER_IMG', serial: 0x464c4153, time: new Date(0) }
const file = (name: string, bytes: number): VolumeFile => ({
  name,
  content: Buffer.alloc(bytes, name),
})
const entry = { bytes: 1, firstCluster: 5, time: new Date(0) }

test('there is room for half a tebibyte before the first file, and all of it is in its place', () => {
  const { mostClusters, fatStart, fatSectors, heapStart, sectorBytes } = IMAGES_VOLUME
  assert.ok(fatSectors * sectorBytes >= (mostClusters + 2) * 4)
  assert.ok(fatStart + fatSectors <= heapStart)
  assert.is(mostClusters / 8, IMAGES_VOLUME.clusterBytes)
  assert.is((mostClusters * IMAGES_VOLUME.clusterBytes) / 2 ** 30, 512)
  assert.is(countClusters(SECTORS), 91)
  assert.is(sectorOf(2), heapStart)
})

test('the same plan is the same bytes', () => {
  const wanted = { ...plan, files: [file('a.img', 300_000), file('b', 1)] }
  assert.equal(renderVolume(wanted), renderVolume(wanted))
})

test('any files: fsck.exfat finds nothing to say', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-exfat-'))
  const path = join(folder.path, 'volume')
  const name = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 80 })
    .filter(
      (text) => !/["*/:<>?\\|\p{Cc}]/u.test(text) && !/^\.+$/.test(text) && text.trim() === text,
    )
  const names = fc.uniqueArray(name, { maxLength: 20, selector: (text) => text.toUpperCase() })
  const check = (found: readonly string[], seed: number) => {
    const files = found.map((each, at) => file(each, (seed * (at + 3)) % 900_000))
    const disk = createSparseDisk(SECTORS * 512)
    for (const { offset, bytes } of renderVolume({ ...plan, files })) disk.write(offset, bytes)
    disk.save(path, 0, disk.bytes)
    const said = execFileSync('fsck.exfat', ['-n', path], { encoding: 'utf8', stdio: 'pipe' })
    assert.match(said, `clean. directories 1, files ${files.length}`)
  }
  fc.assert(fc.property(names, fc.nat(900_000), check), { numRuns: 25 })
})

test('what does not fit is an error, not half a volume', () => {
  const tooLarge = [file('large.img', 23 * 2 ** 20)]
  assert.throws(() => renderVolume({ ...plan, files: tooLarge }), /need 9\d clusters.* has 91/)
})

test('names that a file cannot have', () => {
  for (const name of ['', 'a/b', 'a:b', 'a"b', 'a\nb', 'x'.repeat(256)]) {
    assert.throws(() => renderFileEntries({ ...entry, name }), /cannot be a file's name/)
  }
  assert.is(renderFileEntries({ ...entry, name: 'x'.repeat(255) }).length, 19 * 32)
})

test('capitals: those of ASCII and Latin-1, every other character its own', () => {
  const capitals = [...'aZ09äößÿ÷×éж'].map((text) =>
    String.fromCodePoint(capitalOf(text.codePointAt(0) ?? 0)),
  )
  assert.is(capitals.join(''), 'AZ09ÄÖßŸ÷×Éж')
  const table = renderUpcase()
  assert.is(table.readUInt16LE(table.length - 4), 0xffff)
  assert.is(table.readUInt16LE(table.length - 2), 0x10000 - 256)
})

test.run()
