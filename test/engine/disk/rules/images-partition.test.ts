import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { chooseImagesPartition, parseBootMedium } from '#engine/disk/rules/images-partition.ts'

const test = suite('images place')

const NETWORK = { disk: null, partition: null, hasImages: false }
const STICK = { disk: '/dev/sda', partition: '/dev/sda1', hasImages: false }
const VENTOY = { disk: '/dev/sda', partition: '/dev/sda1', hasImages: true }
const own = {
  node: '/dev/sda3',
  disk: '/dev/sda',
  number: 3,
  name: 'FLASHER_IMAGES',
  isFixed: false,
}
const other = {
  node: '/dev/sdb3',
  disk: '/dev/sdb',
  number: 3,
  name: 'FLASHER_IMAGES',
  isFixed: false,
}
const none = { node: '/dev/sda2', disk: '/dev/sda', number: 2, name: 'FLASHER_EFI', isFixed: false }
const fixed = (part: typeof other) => ({ ...part, isFixed: true })
const plain = (letter: string) => ({
  ...other,
  node: `/dev/sd${letter}1`,
  disk: `/dev/sd${letter}`,
  number: 1,
  name: null,
})
const labels = (...pairs: (readonly [string, string])[]) => new Map(pairs)
const look = { growable: null }

const ROWS = [
  [
    'our own stick grows, whatever else is there',
    STICK,
    [none, other, own],
    labels(['Ventoy', '/dev/sdc1']),
    { node: '/dev/sda3', growable: own },
  ],
  [
    'the stick of another is only looked at',
    NETWORK,
    [other],
    labels(),
    { node: '/dev/sdb3', ...look },
  ],
  [
    'from a disc, a stick with images is found too',
    { ...STICK, disk: '/dev/sr0' },
    [other],
    labels(),
    { node: '/dev/sdb3', ...look },
  ],
  [
    'an ISO file: what lies beside it',
    VENTOY,
    [other],
    labels(['Ventoy', '/dev/sdc1']),
    { node: '/dev/sda1', ...look },
  ],
  [
    'a label of ours on a stick without names',
    NETWORK,
    [none, plain('b')],
    labels(['FLASHER_IMG', '/dev/sdb1']),
    { node: '/dev/sdb1', ...look },
  ],
  [
    'the long name as a label',
    NETWORK,
    [plain('b')],
    labels(['FLASHER_IMAGES', '/dev/sdb1']),
    { node: '/dev/sdb1', ...look },
  ],
  [
    'ours before Ventoy',
    NETWORK,
    [plain('b'), plain('c')],
    labels(['Ventoy', '/dev/sdc1'], ['FLASHER_IMG', '/dev/sdb1']),
    { node: '/dev/sdb1', ...look },
  ],
  [
    'Ventoy after a start by network',
    NETWORK,
    [plain('c')],
    labels(['Ventoy', '/dev/sdc1']),
    { node: '/dev/sdc1', ...look },
  ],
  [
    'the disk that we run from may be one inside of the machine',
    STICK,
    [none, other, fixed(own)],
    labels(),
    { node: '/dev/sda3', growable: fixed(own) },
  ],
  [
    'another disk inside of the machine is left alone, whatever it is called',
    { ...STICK, disk: '/dev/sr0' },
    [fixed(own)],
    labels(['FLASHER_IMG', own.node]),
    null,
  ],
  [
    'a stick behind a disk inside of the machine',
    NETWORK,
    [fixed(own), other],
    labels(['FLASHER_IMG', own.node]),
    { node: '/dev/sdb3', ...look },
  ],
  [
    'a label on a partition that the kernel does not know',
    NETWORK,
    [],
    labels(['FLASHER_IMG', '/dev/sdb1']),
    null,
  ],
  [
    'a name or a label of ours on an array: its partitions lie inside as well',
    NETWORK,
    [fixed({ ...other, node: '/dev/md127p1', disk: '/dev/md127' })],
    labels(['FLASHER_IMG', '/dev/md127p1']),
    null,
  ],
  ['nothing', NETWORK, [none, plain('b')], labels(['DATA', '/dev/sdb1']), null],
] as const

for (const [what, medium, parts, byLabel, expected] of ROWS) {
  test(what, () => {
    assert.equal(chooseImagesPartition({ medium, parts, disks: [], labels: byLabel }), expected)
  })
}

const DISKS = [
  { node: '/dev/sda', isFixed: true },
  { node: '/dev/sdb', isFixed: false },
]
const WHOLES = [
  ['a stick without partitions', NETWORK, '/dev/sdb', '/dev/sdb'],
  ['a disk inside of the machine', NETWORK, '/dev/sda', null],
  ['the disk inside that we run from', STICK, '/dev/sda', '/dev/sda'],
  ['a disk inside, started from a disc', { ...STICK, disk: '/dev/sr0' }, '/dev/sda', null],
  ['a volume of LVM', NETWORK, '/dev/dm-0', null],
  ['an array', NETWORK, '/dev/md127', null],
  ['an array that we run from', { ...STICK, disk: '/dev/md127' }, '/dev/md127', null],
  ['an address that is no device', NETWORK, '/dev/disk/by-label/FLASHER_IMG', null],
] as const

for (const [what, medium, node, expected] of WHOLES) {
  test(`a label on a whole device: ${what}`, () => {
    for (const label of ['FLASHER_IMG', 'FLASHER_IMAGES', 'Ventoy']) {
      const place = chooseImagesPartition({
        medium,
        parts: [],
        disks: DISKS,
        labels: labels([label, node]),
      })
      assert.equal(place, expected === null ? null : { node: expected, ...look }, label)
    }
  })
}

test('a stick behind a whole disk inside of the machine that has the other label', () => {
  const place = chooseImagesPartition({
    medium: NETWORK,
    parts: [],
    disks: DISKS,
    labels: labels(['FLASHER_IMG', '/dev/sda'], ['FLASHER_IMAGES', '/dev/sdb']),
  })
  assert.equal(place, { node: '/dev/sdb', ...look })
})

test('the notes of the boot system', () => {
  const notes = 'origin=medium\nmedium=/dev/sda1\nmedium_disk=/dev/sda\nmedium_file=\nversion=1\n'
  assert.equal(parseBootMedium(notes), STICK)
  assert.equal(parseBootMedium(notes.replace('file=', 'file=/iso/a=b c.iso')), VENTOY)
  assert.equal(parseBootMedium(`${notes}images_beside=yes\n`), VENTOY)
  assert.equal(parseBootMedium(`${notes}images_beside=\n`), STICK)
  assert.equal(parseBootMedium('origin=http\nurl=http://x/y?medium=/dev/sda1\n'), NETWORK)
  assert.equal(parseBootMedium(''), NETWORK)
})

test('notes that name no device are none', () => {
  for (const value of ['', 'sda1', '/dev/../etc/passwd', '/dev/sda1 /dev/sdb', '-o', '/dev/$(x)']) {
    assert.is(parseBootMedium(`medium=${value}\nmedium_disk=${value}`).partition, null, value)
  }
})

test.run()
