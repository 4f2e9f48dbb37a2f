/** What provisioning decides: inputs, file contents, argument lists, which volume, in which words. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseLsblk, type FilledVolume, listVolumes, parseBlkid } from '#engine/disk/rules/lsblk.ts'
import { decideGroups, parsePhysicalVolumes } from '#engine/disk/rules/pvs.ts'
import {
  decideMountOptions,
  decideVolumeFolder,
  findRootFileSystem,
  parseFstab,
  subvolumeOption,
} from '#engine/disk/rules/mount.ts'
import {
  MAX_LOGICAL,
  numberLogical,
  parseLogicalTable,
} from '#engine/flash/rules/last-partition.ts'
import {
  CIJOE_CONFIG,
  cijoeArgv,
  findLargest,
  listInputs,
  planEarlySeed,
  renderExaminations,
  renderMetaData,
  SEED_FOLDER,
} from '#engine/flash/rules/provisioning.ts'
import { makeDiskImage, writeGpt } from '#test/support/disk/disk-images.ts'

const contents = parseBlkid('')
const volume = (node: string, said: Partial<FilledVolume> = {}): FilledVolume => ({
  node,
  kind: 'part',
  sizeBytes: 1000,
  contents,
  ...said,
})
const filled = (node: string, said: Partial<FilledVolume['contents']>, sizeBytes = 1000) =>
  volume(node, { sizeBytes, contents: { ...contents, ...said } })

const provisioning = suite('provisioning')

provisioning('names the files that must be there', () => {
  assert.equal(listInputs({ mode: 'none' }), [])
  assert.equal(listInputs({ mode: 'cloud-init', userData: 'u', metaData: null }), [
    { what: 'user-data', path: 'u' },
  ])
  assert.equal(listInputs({ mode: 'cijoe', workflow: 'w', config: 'c' }), [
    { what: 'cijoe workflow', path: 'w' },
    { what: 'cijoe config', path: 'c' },
  ])
})

provisioning('makes up meta-data in two lines', () => {
  assert.is(
    renderMetaData('0123456789ab'),
    'instance-id: flasher-0123456789ab\nlocal-hostname: flasher-host\n',
  )
})

provisioning('puts options before the workflow', () => {
  assert.equal(cijoeArgv('flow.yaml', 'c.toml'), [
    'cijoe',
    '--monitor',
    '-c',
    'c.toml',
    'flow.yaml',
  ])
  assert.match(CIJOE_CONFIG, /^\[cijoe\.workflow\]\nfail_fast = true\n$/)
})

provisioning('gives the largest volume to a workflow, the first of equals', () => {
  const volumes = [
    filled('/dev/sda1', { type: 'vfat' }, 100),
    filled('/dev/sda2', { type: 'ext4' }, 500),
    filled('/dev/sda3', { type: 'xfs' }, 500),
    filled('/dev/sda4', { type: 'swap' }, 900),
    filled('/dev/sda5', { type: 'LVM2_member' }, 800),
  ]
  assert.is(findLargest(volumes)?.node, '/dev/sda2')
  assert.is(findLargest(volumes.slice(3)), null)
})

provisioning('tells what was looked at in words that move no cursor', () => {
  const looks = [
    { node: '/dev/sda1', type: null, sizeBytes: 1_500_000, why: 'unknown contents' },
    { node: '/dev/sda2', type: 'ext4', sizeBytes: 12, why: 'bad \u001b[2J' },
  ]
  assert.is(
    renderExaminations(looks),
    '\n  /dev/sda1 (no file system, 1.50 MB): unknown contents\n  /dev/sda2 (ext4, 12 B): bad \\x1b[2J',
  )
})

const volumes = suite('volumes')
const list = (devices: unknown, disk: string) => {
  const nodes = parseLsblk(JSON.stringify({ blockdevices: devices }))
  return nodes.ok ? listVolumes(nodes.value, disk).map(({ node, kind }) => `${kind} ${node}`) : null
}
const lv = { name: 'vg-root', kname: 'dm-0', path: '/dev/mapper/vg-root', type: 'lvm', size: 5 }
const part = (n: number, children: unknown = undefined) => ({
  name: `sda${n}`,
  path: `/dev/sda${n}`,
  type: 'part',
  size: `${n}000`,
  ...(children === undefined ? {} : { children }),
})
const disk = { name: 'sda', path: '/dev/sda', type: 'disk', size: 9000 }

volumes('are found nested, flat, below LVM and on a disk without a table', () => {
  const expected = ['part /dev/sda1', 'part /dev/sda2', 'lvm /dev/mapper/vg-root']
  assert.equal(list([{ ...disk, children: [part(1), part(2, [lv])] }], '/dev/sda'), expected)
  assert.equal(list([disk, part(1), part(2), lv], '/dev/sda'), expected)
  assert.equal(list([disk], '/dev/sda'), ['disk /dev/sda'])
  assert.equal(list([{ ...disk, children: [lv] }], '/dev/sda'), [
    'disk /dev/sda',
    'lvm /dev/mapper/vg-root',
  ])
  assert.equal(list([part(2)], '/dev/sda2'), ['part /dev/sda2'])
})

volumes('with paths that are none under /dev are left out', () => {
  assert.equal(list([disk, { ...part(1), path: '--evil' }], '/dev/sda'), ['disk /dev/sda'])
})

volumes('are read from the output of blkid, escapes undone', () => {
  const said = parseBlkid(
    'DEVNAME=/dev/sda1\nTYPE=ext4\nLABEL=my\\ root\nPART_ENTRY_UUID=ab-01\nPTTYPE=dos\nnonsense\n',
  )
  assert.equal(said, {
    type: 'ext4',
    uuid: null,
    label: 'my root',
    partuuid: 'ab-01',
    partlabel: null,
    table: 'dos',
  })
})

const mounts = suite('mount options')

mounts('keep what an image holds from acting', () => {
  assert.equal(decideMountOptions('ext4', 'look', null), [
    'ro',
    'nosuid',
    'nodev',
    'noexec',
    'nosymfollow',
    'errors=remount-ro',
  ])
  assert.equal(decideMountOptions('xfs', 'work', null), ['rw', 'nodev', 'nouuid'])
  assert.equal(decideMountOptions('btrfs', 'write', 'subvol=@').at(-1), 'subvol=@')
})

mounts('are made for file systems that we know, and for names that are one option', () => {
  assert.is(findRootFileSystem('ext4'), 'ext4')
  for (const type of [null, 'vfat', 'fuse.sshfs', '__proto__']) {
    assert.is(findRootFileSystem(type), null)
  }
  assert.is(subvolumeOption('@/.snapshots/1/snapshot'), 'subvol=@/.snapshots/1/snapshot')
  for (const name of ['@,dev,suid', 'a"b', 'a\\054dev', 'a\nb', '']) {
    assert.is(subvolumeOption(name), null)
  }
})

const fstab = suite('fstab')
const disks = [
  filled('/dev/sda1', { uuid: 'aaaa-1', label: 'root' }),
  filled('/dev/sda2', { uuid: 'bbbb-2', label: 'va r', partuuid: 'cc-03', partlabel: 'VAR' }),
  volume('/dev/mapper/vg--a-var', { kind: 'lvm' }),
]
const place = (text: string) => decideVolumeFolder(parseFstab(text), SEED_FOLDER, disks)

fstab('leaves the seed in the root file system where nothing else is mounted', () => {
  for (const text of [
    '',
    '# UUID=bbbb-2 /var ext4\nUUID=aaaa-1 / ext4 defaults 0 1\nUUID=bbbb-2 /variety ext4',
    'UUID=nowhere /var ext4 nofail 0 0',
    'tmpfs /var/lib/cloudy tmpfs',
  ]) {
    assert.equal(place(text), { ok: true, value: null })
  }
})

fstab('finds the volume that will be under the seed', () => {
  for (const spec of [
    'UUID=BBBB-2',
    'UUID="bbbb-2"',
    'LABEL=va\\040r',
    'PARTUUID=cc-03',
    'PARTLABEL=VAR',
    '/dev/disk/by-uuid/bbbb-2',
  ]) {
    const found = place(`${spec} /var/ btrfs rw,subvol=/var 0 0`)
    const expected = {
      volume: disks[1],
      subvolume: 'subvol=/var',
      folder: 'lib/cloud/seed/nocloud-net',
    }
    assert.equal(found, { ok: true, value: expected }, spec)
  }
  for (const spec of ['/dev/mapper/vg--a-var', '/dev/vg-a/var']) {
    const found = place(`${spec} ${`/${SEED_FOLDER}`} ext4`)
    assert.equal(found, { ok: true, value: { volume: disks[2], subvolume: null, folder: '' } })
  }
})

fstab('refuses what leads to nothing on this disk, the deepest entry first', () => {
  const found = place('UUID=bbbb-2 /var ext4\ntmpfs /var/lib/cloud tmpfs defaults')
  assert.is(found.ok, false)
  if (!found.ok) assert.is(found.refusal.point, '/var/lib/cloud')
})

const groups = suite('volume groups')
const row = (pv_name: string, vg_name: string, vg_uuid: string, missing = 0) => ({
  pv_name,
  vg_name,
  vg_uuid,
  missing,
})

groups('are activated when they are on this disk alone', () => {
  const ours = [
    row('/dev/sdb2', 'vg', 'u1'),
    row('/dev/sdb3', 'vg', 'u1'),
    row('/dev/sdb4', '', ''),
  ]
  assert.equal(decideGroups(ours, [row('/dev/sda2', 'other', 'u9')]), [
    { name: 'vg', nodes: ['/dev/sdb2', '/dev/sdb3'], refusal: null },
  ])
})

groups(
  'are refused when this machine has one of that name or identity, and when incomplete',
  () => {
    const why = (
      ours: readonly ReturnType<typeof row>[],
      others: readonly ReturnType<typeof row>[],
    ) => decideGroups(ours, others)[0]?.refusal ?? ''
    const ours = [row('/dev/sdb2', 'vg', 'u1')]
    assert.match(
      why(ours, [row('/dev/sda2', 'vg', 'u2')]),
      /also one of this machine \(on \/dev\/sda2/,
    )
    assert.match(why(ours, [row('/dev/sda2', 'renamed', 'u1')]), /must not be touched/)
    assert.match(why([row('/dev/sdb2', 'vg', 'u1', 1)], []), /is also on other disks/)
    assert.match(why([...ours, row('/dev/sdb3', 'vg', 'u2')], []), /two volume groups/)
    assert.match(why([row('/dev/sdb2', '--all', 'u1')], []), /does not allow/)
  },
)

groups('are read from what pvs reports', () => {
  const pv = { pv_name: '/dev/sdb2', vg_name: 'vg', vg_uuid: 'u', vg_missing_pv_count: '0' }
  assert.equal(parsePhysicalVolumes(JSON.stringify({ report: [{ pv: [pv] }], log: [] })), {
    ok: true,
    value: [row('/dev/sdb2', 'vg', 'u')],
  })
  for (const text of ['', '{}', '[]', '{"report":[{"pv":[{"pv_name":1}]}]}']) {
    assert.is(parsePhysicalVolumes(text).ok, false)
  }
})

const MIB = 2 ** 20
const SIZE = 8 * MIB

interface Entry {
  readonly type: number
  readonly first: number
  readonly sectors: number
}

/** A sector with a table of an MBR. */
function dosSector(...entries: readonly Entry[]): Buffer {
  const sector = Buffer.alloc(512)
  sector.writeUInt16LE(0xaa55, 510)
  for (const [at, { type, first, sectors }] of entries.entries()) {
    sector.writeUInt8(type, 446 + at * 16 + 4)
    sector.writeUInt32LE(first, 446 + at * 16 + 8)
    sector.writeUInt32LE(sectors, 446 + at * 16 + 12)
  }
  return sector
}

