import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { CatalogImage } from '#engine/catalog/rules/catalog-source.ts'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import type { DiskUse, SurveyedDisk } from '#engine/disk/rules/disk.ts'
import type { FlashOutcome } from '#engine/flash/rules/run-report.ts'
import type { ImageFacts } from '#engine/image/rules/image.ts'
import type { ChosenImage, DiskChoice } from '#flasher/order/rules/flash-choice.ts'
import { offerDisk, renderLosses } from '#flasher/text/rules/disk-offer.ts'
import {
  choiceOf,
  next,
  type NextScreen,
  openState,
  type ScreenName,
  SCREENS,
  stepsOf,
  type WizardState,
  type WizardStep,
} from '#flasher/wizard/flow/flow.ts'
import { createDiskMenu, renderDiskRow } from '#flasher/wizard/screens/choose-disk.ts'
import {
  imageColumns,
  listImageOffers,
  renderImageRow,
  createImageMenu,
} from '#flasher/wizard/screens/choose-image.ts'
import { decideAnswer, UNTOUCHED, type Menu } from '#kit/terminal/prompt/menu.ts'
import { layOut } from '#kit/terminal/text/columns.ts'

const test = suite('wizard flow')

const IMAGE: ChosenImage = {
  name: 'debian.img',
  location: '/images/debian.img',
  format: 'img',
  sizeBytes: 5,
  sha256: null,
  ref: null,
}
const DISK: DiskChoice = {
  path: '/dev/sda',
  identity: { serial: 'S1', wwn: null, sizeBytes: 500, diskseq: 7 },
  words: 'Samsung, serial S1, 500 B',
}
const FAILED: FlashOutcome = {
  kind: 'failed',
  code: 'write-failed',
  reason: 'the disk does not take it',
  hint: null,
  leaves: 'nothing',
}
const START = openState({
  screen: 'catalog',
  catalog: null,
  notice: 'the server does not answer',
  identity: { mac: null, server: null, address: null },
})
const go = (steps: readonly WizardStep[], from: WizardState = START) =>
  steps.reduce<NextScreen>(
    (state, step) => (typeof state === 'string' ? state : next(state, step)),
    from,
  )
const screenOf = (state: NextScreen) => (typeof state === 'string' ? state : state.screen)

const noticeOf = (state: NextScreen) => (typeof state === 'string' ? null : state.notice)

const WAY: readonly WizardStep[] = [
  { step: 'source', source: 'http://lab/catalog.toml' },
  { step: 'image', image: IMAGE },
  { step: 'disks', disks: [DISK] },
  { step: 'flash', template: null },
]

test('the straight way: catalog, image, disk, confirm, flash', () => {
  const screens = WAY.map((_, index) => screenOf(go(WAY.slice(0, index + 1))))
  assert.equal(screens, ['image', 'disk', 'confirm', 'flash'])
})
test('back leads one step back, from a flash that ended to the disks, with the same image', () => {
  const rows: readonly (readonly [readonly WizardStep[], string])[] = [
    [WAY.slice(0, 1), 'catalog'],
    [WAY.slice(0, 2), 'image'],
    [WAY.slice(0, 3), 'disk'],
    [[...WAY, { step: 'ended', end: FAILED, notice: null, bootEntry: null }], 'disk'],
    [[{ step: 'ask-source' }], 'catalog'],
    [[], 'catalog'],
  ]
  for (const [steps, screen] of rows) {
    assert.is(screenOf(go([...steps, { step: 'back' }])), screen)
  }
  const after = go([
    ...WAY,
    { step: 'ended', end: FAILED, notice: null, bootEntry: null },
    { step: 'back' },
  ])
  assert.ok(typeof after !== 'string')
  assert.equal([after.image, after.disks, after.end], [IMAGE, [], null])
})
test('a reason stays until the operator goes on; looking again is not going on', () => {
  assert.is(noticeOf(go([{ step: 'refresh' }])), START.notice)
  assert.is(noticeOf(go([{ step: 'ask-source' }])), null)
  const told = go([
    ...WAY,
    { step: 'ended', end: FAILED, notice: 'the server was not told', bootEntry: null },
  ])
  assert.equal([screenOf(told), noticeOf(told)], ['failed', 'the server was not told'])
})
test('quit and reboot end it anywhere', () => {
  for (const step of ['quit', 'reboot'] as const) assert.is(go([...WAY, { step }]), step)
})
test('only what is chosen is flashed', () => {
  assert.is(choiceOf(START), null)
  const chosen = go(WAY)
  assert.ok(typeof chosen !== 'string')
  const choice = {
    image: IMAGE,
    disk: '/dev/sda',
    identity: DISK.identity,
    unattended: false,
  }
  assert.equal(choiceOf(chosen), [choice])
  const other = { ...DISK, path: '/dev/sdb' }
  const both = next(chosen, { step: 'disks', disks: [DISK, other] })
  assert.ok(typeof both !== 'string')
  assert.equal(choiceOf(both), [choice, { ...choice, disk: '/dev/sdb' }])
})
test('every screen belongs to a step that the header counts', () => {
  const screens = Object.keys(SCREENS).filter((name): name is ScreenName => name in SCREENS)
  for (const screen of screens) assert.ok(stepsOf(screen).includes(SCREENS[screen].step))
})
test('whatever is pressed, nothing is chosen on a screen that comes before the choice', () => {
  const steps = fc.constantFrom<WizardStep>(
    ...WAY,
    { step: 'back' },
    { step: 'refresh' },
    { step: 'ask-source' },
    { step: 'ended', end: FAILED, notice: null, bootEntry: null },
  )
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 12 }), (taken) => {
      const state = go(taken)
      if (typeof state === 'string') return
      if (['catalog', 'image'].includes(state.screen)) assert.is(state.image, null)
      if (['catalog', 'image', 'disk'].includes(state.screen)) assert.equal(state.disks, [])
    }),
  )
})
test('what became of the boot entry stays on the screen after the flash, and no longer', () => {
  const bootEntry = 'UEFI: the firmware boots it once, on the next boot (Boot0003).'
  const failed = go([...WAY, { step: 'ended', end: FAILED, notice: null, bootEntry }])
  assert.ok(typeof failed !== 'string')
  assert.is(failed.bootEntry, bootEntry)
  const back = go([
    ...WAY,
    { step: 'ended', end: FAILED, notice: null, bootEntry },
    { step: 'back' },
  ])
  assert.ok(typeof back !== 'string')
  assert.is(back.bootEntry, null)
})

