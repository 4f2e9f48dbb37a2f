/** The growth of the images partition, with the power cut at every moment of it. */
import { execFileSync } from 'node:child_process'
import { mkdtempDisposableSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { IMAGES_PARTITION } from '#appliance/contract.ts'
import type { VolumeFile } from '#build/exfat/volume.ts'
import type { DiskWrite } from '#engine/disk/rules/tables/exfat-growth.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import { growWhole, planNextWrites } from '#test/support/disk/growing.ts'
import type { SparseDisk } from '#test/support/disk/sparse-disk.ts'
import { makeStick } from '#test/support/vm/stick.ts'

const test = suite('images cuts')
const SECTOR = 512
const GIB = 2 ** 30
const { name: NAME } = IMAGES_PARTITION

/** Fifteen: none, short ones, and ones that take several clusters; names of one entry and of many. */
const files: readonly VolumeFile[] = Array.from({ length: 15 }, (_, n) => ({
  name: `${'an image '.repeat(n)}№ ${n}.img.zst`,
  content: makeNoise(n * n * 2000),
}))

for (const [title, onIt] of [
  ['with files', files],
  ['empty', []],
] as const) {
  test(`${title}: a cut before, after or within any write leaves all whole`, () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-cuts-'))
    const { disk: fresh } = makeStick({ diskBytes: 4 * GIB, files: onIt })
    const whole = fresh.copy()
    const writes = growWhole(whole)
    const end = whole.print()
    let cuts = 0
    for (const cut of listCuts(fresh, writes)) {
      cuts += 1
      checkReadable(cut.disk, folder.path, onIt.length, cut.what)
      checkRest(cut.disk, end, cut.what)
    }
    assert.ok(cuts >= 40, `${cuts} cuts`)
    checkReadable(whole, folder.path, onIt.length, 'all done')
  })
}

interface Cut {
  readonly what: string
  readonly disk: SparseDisk
}

/**
 * Lists what a power cut leaves: before each write, after the last, and within each one, with a part
 * from either end on the medium.
 */
function* listCuts(fresh: SparseDisk, writes: readonly DiskWrite[]): Generator<Cut> {
  const done = fresh.copy()
  for (const { what, offset, bytes } of writes) {
    yield { what: `before: ${what}`, disk: done.copy() }
    const sectors = bytes.length / SECTOR
    for (let torn = 1; torn < sectors; torn += torn < 2 ? 1 : 6) {
      const front = done.copy()
      front.write(offset, bytes.subarray(0, torn * SECTOR))
      yield { what: `${torn} sectors of: ${what}`, disk: front }
      const back = done.copy()
      back.write(offset + bytes.length - torn * SECTOR, bytes.subarray(-torn * SECTOR))
      yield { what: `last ${torn} sectors of: ${what}`, disk: back }
    }
    done.write(offset, bytes)
  }
  yield { what: 'after the last', disk: done }
}

/** As a system finds it that knows nothing of the growth: a whole table, and a clean volume in it. */
function checkReadable(disk: SparseDisk, folder: string, count: number, what: string) {
  const [whole, volume] = [join(folder, 'disk'), join(folder, 'volume')]
  disk.save(whole, 0, disk.bytes)
  const columns = ['--raw', '--noheadings', '--bytes', '--output', 'START,SIZE,NAME']
  const rows = run('partx', [...columns, whole])
    .trim()
    .split('\n')
  const found = rows.map((row) => row.split(' ')).find(([, , name]) => name === NAME)
  assert.is(rows.length, 3, what)
  disk.save(volume, Number(found?.[0]) * SECTOR, Number(found?.[1]))
  const said = run('fsck.exfat', ['-n', volume])
  assert.match(said, `clean. directories 1, files ${count}`, what)
}

const run = (tool: string, args: readonly string[]) =>
  execFileSync(tool, args, { encoding: 'utf8', stdio: 'pipe' })

/** The next run does what is left, to the very same bytes, and the one after that does nothing. */
function checkRest(disk: SparseDisk, end: ReadonlyMap<number, string>, what: string) {
  growWhole(disk)
  assert.ok(isSame(disk.print(), end), what)
  assert.equal(planNextWrites(disk), [], what)
}

const isSame = (one: ReadonlyMap<number, string>, two: ReadonlyMap<number, string>) =>
  one.size === two.size && [...one].every(([sector, text]) => two.get(sector) === text)

test('files, their chains and their entries are never written', () => {
  const { disk, volumeOffset } = makeStick({ diskBytes: 4 * GIB, files })
  const before = disk.copy()
  const [fat, heap, end] = [2048, 18_944, 65_536].map((sector) => volumeOffset + sector * SECTOR)
  const within = growWhole(disk).filter(
    ({ offset }) => offset >= Number(fat) && offset < Number(end),
  )
  // The root directory's first sector alone, of which the bitmap's length changes.
  assert.equal(
    within.map(({ what, bytes }) => [what, bytes.length]),
    [['length of the bitmap', SECTOR]],
  )
  const [root, rest] = [Number(heap) + 2 * 2 ** 18, Number(heap) + 3 * 2 ** 18]
  const entries = (of: SparseDisk) => of.read(root, SECTOR).toString('hex', 64)
  assert.is(entries(disk), entries(before))
  assert.ok(disk.read(rest, 2 ** 23).equals(before.read(rest, 2 ** 23)))
})

test.run()