const dosHead = (...entries: readonly Entry[]) =>
  Buffer.concat([dosSector(...entries), Buffer.alloc(MIB - 512, 0x5a)])
const timedDisk = { sizeBytes: SIZE, sectorBytes: 512 }
const none = { tail: Buffer.alloc(0), moved: null }
const placesOf = (pieces: readonly { readonly offset: number; readonly bytes: Buffer }[]) =>
  pieces.map(({ offset, bytes }) => [offset, bytes.length])

const timing = suite('planEarlySeed')

timing('holds both ends back whole where nothing reaches into them', () => {
  const head = dosHead({ type: 0x83, first: 2048, sectors: 4096 })
  const planned = planEarlySeed(timedDisk, { head, ...none })
  assert.equal(placesOf(planned?.early ?? []), [])
  assert.equal(placesOf(planned?.held ?? []), [
    [7 * MIB, MIB],
    [4096, MIB - 4096],
    [0, 4096],
  ])
  assert.equal(
    planned?.partitions.map(({ number, offset, bytes }) => [number, offset, bytes]),
    [[1, MIB, 2 * MIB]],
  )
})

timing('holds back what lies before the first partition, and the backup table', () => {
  const head = dosHead({ type: 0x83, first: 63, sectors: SIZE / 512 - 63 })
  const planned = planEarlySeed(timedDisk, { head, tail: Buffer.alloc(MIB, 1), moved: null })
  assert.equal(placesOf(planned?.early ?? []), [
    [7 * MIB, MIB],
    [63 * 512, MIB - 63 * 512],
  ])
  assert.equal(placesOf(planned?.held ?? []), [
    [4096, 63 * 512 - 4096],
    [0, 4096],
  ])
  const image = makeDiskImage(SIZE)
  writeGpt(image, 512, 3)
  const ends = { head: image.subarray(0, MIB), tail: image.subarray(7 * MIB), moved: null }
  const gpt = planEarlySeed(timedDisk, ends)
  const held = [...(gpt?.held ?? [])].map(({ offset, bytes }) => offset + bytes.length)
  assert.ok(held.includes(SIZE), 'the backup table is held back')
})

