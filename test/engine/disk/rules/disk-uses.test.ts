import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type DiskUse, renderUse } from '#engine/disk/rules/disk.ts'
import { indexNodes, parseLsblk } from '#engine/disk/rules/lsblk.ts'
import {
  findMount,
  type MountTable,
  parseMountinfo,
  parseOverlayFolders,
  parseSwaps,
  assembleFacts,
  type Backing,
  decideUses,
  listPaths,
  parseZpoolStatus,
  type Sightings,
} from '#engine/disk/rules/disk-uses.ts'
import { listMachineBlocks, LIVE, type Machine, SERVER } from '#test/support/server/machines.ts'

const test = suite('decideUses')

/** What was seen of a machine whose device paths lead to the blocks of that name. */
function seen(
  machine: Machine,
  more: Partial<Sightings> = {},
  backings: Readonly<Record<string, Backing>> = {},
): Sightings {
  const blocks = listMachineBlocks(machine)
  const parsed = parseLsblk(JSON.stringify({ blockdevices: machine.lsblk }))
  const rest = {
    blocks,
    rows: indexNodes(parsed.ok ? parsed.value : []),
    tables: [{ process: null, mounts: parseMountinfo(machine.mountinfo) }],
    swaps: parseSwaps(machine.swaps ?? ''),
    btrfs: [],
    pools: machine.pools ?? [],
    poolMembers: [],
    imagePath: null,
    ...more,
  }
  const lookUp = (path: string): Backing | null => {
    const block = blocks.find(({ name }) => `/dev/${name.replaceAll('!', '/')}` === path)
    return backings[path] ?? (block ? { kind: 'device', dev: block.dev } : null)
  }
  return { ...rest, backings: new Map(listPaths(rest).map((path) => [path, lookUp(path)])) }
}
const usesOf = (sightings: Sightings, target: string) =>
  decideUses(assembleFacts(sightings), target).map((use: DiskUse) => renderUse(use))
const table = (process: number | null, ...lines: readonly string[]): MountTable => ({
  process,
  mounts: parseMountinfo(lines.join('\n')),
})

const rows: readonly (readonly [string, readonly string[]])[] = [
  [
    'nvme0n1',
    [
      '/dev/nvme0n1p1 is mounted on /boot/efi',
      '/dev/mapper/vg-root is mounted on /',
      '/dev/nvme0n1p2 is in use by /dev/mapper/luks (encrypted)',
      '/dev/mapper/luks is in use by /dev/mapper/vg-root (LVM)',
      '/dev/mapper/luks is in use by /dev/mapper/vg-swap (LVM)',
      '/dev/mapper/vg-swap is swap space in use',
      '/dev/nvme0n1 holds the running system',
    ],
  ],
  ['nvme0n1p3', []],
  ['dm-2', ['/dev/mapper/vg-swap is swap space in use']],
  ['sda', ['/dev/md127 is mounted on /srv', '/dev/sda is in use by /dev/md127 (RAID 1)']],
  ['sdb', ['/dev/md127 is mounted on /srv', '/dev/sdb is in use by /dev/md127 (RAID 1)']],
  ['sdc', []],
  [
    'sde',
    [
      '/dev/sde is in use by /dev/mapper/mpatha (multipath)',
      '/dev/mapper/mpatha is in use by /dev/mapper/mpatha-part1 (partition)',
    ],
  ],
  // Nothing uses the partition, but its disk is in use as a whole.
  [
    'sdd1',
    [
      '/dev/sdd is in use by /dev/mapper/mpatha (multipath)',
      '/dev/mapper/mpatha is in use by /dev/mapper/mpatha-part1 (partition)',
    ],
  ],
  ['sdf', ['/dev/sdf1 belongs to the ZFS pool tank']],
  ['sdf1', ['/dev/sdf1 belongs to the ZFS pool tank']],
  // A member of a pool that is not imported is only data, like any other.
  ['sdg', []],
  ['cciss!c0d0', ['/dev/cciss/c0d0p1 is mounted on /mnt/a b']],
]
for (const [target, uses] of rows)
  test(`server: ${target}`, () => {
    const found = usesOf(seen(SERVER), target)
    assert.equal(found.toSorted(), uses.toSorted())
  })

