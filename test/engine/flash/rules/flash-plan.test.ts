import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import type { DiskUse, TargetDevice, TargetFacts } from '#engine/disk/rules/disk.ts'
import {
  decideBottleneck,
  decideNotes,
  decideRace,
  type FlashOptions,
  type FlashPlan,
  type FlashRefusal,
  planFlash,
  renderRefusal,
} from '#engine/flash/rules/flash-plan.ts'
import type { ImageFacts } from '#engine/image/rules/image.ts'

const test = suite('flash')

const MIB = 2 ** 20
const OPTIONS: FlashOptions = {
  verify: 'data',
  sha256: null,
  allowPartition: false,
  fixGpt: false,
  grow: false,
}
const IMAGE: ImageFacts = {
  name: 'debian.img.zst',
  path: '/images/debian.img.zst',
  url: null,
  format: 'img.zst',
  sizeBytes: MIB,
  virtual: { kind: 'exact', bytes: 4 * MIB },
}
const DEVICE: TargetDevice = {
  node: '/dev/sdb',
  type: 'disk',
  sectorBytes: 512,
  readonly: false,
  vendor: 'Generic',
  model: null,
  tran: 'usb',
  identity: { serial: 'S1', wwn: 'w1', sizeBytes: 8 * MIB, diskseq: 7 },
  zeros: { loop: null, writeZeroesMaxBytes: 0, discardMaxBytes: 0 },
  uses: [],
}
const PATH = '/dev/disk/by-id/usb-S1'
const target = (device: Partial<TargetDevice> = {}): TargetFacts => ({
  path: PATH,
  exists: true,
  device: { ...DEVICE, ...device },
})
const sized = (sizeBytes: number) => ({ identity: { ...DEVICE.identity, sizeBytes } })
const planned = (device: Partial<TargetDevice> = {}): FlashPlan => {
  const result = planFlash(IMAGE, target(device), OPTIONS)
  if (!result.ok) throw new Error('this disk can be flashed')
  return result.value
}
const messages = (image: ImageFacts, facts: TargetFacts, options: Partial<FlashOptions> = {}) => {
  const result = planFlash(image, facts, { ...OPTIONS, ...options })
  return result.ok ? [] : result.refusal.map((refusal: FlashRefusal) => renderRefusal(refusal))
}

const unknown: ImageFacts = { ...IMAGE, name: 'notes.txt', format: null }
const huge: ImageFacts = { ...IMAGE, virtual: { kind: 'exact', bytes: 8 * MIB + 1 } }
const mounted: readonly DiskUse[] = [
  { kind: 'mounted', device: '/dev/sdb1', at: '/mnt/a' },
  { kind: 'mounted', device: '/dev/sdb2', at: '/b', process: 12 },
]
const held: DiskUse = { kind: 'holder', device: '/dev/sdb3', holder: '/dev/dm-1', what: 'crypt' }
const swap: DiskUse = { kind: 'swap', device: '/dev/sdb4' }

const NOT_RECOGNISED =
  'image format not recognised: notes.txt (supported: .qcow2, .img, .img.zst, .img.xz, .img.gz, .img.bz2; for other names use --format)'
const MOUNTED = 'target has mounted partitions: /mnt/a, /b (seen by process 12)'
const IN_USE =
  'target is in use: /dev/sdb3 is in use by /dev/dm-1 (encrypted), /dev/sdb4 is swap space in use'
const PARTITION = `target is not a whole disk: ${PATH} is of type part (--allow-partition to write there anyway)`

