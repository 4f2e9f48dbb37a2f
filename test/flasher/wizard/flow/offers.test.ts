import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { CatalogImage } from '#engine/catalog/rules/catalog-source.ts'
import type { DiskUse, SurveyedDisk } from '#engine/disk/rules/disk.ts'
import { offerDisk, renderLosses } from '#flasher/text/rules/disk-offer.ts'
import type { ImageFacts } from '#engine/image/rules/image.ts'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import { renderDiskRow } from '#flasher/wizard/screens/choose-disk.ts'
import {
  imageColumns,
  listImageOffers,
  renderImageRow,
} from '#flasher/wizard/screens/choose-image.ts'

import { layOut } from '#kit/terminal/text/columns.ts'

const test = suite('wizard offers')

const LOCAL = {
  name: 'debian-13-amd64.img.zst',
  path: '/images/debian-13-amd64.img.zst',
  format: 'img.zst',
  size_bytes: 412_000_000,
} as const
const REMOTE: CatalogImage = {
  name: 'Fedora',
  location: 'https://example.org/fedora.img.xz',
  src: 'https://example.org/fedora.img.xz',
  ref: 'f'.repeat(64),
  format: 'img.xz',
  arch: 'arm64',
  sha256: 'ab'.repeat(32),
  sizeBytes: 700_000_000,
  description: null,
  obstacle: null,
}

test('images of this machine come first, and one that is in the catalog too is offered once', () => {
  const ref = refOf(`file://${LOCAL.path}`)
  assert.ok(ref.ok)
  const twin = { ...REMOTE, name: 'twin', ref: ref.value }
  const samePath = { ...REMOTE, name: 'same path', ref: null, location: LOCAL.path }
  const nameless = { ...REMOTE, name: 'without identity', ref: null }
  const offers = listImageOffers([LOCAL], [REMOTE, twin, REMOTE, samePath, nameless, nameless])
  assert.equal(
    offers.map(({ choice, from }) => [choice.name, from]),
    [
      [LOCAL.name, 'local'],
      ['Fedora', 'remote'],
      ['without identity', 'remote'],
      ['without identity', 'remote'],
    ],
  )
})
test('no digest that a catalog names gets lost with a double', () => {
  const unpinned = { ...REMOTE, name: 'rolling', sha256: null }
  const here = { ...REMOTE, ref: null, location: LOCAL.path, src: `file://${LOCAL.path}` }
  const offers = listImageOffers([LOCAL], [unpinned, REMOTE, REMOTE, here])
  assert.equal(
    offers.map(({ choice }) => [choice.name, choice.sha256]),
    [
      [LOCAL.name, REMOTE.sha256],
      ['rolling', null],
      ['Fedora', REMOTE.sha256],
    ],
  )
})
test('a row says all that is known, and why an image cannot be flashed', () => {
  const [local, remote, tarball] = listImageOffers(
    [LOCAL],
    [REMOTE, { ...REMOTE, ref: null, format: null, obstacle: 'a tarball: extract it first' }],
  ).map(renderImageRow)
  assert.equal(local, {
    cells: [LOCAL.name, '412 MB', 'img.zst', 'x86_64', 'local', ''],
    refusal: null,
  })
  assert.equal(remote?.cells, ['Fedora', '700 MB', 'img.xz', 'arm64', 'remote', 'abababababab'])
  assert.equal(
    [tarball?.cells.at(-1), tarball?.refusal],
    ['(a tarball: extract it first)', 'a tarball: extract it first'],
  )
})
const telling = (...given: readonly (readonly string[])[]) =>
  imageColumns(given.map((cells) => ({ cells, refusal: null }))).flatMap(({ title, tells }) =>
    tells === true ? [title] : [],
  )
test('the column that tells images of one name apart is the last to be shortened, as the name is', () => {
  const DEBIAN = ['Debian', '412 MB', 'img.zst', 'x86_64', 'remote', 'abababababab']
  const other = (index: number) => DEBIAN.with(index, 'another')
  assert.equal(telling(DEBIAN, other(0)), ['Name'])
  assert.equal(telling(DEBIAN, other(3)), ['Name', 'Arch'])
  assert.equal(telling(DEBIAN, other(5)), ['Name', 'SHA-256'])
  assert.equal(telling(DEBIAN, other(3).with(5, 'x')), ['Name', 'Arch'])
  const rows = [DEBIAN, other(3)].map((cells) => ({ cells, refusal: null }))
  const columns = imageColumns(rows)
  const { lines } = layOut(
    columns,
    rows.map(({ cells }) => cells),
    20,
    true,
  )
  assert.equal(lines, ['Debian  x86_64', 'Debian  another'])
})
test('names from outside cannot move the cursor', () => {
  const [offer] = listImageOffers([], [{ ...REMOTE, name: 'a\u001b[2Jb\u202e' }])
  assert.ok(offer !== undefined)
  assert.is(renderImageRow(offer).cells[0], 'a\\x1b[2Jb\\u202e')
})