const FILE = { kind: 'file', path: '/images/a.img.zst' } as const
const UPLOAD = {
  kind: 'upload',
  base: 'http://c/captures',
  name: 'a.img.zst',
  token: null,
} as const
const CAPTURE_WAY: readonly WizardStep[] = [
  { step: 'capture' },
  { step: 'capture-disk', disk: DISK, name: 'a.img.zst' },
  { step: 'capture-destination', destination: FILE },
  { step: 'captured', end: { kind: 'cancelled', reason: 'cancelled', hint: null } },
]

test('a capture: disk, destination, confirm, end; a token only for an upload', () => {
  const screens = CAPTURE_WAY.map((_, index) => screenOf(go(CAPTURE_WAY.slice(0, index + 1))))
  assert.equal(screens, [
    'capture-disk',
    'capture-destination',
    'capture-confirm',
    'capture-failed',
  ])
  const asked = go([
    ...CAPTURE_WAY.slice(0, 2),
    { step: 'capture-destination', destination: UPLOAD },
  ])
  assert.is(screenOf(asked), 'capture-token')
  const typed = { step: 'capture-destination', destination: { ...UPLOAD, token: 'x' } } as const
  assert.ok(typeof asked !== 'string')
  assert.is(screenOf(next(asked, typed)), 'capture-confirm')
  const end = { kind: 'done', storedBytes: 1, imageBytes: 2, sha256: '', seconds: 1 } as const
  const done = { step: 'captured', end: { ...end, identity: { kind: 'absent' } } } as const
  assert.is(screenOf(go([...CAPTURE_WAY.slice(0, 3), done])), 'capture-done')
})
test('back from a capture leads to the screen where it began, and nothing of it is left', () => {
  const back = { step: 'back' } as const
  const image = go([{ step: 'source', source: null }, { step: 'capture' }, back])
  assert.ok(typeof image !== 'string')
  assert.equal([image.screen, image.capture], ['image', null])
  const steps = [...CAPTURE_WAY, back, back, back]
  const screens = [1, 2, 3].map((count) => screenOf(go(steps.slice(0, 4 + count))))
  assert.equal(screens, ['capture-confirm', 'capture-destination', 'capture-disk'])
  const disks = go(steps)
  assert.ok(typeof disks !== 'string')
  assert.equal(disks.disks, [])
  const catalog = next(disks, back)
  assert.ok(typeof catalog !== 'string')
  assert.equal([catalog.screen, catalog.capture], ['catalog', null])
})

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
const OFFERED: ImageFacts = {
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
    [diskWith([mounted, system]), null, 'this system runs from it'],
    [diskWith([mounted, { ...mounted, at: '/boot' }]), null, 'mounted on /, /boot'],
    [diskWith([swap]), null, '/dev/sda3 is swap space in use'],
    [diskWith([], { readonly: true }), null, 'read-only'],
    [diskWith([]), OFFERED, 'too small: the image needs 600 GB'],
    [
      diskWith([]),
      { ...OFFERED, format: 'img.gz', virtual: { kind: 'at-least', bytes: 600e9 } },
      'too small: the image seems to need 600 GB, or is cut off; compare its checksum',
    ],
    [diskWith([], { readonly: true }), OFFERED, 'read-only, too small: the image needs 600 GB'],
    [diskWith([], { identity: empty }), null, 'no medium inserted'],
    // What is wrong with the image is said of the image.
    [diskWith([]), { ...OFFERED, format: null, virtual: { kind: 'unknown' } }, null],
  ]
  for (const [disk, image, refusal] of rows) assert.is(offerDisk(disk, image).refusal, refusal)
})

const said = (menu: Menu) => {
  const answer = decideAnswer(menu, UNTOUCHED)
  return answer.ok ? null : answer.refusal
}
test('Enter says what a list waits for where no row is chosen', () => {
  const rows = listImageOffers([LOCAL], []).map(renderImageRow)
  assert.is(said(createImageMenu(rows)), 'Type a number from 1 to 1, b, m, r or q.')
  assert.is(said(createImageMenu([])), 'Type b, m, r or q.')
  assert.is(said(createDiskMenu([], 'image')), 'Type b, r or q.')
})
test.run()