/** Image, target, what is said of them, in this order ("Validation"). */
const rows: readonly (readonly [string, ImageFacts, TargetFacts, readonly string[]])[] = [
  ['fits', IMAGE, target(), []],
  ['fits to the last byte', IMAGE, target(sized(4 * MIB)), []],
  ['a loop device', IMAGE, target({ type: 'loop' }), []],
  ['a multipath device', IMAGE, target({ type: 'mpath' }), []],
  ['format unknown', unknown, target(), [NOT_RECOGNISED]],
  [
    'a tarball',
    { ...unknown, name: 'a.tar.gz' },
    target(),
    ['a.tar.gz is a tarball: extract first'],
  ],
  [
    'an empty image',
    { ...IMAGE, virtual: { kind: 'exact', bytes: 0 } },
    target(),
    ['image is empty: debian.img.zst'],
  ],
  [
    'target missing',
    IMAGE,
    { path: '/dev/nope', exists: false, device: null },
    ['target does not exist: /dev/nope'],
  ],
  [
    'not a block device',
    unknown,
    { path: '/dev/null', exists: true, device: null },
    [NOT_RECOGNISED, 'target is not a block device: /dev/null'],
  ],
  ['mounted', IMAGE, target({ uses: mounted }), [MOUNTED]],
  ['in use', IMAGE, target({ uses: [held, swap] }), [IN_USE]],
  ['read-only', IMAGE, target({ readonly: true }), [`target is read-only: ${PATH}`]],
  ['a partition', IMAGE, target({ type: 'part' }), [PARTITION]],
  ['no medium', IMAGE, target(sized(0)), [`target has no medium or no size: ${PATH}`]],
  [
    'too large by a byte',
    huge,
    target(),
    [`image (${8 * MIB + 1} bytes) is larger than target (${8 * MIB} bytes)`],
  ],
  [
    'too large at the least',
    { ...IMAGE, virtual: { kind: 'at-least', bytes: 9 * MIB } },
    target(),
    [`image (${9 * MIB} bytes) is larger than target (${8 * MIB} bytes)`],
  ],
  [
    'large enough at the least',
    { ...IMAGE, virtual: { kind: 'at-least', bytes: MIB } },
    target(),
    [],
  ],
  ['size unknown', { ...IMAGE, virtual: { kind: 'unknown' } }, target(), []],
  [
    'all at once, in order',
    { ...huge, name: 'notes.txt', format: null },
    target({ uses: [held, ...mounted, swap], readonly: true, type: 'part' }),
    [
      NOT_RECOGNISED,
      MOUNTED,
      IN_USE,
      `target is read-only: ${PATH}`,
      PARTITION,
      `image (${8 * MIB + 1} bytes) is larger than target (${8 * MIB} bytes)`,
    ],
  ],
]
for (const [name, image, facts, said] of rows)
  test(`validation: ${name}`, () => assert.equal(messages(image, facts), said))

test('--allow-partition allows that, and nothing else', () => {
  const allowPartition = true
  assert.equal(messages(IMAGE, target({ type: 'part' }), { allowPartition }), [])
  assert.equal(messages(IMAGE, target({ type: 'part', uses: mounted }), { allowPartition }), [
    MOUNTED,
  ])
})

test('a size known only from the last bytes of a gzip file comes with a hint that the file may be cut off', () => {
  const virtual = { kind: 'at-least', bytes: 9 * MIB } as const
  assert.equal(messages({ ...IMAGE, format: 'img.gz', virtual }, target()), [
    `image (${9 * MIB} bytes) is larger than target (${8 * MIB} bytes); its last bytes give this size, so it may be cut off; compare its checksum`,
  ])
})

test('a plan has all that the writer needs', () => {
  assert.equal(planned(), {
    image: IMAGE,
    target: {
      path: PATH,
      node: '/dev/sdb',
      identity: DEVICE.identity,
      sectorBytes: 512,
      allowPartition: false,
    },
    zeros: 'write',
    verify: 'data',
    sha256: null,
    fixGpt: false,
    indexSha256: null,
    delta: false,
    grow: false,
  })
})

test('notes say what could not be known', () => {
  assert.equal(decideNotes(IMAGE), [])
  assert.equal(decideNotes({ ...unknown, virtual: { kind: 'unknown' } }), [])
  assert.equal(decideNotes({ ...IMAGE, virtual: { kind: 'unknown' } }), [
    'image virtual size could not be determined; size-fits-target check skipped',
  ])
  assert.match(
    decideNotes({ ...IMAGE, virtual: { kind: 'at-least', bytes: 5 } })[0] ?? '',
    'at least 5 bytes',
  )
})