timing('leaves to the time after the ends what is no table, or lies in it', () => {
  const heads = [
    Buffer.alloc(MIB),
    dosHead(),
    dosHead({ type: 0xee, first: 1, sectors: 100 }),
    dosHead({ type: 0x83, first: 4, sectors: 4096 }),
    dosHead({ type: 0x83, first: 2048, sectors: SIZE / 512 }),
    dosHead({ type: 0x83, first: 2048, sectors: 2048 }, { type: 0x83, first: 1, sectors: 2 }),
  ]
  // A GPT that no MBR protects: the kernel reads the MBR.
  const stale = makeDiskImage(SIZE)
  writeGpt(stale, 512, 3)
  dosSector({ type: 0x83, first: 2048, sectors: 2048 }).copy(stale)
  for (const head of [...heads, stale.subarray(0, MIB)]) {
    assert.is(planEarlySeed(timedDisk, { head, ...none }), null)
  }
})

const logical = suite('parseLogicalTable')
const extended = { offset: 2 * MIB, bytes: 4 * MIB }

logical('reads a partition and where the next table lies, as the kernel does', () => {
  const sector = dosSector(
    { type: 0x83, first: 2048, sectors: 1024 },
    { type: 0x05, first: 4096, sectors: 1024 },
  )
  const { partition, next } = parseLogicalTable(sector, 2 * MIB, { extended, sectorBytes: 512 })
  assert.equal([partition?.offset, partition?.bytes, partition?.type], [3 * MIB, MIB / 2, '0x83'])
  assert.is(next, 4 * MIB)
  const [named] = numberLogical(partition === null ? [] : [partition], '00c0ffee')
  assert.equal([named?.number, named?.uuid], [5, '00c0ffee-05'])
})

logical('leads nowhere outside the extended partition', () => {
  const rows = [
    Buffer.alloc(512),
    dosSector({ type: 0x83, first: 1, sectors: 100_000 }, { type: 0x05, first: 9000, sectors: 1 }),
  ]
  for (const sector of rows) {
    const found = parseLogicalTable(sector, 2 * MIB, { extended, sectorBytes: 512 })
    assert.equal(found, { partition: null, next: null })
  }
  assert.ok(MAX_LOGICAL < 1000)
})

provisioning.run()
volumes.run()
mounts.run()
fstab.run()
groups.run()
timing.run()
logical.run()