const medium = {
  '/run/live/medium/live/filesystem.squashfs': { kind: 'file', mountId: 21, dev: '8:1' },
} as const
const liveRows: readonly (readonly [string, readonly string[]])[] = [
  ['sda', ['/dev/sda1 is mounted on /run/live/medium', '/dev/sda holds the running system']],
  ['sda1', ['/dev/sda1 is mounted on /run/live/medium', '/dev/sda1 holds the running system']],
  // It lies inside sda1, so writing to it would change what is mounted.
  ['sda2', ['/dev/sda1 is mounted on /run/live/medium', '/dev/sda2 holds the running system']],
  ['sda3', []],
  ['sdb', []],
]
for (const [target, uses] of liveRows)
  test(`live system: ${target}`, () => assert.equal(usesOf(seen(LIVE, {}, medium), target), uses))

test('the live medium is found although its mount is hidden below the root', () => {
  const tables = [
    table(null, '20 1 0:30 / / rw - overlay overlay rw', '22 20 7:0 / /ro ro - squashfs x ro'),
    table(2, '19 1 8:1 / /medium ro - iso9660 /dev/sda1 ro'),
  ]
  const file = { kind: 'file', mountId: null, dev: '8:1' } as const
  const path = '/run/live/medium/live/filesystem.squashfs'
  assert.equal(usesOf(seen(LIVE, { tables }, { [path]: file }), 'sda'), [
    '/dev/sda1 is mounted on /medium (seen by process 2)',
    '/dev/sda holds the running system',
  ])
})

test('a live system in memory lets its stick go', () => {
  const lines = LIVE.mountinfo.split('\n').filter((line) => !line.includes('/dev/sda1'))
  const backings = {
    '/run/live/medium/live/filesystem.squashfs': { kind: 'file', mountId: 23, dev: '0:31' },
  } as const
  assert.equal(usesOf(seen({ ...LIVE, mountinfo: lines.join('\n') }, {}, backings), 'sda'), [])
})

const at = (dev: string, point: string) => `9 1 ${dev} / ${point} rw - ext4 /dev/x rw`

test('mounts of other namespaces count, once, and only where ours has none', () => {
  const tables = [
    table(null, at('8:32', '/ours'), at('8:32', '/again'), at('8:32', '/ours')),
    table(7, at('8:32', '/theirs'), at('8:96', '/theirs')),
    table(8, at('8:96', '/theirs'), at('8:96', '/more')),
  ]
  assert.equal(usesOf(seen(SERVER, { tables }), 'sdc'), [
    '/dev/sdc is mounted on /ours',
    '/dev/sdc is mounted on /again',
  ])
  assert.equal(usesOf(seen(SERVER, { tables }), 'sdg'), [
    '/dev/sdg is mounted on /theirs (seen by process 7)',
    '/dev/sdg is mounted on /more (seen by process 8)',
  ])
})

test('btrfs: the device that the mount names, and its fellows', () => {
  const more = {
    tables: [table(null, '9 1 0:44 /@ /data rw - btrfs /dev/sdc rw')],
    btrfs: [{ id: 'f00d', devices: ['sdc', 'sdg1'] }],
  }
  assert.equal(usesOf(seen(SERVER, more), 'sdc'), ['/dev/sdc is mounted on /data'])
  assert.equal(usesOf(seen(SERVER, more), 'sdg'), [
    '/dev/sdg1 belongs to the mounted btrfs file system f00d',
  ])
})

test('a file system over several devices that it names with colons', () => {
  const tables = [table(null, '9 1 0:44 / /data rw - bcachefs /dev/sdc:/dev/sdg1 rw')]
  for (const [disk, device] of [
    ['sdc', 'sdc'],
    ['sdg', 'sdg1'],
  ] as const)
    assert.equal(usesOf(seen(SERVER, { tables }), disk), [`/dev/${device} is mounted on /data`])
})

test('ZFS members that carry no label are known from zpool', () => {
  const poolMembers = [{ pool: 'tank', path: '/dev/sdc' }]
  assert.equal(usesOf(seen(SERVER, { poolMembers }), 'sdc'), [
    '/dev/sdc belongs to the ZFS pool tank',
  ])
})

const file = (mountId: number | null, dev: string) => ({ kind: 'file', mountId, dev }) as const
const holds = (imagePath: string, backing: Backing | undefined, target: string) =>
  usesOf(
    seen(SERVER, { imagePath }, backing === undefined ? {} : { [imagePath]: backing }),
    target,
  ).includes(`/dev/${target} holds the image`)