const identity = (more: Partial<TargetDevice['identity']>) => ({
  identity: { ...DEVICE.identity, ...more },
})
const races: readonly (readonly [string, TargetFacts, string | null])[] = [
  ['nothing', target(), null],
  ['gone', { path: PATH, exists: false, device: null }, `${PATH} was removed`],
  [
    'no block device',
    { path: PATH, exists: true, device: null },
    `${PATH} is no longer a block device`,
  ],
  ['the link moved', target({ node: '/dev/sdc' }), `${PATH} now points to /dev/sdc`],
  ['serial', target(identity({ serial: 'S2' })), `${PATH} is another disk now`],
  ['wwn', target(identity({ wwn: 'w2' })), `${PATH} is another disk now`],
  ['size', target(identity({ sizeBytes: 9 * MIB })), `${PATH} is another disk now`],
  ['diskseq', target(identity({ diskseq: 8 })), `${PATH} is another disk now`],
  ['sector size', target({ sectorBytes: 4096 }), `${PATH} changed its sector size`],
  ['read-only', target({ readonly: true }), `${PATH} became read-only`],
  ['mounted', target({ uses: mounted }), '/dev/sdb1 is mounted on /mnt/a'],
  ['held', target({ uses: [held] }), '/dev/sdb3 is in use by /dev/dm-1 (encrypted)'],
]
for (const [name, now, said] of races)
  test(`race: ${name}`, () => assert.is(decideRace(planned(), now), said))

const uses = fc.array(fc.constantFrom(...mounted, held, swap), { maxLength: 4 })
const bytes = fc.nat({ max: 2 ** 40 })
const anyTarget = fc.record({
  path: fc.string(),
  exists: fc.boolean(),
  device: fc.option(
    fc.record({
      uses,
      readonly: fc.boolean(),
      type: fc.constantFrom('disk', 'loop', 'part', 'lvm', 'rom', 'raid1', 'mpath', 'crypt'),
      sizeBytes: bytes,
    }),
  ),
})
const anyImage = fc.record({
  format: fc.option(fc.constantFrom(...IMAGE_FORMATS)),
  virtual: fc.oneof(
    fc.record({ kind: fc.constantFrom('exact' as const, 'at-least' as const), bytes }),
    fc.constant({ kind: 'unknown' as const }),
  ),
})

const canFit = (virtual: ImageFacts['virtual'], has: number) =>
  has > 0 && (virtual.kind === 'unknown' || virtual.bytes <= has)
const isEmpty = (virtual: ImageFacts['virtual']) => virtual.kind === 'exact' && virtual.bytes === 0
const isIdle = ({ uses: users, readonly }: Pick<TargetDevice, 'uses' | 'readonly'>) =>
  users.length === 0 && !readonly
const isWhole = (type: string) => ['disk', 'loop', 'mpath'].includes(type)

test('no plan for a disk that must not be written, whatever else is true', () => {
  fc.assert(
    fc.property(anyImage, anyTarget, fc.boolean(), (picture, place, allowPartition) => {
      const { device: drawn } = place
      const device = drawn && { ...DEVICE, ...drawn, ...sized(drawn.sizeBytes) }
      const facts: TargetFacts = { ...place, device }
      const result = planFlash({ ...IMAGE, ...picture }, facts, { ...OPTIONS, allowPartition })
      const isImageFine = picture.format !== null && !isEmpty(picture.virtual)
      const isTargetFine =
        place.exists &&
        drawn !== null &&
        isIdle(drawn) &&
        canFit(picture.virtual, drawn.sizeBytes) &&
        (allowPartition || isWhole(drawn.type))
      assert.is(result.ok, isImageFine && isTargetFine)
      if (result.ok) assert.is(decideRace(result.value, facts), null)
      else assert.ok(result.refusal.length > 0)
    }),
    { numRuns: 2000 },
  )
})

test('what was waited for most holds it up', () => {
  const [file, packed, web] = [
    { isRemote: false, isDecoded: false },
    { isRemote: false, isDecoded: true },
    { isRemote: true, isDecoded: true },
  ] as const
  const cases = [
    [{ disk: 0.8, filling: 0.1, source: 0.1 }, web, 'disk'],
    [{ disk: 0.1, filling: 0.8, source: 0.7 }, web, 'network'],
    [{ disk: 0.1, filling: 0.8, source: 0.7 }, packed, 'source'],
    [{ disk: 0.1, filling: 0.8, source: 0.1 }, packed, 'decoder'],
    [{ disk: 0, filling: 0.8, source: 0.1 }, file, 'source'],
    [{ disk: 0.05, filling: 0.04, source: 0 }, web, null],
  ] as const
  for (const [waited, from, found] of cases) {
    assert.is(decideBottleneck({ ...waited, span: 1 }, from), found)
  }
})

test.run()