const GB = 1e9
const diskWith = (
  uses: readonly DiskUse[],
  more: Partial<SurveyedDisk['device']> = {},
): SurveyedDisk => ({
  path: '/dev/sda',
  removable: false,
  device: {
    node: '/dev/sda',
    type: 'disk',
    sectorBytes: 512,
    readonly: false,
    vendor: 'ATA',
    model: 'Samsung SSD 980',
    tran: 'sata',
    identity: { serial: 'S5GX', wwn: null, sizeBytes: 500 * GB, diskseq: 1 },
    zeros: { loop: null, writeZeroesMaxBytes: 0, discardMaxBytes: 0 },
    uses,
    ...more,
  },
  parts: [
    { device: '/dev/sda1', sizeBytes: GB / 2, fstype: 'vfat', label: 'ESP', partlabel: 'EFI' },
    { device: '/dev/sda2', sizeBytes: 499 * GB, fstype: 'ext4', label: 'root', partlabel: 'root' },
    { device: '/dev/sda3', sizeBytes: 1024, fstype: null, label: null, partlabel: null },
  ],
})
const IMAGE: ImageFacts = {
  name: 'big.img',
  path: null,
  url: null,
  format: 'img',
  sizeBytes: null,
  virtual: { kind: 'exact', bytes: 600 * GB },
}

test('a disk that can be chosen shows what is on it', () => {
  assert.equal(renderDiskRow(offerDisk(diskWith([]), null)), {
    cells: ['/dev/sda', '500 GB', 'ATA Samsung SSD 980', 'S5GX', 'sata', 'ESP, root, ?'],
    refusal: null,
  })
  assert.equal(renderLosses(diskWith([]).parts), [
    ['/dev/sda1', '500 MB', 'vfat', 'ESP / EFI'],
    ['/dev/sda2', '499 GB', 'ext4', 'root'],
    ['/dev/sda3', '1.02 kB', 'unknown', ''],
  ])
})
test('partitions of which nothing is known yet are counted', () => {
  const disk = diskWith([])
  const bare = disk.parts.map((part) => ({ ...part, label: null, partlabel: null, fstype: null }))
  const say = (count: number) =>
    renderDiskRow(offerDisk({ ...disk, parts: bare.slice(0, count) }, null)).cells.at(-1)
  assert.equal([0, 1, 3].map(say), ['nothing known', '1 partition', '3 partitions'])
})
test('a disk that cannot be chosen says why, the most telling reason first', () => {
  const mounted = { kind: 'mounted', device: '/dev/sda2', at: '/' } as const
  const swap = { kind: 'swap', device: '/dev/sda3' } as const
  const system = { kind: 'running-system', device: '/dev/sda' } as const
  const empty = { serial: null, wwn: null, sizeBytes: 0, diskseq: null }
  const rows: readonly (readonly [SurveyedDisk, ImageFacts | null, string | null])[] = [
    [diskWith([]), null, null],
    [diskWith([mounted, system]), null, 'holds this system'],
    [diskWith([mounted, { ...mounted, at: '/boot' }]), null, 'mounted on /, /boot'],
    [diskWith([swap]), null, '/dev/sda3 is swap space in use'],
    [diskWith([], { readonly: true }), null, 'read-only'],
    [diskWith([]), IMAGE, 'too small: the image needs 600 GB'],
    [
      diskWith([]),
      { ...IMAGE, format: 'img.gz', virtual: { kind: 'at-least', bytes: 600e9 } },
      'too small: its last bytes say that the image needs 600 GB; cut off? compare its checksum',
    ],
    [diskWith([], { readonly: true }), IMAGE, 'read-only, too small: the image needs 600 GB'],
    [diskWith([], { identity: empty }), null, 'no medium in it'],
    // What is wrong with the image is said of the image.
    [diskWith([]), { ...IMAGE, format: null, virtual: { kind: 'unknown' } }, null],
  ]
  for (const [disk, image, refusal] of rows) assert.is(offerDisk(disk, image).refusal, refusal)
})
test.run()