test('the disk that holds the image', () => {
  // By the mount that the file lies in: RAID, LVM on an encrypted partition, a ZFS pool.
  for (const disk of ['sda', 'sdb']) assert.ok(holds('/srv/i.img', file(23, '9:127'), disk))
  assert.ok(holds('/i.img', file(20, '252:1'), 'nvme0n1'))
  assert.not(holds('/i.img', file(20, '252:1'), 'nvme0n1p1'))
  assert.ok(holds('/tank/i.img', file(25, '0:60'), 'sdf'))
  // By the device number, where the kernel does not tell the mount.
  assert.ok(holds('/srv/i.img', file(null, '9:127'), 'sda'))
  assert.not(holds('/srv/i.img', file(null, '0:99'), 'sda'))
  // An image that is itself a device.
  assert.ok(holds('/dev/sdc', undefined, 'sdc'))
  assert.ok(holds('/dev/sdg1', undefined, 'sdg'))
  assert.ok(holds('/dev/sdg', undefined, 'sdg1'))
  assert.not(holds('/dev/sdg', undefined, 'sdc'))
  assert.not(holds('/nowhere', undefined, 'sdc'))
})

test('the image inside an overlay lies on all of its layers', () => {
  const tables = [
    table(
      null,
      '1 0 8:96 / / rw - ext4 /dev/sdg rw',
      '2 1 8:32 / /low ro - erofs /dev/sdc ro',
      '3 1 0:50 / /over rw - overlay o rw,lowerdir=/low/a,upperdir=/up,workdir=/work',
    ),
  ]
  const image = { kind: 'file', mountId: 3, dev: '0:50' } as const
  const sightings = seen(SERVER, { tables, imagePath: '/over/i' }, { '/over/i': image })
  for (const disk of ['sdc', 'sdg'])
    assert.ok(usesOf(sightings, disk).includes(`/dev/${disk} holds the image`), disk)
})

test('swap under a path of another namespace is known by its name', () => {
  assert.equal(usesOf(seen(SERVER, { swaps: ['/sdc'] }), 'sdc'), ['/dev/sdc is swap space in use'])
})

test('loops on devices, three high', () => {
  const blocks = [
    ...listMachineBlocks(SERVER),
    { name: 'loop0', dev: '7:0', partition: null, holders: [], backing: '/dev/sdc' },
    { name: 'loop1', dev: '7:1', partition: null, holders: [], backing: '/dev/loop0' },
  ]
  const tables = [table(null, '9 1 7:1 / /mnt rw - ext4 /dev/loop1 rw')]
  const backings = { '/dev/loop0': { kind: 'device', dev: '7:0' } } as const
  assert.equal(usesOf(seen(SERVER, { blocks, tables }, backings), 'sdc'), [
    '/dev/loop1 is mounted on /mnt',
    '/dev/sdc is used by /dev/loop0',
    '/dev/loop0 is used by /dev/loop1',
  ])
})

const dev = (each: string) => `8:${each.codePointAt(0)}`

test('any tangle of devices has an answer, and a use anywhere above is found', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd', 'e')
  const block = fc.record({
    name,
    holders: fc.uniqueArray(name),
    of: fc.option(name),
    on: fc.option(name),
  })
  const tangle = fc.uniqueArray(block, { selector: (each) => each.name, minLength: 1 })
  fc.assert(
    fc.property(tangle, name, name, (blocks, target, mounted) => {
      const machine: Machine = { blocks: {}, lsblk: [], mountinfo: '' }
      const sightings = seen(machine, {
        blocks: blocks.map(({ name: own, holders, of, on }) => ({
          name: own,
          dev: dev(own),
          holders,
          partition: of === null ? null : { of, start: 0, end: 1 },
          backing: on === null ? null : `/dev/${on}`,
        })),
        tables: [table(null, `9 1 ${dev(mounted)} / /mnt rw - ext4 x rw`)],
      })
      const uses = usesOf(sightings, target)
      const holder = blocks.find((each) => each.name === target)?.holders.includes(mounted)
      const isThere = blocks.some((each) => each.name === mounted)
      if (isThere && (holder || target === mounted))
        assert.ok(uses.includes(`/dev/${mounted} is mounted on /mnt`))
    }),
  )
})

test('all devices of all pools, spares, logs and caches too', () => {
  const text = `  pool: tank
 state: ONLINE
  scan: scrub repaired 0B in 00:00:01 with 0 errors
config:

\tNAME             STATE     READ WRITE CKSUM
\ttank             ONLINE       0     0     0
\t  mirror-0       ONLINE       0     0     0
\t    /dev/sda1    ONLINE       0     0     0
\t    /dev/sdb1    FAULTED      0     0     0  too many errors
\tlogs
\t  /dev/nvme0n1p4 ONLINE       0     0     0
\tspares
\t  /dev/sdz1      AVAIL

errors: No known data errors

  pool: my pool
config:

\tmy pool      ONLINE       0     0     0
\t  /var/disk  ONLINE       0     0     0
\t  /dev/sdq   ONLINE       0     0     0
`
  assert.equal(
    parseZpoolStatus(text).map(({ pool, path }) => `${pool} ${path}`),
    [
      'tank /dev/sda1',
      'tank /dev/sdb1',
      'tank /dev/nvme0n1p4',
      'tank /dev/sdz1',
      'my pool /dev/sdq',
    ],
  )
})

