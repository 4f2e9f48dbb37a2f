import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { isSameDisk, renderUse, type DiskIdentity, type DiskUse } from '#engine/disk/rules/disk.ts'

const test = suite('disk')

const DISK: DiskIdentity = { serial: 'S1', wwn: 'w1', sizeBytes: 4096, diskseq: 7 }

/** What changed, from what, to what; whether it is still the same disk. */
const rows: readonly (readonly [string, Partial<DiskIdentity>, Partial<DiskIdentity>, boolean])[] =
  [
    ['nothing', {}, {}, true],
    ['the serial', {}, { serial: 'S2' }, false],
    ['the WWN', {}, { wwn: 'w2' }, false],
    ['the size', {}, { sizeBytes: 8192 }, false],
    ['the diskseq', {}, { diskseq: 8 }, false],
    [
      'the diskseq, of a disk that has nothing else',
      { serial: null, wwn: null },
      { serial: null, wwn: null, diskseq: 8 },
      false,
    ],
    ['the serial is known later, same diskseq', { serial: null }, {}, true],
    ['serial and WWN are lost, same diskseq', {}, { serial: null, wwn: null }, true],
    [
      'the serial is known later, no diskseq',
      { serial: null, diskseq: null },
      { diskseq: null },
      false,
    ],
    ['the WWN is lost, no diskseq', { diskseq: null }, { wwn: null, diskseq: null }, false],
    ['a diskseq appears', { diskseq: null }, {}, true],
    ['a diskseq appears with another serial', { diskseq: null }, { serial: 'S2' }, false],
    ['a diskseq appears with a first serial', { diskseq: null, serial: null }, {}, false],
    ['the size, same diskseq', { serial: null }, { serial: null, sizeBytes: 1 }, false],
  ]
for (const [name, before, now, same] of rows)
  test(`isSameDisk: ${name}`, () => {
    assert.is(isSameDisk({ ...DISK, ...before }, { ...DISK, ...now }), same)
  })

const device = '/dev/sda1'
const uses: readonly (readonly [DiskUse, string])[] = [
  [{ kind: 'mounted', device, at: '/home' }, '/dev/sda1 is mounted on /home'],
  [
    { kind: 'mounted', device, at: '/x', process: 42 },
    '/dev/sda1 is mounted on /x (seen by process 42)',
  ],
  [{ kind: 'mounted', device, at: '/a\n\u001b[2Jb' }, '/dev/sda1 is mounted on /a??[2Jb'],
  [{ kind: 'swap', device }, '/dev/sda1 is swap space in use'],
  [
    { kind: 'holder', device, holder: '/dev/md0', what: 'raid10' },
    '/dev/sda1 is in use by /dev/md0 (RAID 10)',
  ],
  [
    { kind: 'holder', device, holder: '/dev/bcache0', what: 'disk' },
    '/dev/sda1 is in use by /dev/bcache0 (disk)',
  ],
  [
    { kind: 'holder', device, holder: '/dev/dm-0', what: 'constructor' },
    '/dev/sda1 is in use by /dev/dm-0 (constructor)',
  ],
  [{ kind: 'zfs', device, pool: 'tank' }, '/dev/sda1 belongs to the ZFS pool tank'],
  [
    { kind: 'btrfs', device, uuid: 'f00d' },
    '/dev/sda1 belongs to the mounted btrfs file system f00d',
  ],
  [{ kind: 'loop', device, loop: '/dev/loop0' }, '/dev/sda1 is the backing of /dev/loop0'],
  [{ kind: 'running-system', device }, '/dev/sda1 holds the running system'],
  [{ kind: 'holds-image', device }, '/dev/sda1 holds the image'],
]
for (const [use, words] of uses) test(`renderUse: ${words}`, () => assert.is(renderUse(use), words))

test.run()