test('nothing, and anything', () => {
  assert.equal(parseZpoolStatus('no pools available\n'), [])
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => void parseZpoolStatus(text)))
})

const first = (line: string) => parseMountinfo(line)[0]
const pointOf = (point: string) => first(`1 1 8:1 / ${point} rw - ext4 /dev/sda1 rw`)?.point

test('reads a line with no, one and many optional fields', () => {
  for (const optional of ['', 'shared:1 ', 'shared:5 master:2 propagate_from:9 unbindable ']) {
    const line = `27 1 254:0 /sub /mnt rw,relatime ${optional}- ext4 /dev/vda rw,discard`
    assert.equal(first(line), {
      id: 27,
      dev: '254:0',
      point: '/mnt',
      fstype: 'ext4',
      source: '/dev/vda',
      options: ['rw', 'discard'],
    })
  }
})

test('undoes octal escapes, byte by byte', () => {
  assert.is(pointOf('/a\\040b\\011c\\012d\\134e'), '/a b\tc\nd\\e')
  assert.is(pointOf('/\\303\\244'), '/ä')
  assert.is(pointOf('/\\134040'), '/\\040')
  assert.is(pointOf('/\\08x\\400\\'), '/\\08x\\400\\')
})

test('white space that the kernel leaves alone does not hide a mount', () => {
  for (const odd of ['\u00a0', '\u2028', '\r', '\v', '\f'])
    assert.is(pointOf(`/a${odd}b`), `/a${odd}b`)
})

test('a mount point called - is no end of the optional fields', () => {
  assert.is(first('1 1 8:1 / - rw - ext4 /dev/sda1 rw')?.fstype, 'ext4')
})

test('leaves out lines of another shape', () => {
  const good = '1 1 8:1 / / rw - ext4 /dev/sda1 rw'
  const text = ['', 'x', '1 1 8:1 / / rw', `x${good}`, '1 1 8 / / rw - a b c', good, ''].join('\n')
  assert.is(parseMountinfo(text).length, 1)
})

test('any text gives mounts or nothing', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
      parseMountinfo(text)
      parseSwaps(text)
      for (const mount of parseMountinfo(`1 1 8:1 / / rw - overlay o ${text}`))
        parseOverlayFolders(mount)
    }),
  )
})

test('swap: devices, not files', () => {
  const text = `Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority
/dev/dm-2                               partition\t8388604\t\t0\t\t-2
/swap.img                               file\t\t2097148\t\t0\t\t-3
/dev/my\\040disk\\040(deleted)            partition\t1024\t\t0\t\t-4
`
  assert.equal(parseSwaps(text), ['/dev/dm-2', '/dev/my disk'])
  assert.equal(parseSwaps(''), [])
})

test('a path lies in the longest mount point, the last one mounted there', () => {
  const mounts = parseMountinfo(
    ['/', '/mnt', '/mnt/a', '/mnt/a']
      .map((point, n) => `${n} 1 8:${n} / ${point} rw - ext4 x rw`)
      .join('\n'),
  )
  const cases: readonly (readonly [string, number])[] = [
    ['/', 0],
    ['/mntx', 0],
    ['/mnt', 1],
    ['/mnt/b', 1],
    ['/mnt/a', 3],
    ['/mnt/a/b/c', 3],
  ]
  for (const [path, id] of cases) assert.is(findMount(mounts, path)?.id, id, path)
  assert.is(findMount([], '/'), null)
})

const folders = (options: string, type = 'overlay') =>
  parseMountinfo(`1 1 0:9 / / rw - ${type} none ${options}`).flatMap(parseOverlayFolders)

test('the folders of an overlay, however the kernel spells them', () => {
  assert.equal(folders('rw,lowerdir=/a:/b\\134:c::/d,upperdir=/u,workdir=/w'), [
    '/a',
    '/b:c',
    '/d',
    '/u',
    '/w',
  ])
  assert.equal(folders('ro,lowerdir+=/a,lowerdir+=/b:b,datadir+=/c'), ['/a', '/b:b', '/c'])
  assert.equal(folders('rw,lowerdir=/a', 'ext4'), [])
})

test.run()
