import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { AreaRole } from '#engine/capture/rules/areas.ts'
import {
  decideFates,
  planLayout,
  planSize,
  renderStay,
  type ShrinkDisk,
  type ShrinkPart,
} from '#engine/shrink/rules/shrink-plan.ts'
import { planHiddenSectors } from '#engine/shrink/rules/shrunk-table.ts'

const test = suite('shrink plan')
const MIB = 1 << 20

/** First bytes of a partition, as blkid would know it. */
const FIRST: Readonly<Record<string, (first: Buffer) => void>> = {
  ext(first) {
    first.writeUInt16LE(0xef53, 1080)
    first.writeUInt16LE(1, 1024 + 0x3a)
    first.writeUInt32LE(0x42, 1024 + 0x60)
  },
  dirty(first) {
    FIRST['ext']?.(first)
    first.writeUInt32LE(0x46, 1024 + 0x60)
  },
  inline(first) {
    FIRST['ext']?.(first)
    first.writeUInt32LE(0x8042, 1024 + 0x60)
  },
  extlinux(first) {
    FIRST['ext']?.(first)
    first.write('anything', 0)
  },
  ntfs(first) {
    first.write('NTFS    ', 3)
    first.write('BOOTMGR is missing', 400)
  },
  fat: (first) => first.write('FAT32', 82),
  syslinux(first) {
    FIRST['fat']?.(first)
    first.write('SYSLINUX', 3)
  },
  xfs: (first) => first.write('XFSB'),
  btrfs(first) {
    first.write('_BHRfS_M', 0x1_0040)
    first.writeBigUInt64LE(1n, 0x1_0088)
  },
  swap: (first) => first.write('SWAPSPACE2', 4086),
  lvm: (first) => first.write('LABELONE', 512),
  luks: (first) => first.write('LUKS\u00ba\u00be', 'latin1'),
  bitlocker: (first) => first.write('-FVE-FS-', 3),
  unknown: () => undefined,
}

interface Row {
  readonly kind: string
  readonly megabytes?: number
  readonly role?: AreaRole
  readonly isWalled?: boolean
  readonly isHashed?: boolean
  readonly more?: Partial<ShrinkPart>
  /** Bytes that are written over its first ones. */
  readonly over?: readonly (readonly [number, string])[]
}

/** As blkid names what the rows hold. */
const TYPES: Readonly<Record<string, string>> = { ext: 'ext4', fat: 'vfat' }
const typeOf = (kind: string) =>
  ['dirty', 'inline', 'extlinux'].includes(kind) ? 'ext4' : (TYPES[kind] ?? kind)

function makeDisk(rows: readonly Row[], more: Partial<ShrinkDisk> = {}): ShrinkDisk {
  let offset = MIB
  const parts = rows.map((row, index): ShrinkPart => {
    const first = Buffer.alloc(128 * 1024)
    FIRST[row.kind]?.(first)
    for (const [at, text] of row.over ?? []) first.write(text, at, 'latin1')
    const bytes = (row.megabytes ?? 100) * MIB
    const { role = row.kind === 'swap' ? 'swap' : 'data', isWalled = false, isHashed = false } = row
    const part = { number: index + 1, role, offset, bytes, first, isWalled, isHashed }
    offset += bytes
    const type = typeOf(row.kind)
    return { ...part, type, isFollowed: false, ntfsState: 0, ...row.more }
  })
  const head = Buffer.alloc(MIB)
  head.writeUInt32LE(128, 512 + 80)
  head.writeUInt32LE(128, 512 + 84)
  const rest = { sectorBytes: 512, isGpt: true, head, grubCore: null, isTailUsed: false }
  return { ...rest, sizeBytes: offset + MIB, parts, ...more }
}

/** Which of them are tried, and why the first of the others stays. */
function decide(rows: readonly Row[], more: Partial<ShrinkDisk> = {}) {
  const fates = decideFates(makeDisk(rows, more))
  return {
    tried: fates.filter(({ why }) => why === null).map(({ part }) => part.number),
    why: fates.find(({ why }) => why !== null)?.why ?? '',
  }
}

test('ext4 and NTFS are tried, nothing else', () => {
  for (const kind of ['ext', 'ntfs']) assert.equal(decide([{ kind }]).tried, [1])
  assert.match(decide([{ kind: 'btrfs' }]).why, /only where it is mounted/)
  for (const kind of ['fat', 'xfs', 'btrfs', 'swap', 'lvm', 'luks', 'bitlocker', 'unknown']) {
    assert.equal(decide([{ kind }]).tried, [], kind)
  }
})

const VSS = [0x1e00, '\x6b\x87\x08\x38\x76\xc1\x48\x4e\xb7\xae\x04\x04\x6e\x6c\xc7\x52'] as const

const STAYS: readonly (readonly [Row, RegExp])[] = [
  [{ kind: 'dirty' }, /not unmounted cleanly/],
  [{ kind: 'inline' }, /cannot be compared/],
  [{ kind: 'extlinux' }, /boot loader in it/],
  [{ kind: 'ext', isHashed: true }, /dm-verity/],
  [{ kind: 'ext', role: 'other' }, /holds nothing that can shrink/],
  [{ kind: 'ext', role: 'boot-loader' }, /holds nothing/],
  [{ kind: 'ext', more: { isFollowed: true } }, /data lies behind its file system/],
  [{ kind: 'ext', more: { type: 'linux_raid_member' } }, /something else \(linux_raid_member\)/],
  [{ kind: 'ext', more: { type: null } }, /something else \(unclear\)/],
  [{ kind: 'ntfs', more: { ntfsState: 15 } }, /not unmounted cleanly: shut Windows down/],
  [{ kind: 'ntfs', more: { ntfsState: 13 } }, /ntfs-3g cannot read it/],
  // SYSLINUX on NTFS.
  [{ kind: 'ntfs', over: [[400, 'Boot error\r\n\0\0\0\0\0\0']] }, /boot loader in it/],
  [{ kind: 'ntfs', over: [VSS, [0x1e30, '\x40']] }, /delete its shadow copies first/],
]

test('what stays, and its reason is said; what is pinned keeps what lies in front of it', () => {
  for (const [row, words] of STAYS) {
    const { tried, why } = decide([row])
    assert.equal(tried, [])
    assert.match(why, words)
    if (row.more !== undefined || row.over !== undefined) {
      assert.equal(decide([{ kind: 'ext' }, row]).tried, [])
    }
  }
  const codes = ['NTLDR is missing\0\0', 'This is not a bootable disk']
  for (const code of codes) {
    assert.equal(decide([{ kind: 'ntfs', over: [[400, code]] }]).tried, [1])
  }
  assert.equal(decide([{ kind: 'ntfs', over: [VSS] }]).tried, [1], 'without a catalog')
})

const STOPS: readonly (readonly [Row, RegExp])[] = [
  ...[4096, 16_384, 65_536].flatMap((page) =>
    ['S1SUSPEND', 'S2SUSPEND', 'ULSUSPEND'].map(
      (word) =>
        [
          { kind: 'unknown', over: [[page - 10, word]] },
          /a Linux is hibernated in partition 2/,
        ] as const,
    ),
  ),
  [{ kind: 'ntfs', more: { ntfsState: 14 } }, /Windows is hibernated in partition 2/],
  [{ kind: 'lvm', over: [[6, 'LILO']] }, /LILO/],
  [{ kind: 'ext', over: [[0x180, 'GRUB ']] }, /GRUB/],
  [{ kind: 'fat', over: [[0x17d, 'GRUB ']] }, /GRUB/],
  [{ kind: 'unknown', role: 'extended' }, /extended partition/],
]

test('hibernated, loaders in partitions, an extended partition: nothing shrinks, behind it neither', () => {
  for (const [row, words] of STOPS) {
    const { tried, why } = decide([{ kind: 'ext' }, row, { kind: 'ext' }])
    assert.equal(tried, [])
    assert.match(why, words)
  }
})

test('nothing in front of what never moves is tried; behind it, and in front of what moves, it is', () => {
  for (const kind of ['lvm', 'luks', 'bitlocker', 'unknown', 'syslinux', 'extlinux']) {
    assert.equal(decide([{ kind: 'ext' }, { kind }, { kind: 'ext' }]).tried, [3], kind)
  }
  assert.equal(decide([{ kind: 'ext' }, { kind: 'ext', role: 'other' }]).tried, [])
  for (const kind of ['swap', 'fat', 'xfs', 'btrfs']) {
    assert.equal(decide([{ kind: 'ext' }, { kind }]).tried, [1], kind)
  }
  assert.equal(decide([{ kind: 'ext' }, { kind: 'ext', isWalled: true }]).tried, [2])
  assert.equal(decide([{ kind: 'ext' }], { isTailUsed: true }).tried, [])
})

test('Windows on an MBR: only the last volume; on a GPT any', () => {
  const rows = [{ kind: 'ntfs' }, { kind: 'ntfs' }]
  assert.equal(decide(rows, { isGpt: false }).tried, [2])
  assert.equal(decide([{ kind: 'ntfs' }, { kind: 'fat' }], { isGpt: false }).tried, [])
  assert.equal(decide(rows).tried, [1, 2])
  const dirty = { kind: 'ntfs', more: { ntfsState: 15 } }
  assert.equal(decide([dirty, { kind: 'ext' }, { kind: 'fat' }], { isGpt: false }).tried, [])
})

test('GRUB: a list of blocks inside a file system pins it, one in the gap or in its partition does not', () => {
  const head = Buffer.alloc(MIB)
  head.write('GRUB', 0x180)
  head.writeBigUInt64LE(1n, 0x5c)
  const core = Buffer.alloc(512)
  const listed = (sector: number) => {
    const changed = Buffer.from(core)
    changed.writeBigUInt64LE(BigInt(sector), 500)
    changed.writeUInt16LE(9, 508)
    return changed
  }
  assert.equal(decide([{ kind: 'ext' }], { head, grubCore: listed(2) }).tried, [1])
  assert.equal(decide([{ kind: 'ext' }], { head, grubCore: listed(5000) }).tried, [])
  const pointed = Buffer.from(head)
  pointed.writeBigUInt64LE(2048n, 0x5c)
  assert.equal(decide([{ kind: 'ext' }], { head: pointed, grubCore: core }).tried, [])
  const lost = /a GRUB of this image loads what is not known here/
  assert.match(decide([{ kind: 'ext' }], { head, grubCore: null }).why, lost)
  assert.match(decide([{ kind: 'ext' }], { head, grubCore: listed(10 ** 9) }).why, lost)
  const without = Buffer.from(head)
  without.writeBigUInt64LE(0n, 0x5c)
  assert.match(decide([{ kind: 'ext' }], { head: without, grubCore: core }).why, lost)
  for (const [name, at] of [
    ['LILO', 6],
    ['zIPL', 0],
  ] as const) {
    const other = Buffer.alloc(MIB)
    other.write(name, at)
    assert.match(decide([{ kind: 'ext' }], { head: other }).why, name)
  }
})

function lay(rows: readonly Row[], sizes: Readonly<Record<number, number>>) {
  const disk = makeDisk(rows)
  const fates = decideFates(disk)
  const shrunk = new Map(Object.entries(sizes).map(([key, mib]) => [Number(key), mib * MIB]))
  const { places, sizeBytes, notes } = planLayout(disk, fates, shrunk)
  const rowsOf = places.map(({ number, to, bytes }) => [number, to / MIB, bytes / MIB])
  return { rows: rowsOf, megabytes: sizeBytes / MIB, notes }
}

test('what shrank most is the last one; what lies in front stays, and the backup table has room', () => {
  assert.equal(lay([{ kind: 'fat' }, { kind: 'ext' }], { 2: 20 }), {
    rows: [[2, 101, 20]],
    megabytes: 122,
    notes: [],
  })
  assert.equal(lay([{ kind: 'ext' }, { kind: 'swap', megabytes: 8 }], { 1: 20 }), {
    rows: [
      [2, 1, 8],
      [1, 9, 20],
    ],
    megabytes: 30,
    notes: [],
  })
  const many = lay([{ kind: 'ext' }, { kind: 'ntfs', megabytes: 300 }, { kind: 'fat' }], {
    1: 10,
    2: 50,
  })
  assert.equal(many.rows, [
    [3, 1, 100],
    [1, 101, 10],
    [2, 111, 50],
  ])
  assert.match(many.notes.join(' '), /Partition 1 \(ext4\) is not the last one.*reagentc/)
  // The first one did not shrink after all: it stays where it is.
  const second = lay([{ kind: 'ext' }, { kind: 'ext' }], { 2: 10 })
  assert.equal(second.rows, [[2, 101, 10]])
})

test('the reserve counts from the least size, in whole MiB', () => {
  assert.is(planSize(10 * MIB, 10), 11 * MIB)
  assert.is(planSize(10 * MIB + 1, 0), 11 * MIB)
  assert.is(
    renderStay(3, 'XFS', 'XFS cannot shrink'),
    'Partition 3 (XFS) keeps its size: XFS cannot shrink.',
  )
})

test('hidden sectors: in both boot sectors of what moved, in sectors of its own', () => {
  const edge = Buffer.alloc(4096)
  edge.writeUInt16LE(512, 11)
  edge.writeUInt16LE(32, 14)
  edge.writeUInt16LE(6, 0x32)
  edge.set([0xeb, 0x58], 6 * 512)
  edge.writeUInt16LE(0xaa55, 6 * 512 + 510)
  const place = { number: 1, words: '', from: 5 * MIB, to: MIB, oldBytes: MIB, bytes: MIB }
  const fat = planHiddenSectors({ ...place, kind: 'fat' }, edge, edge)
  assert.equal(
    fat.map(({ offset, bytes }) => [offset, bytes.readUInt32LE()]),
    [
      [28, 2048],
      [6 * 512 + 28, 2048],
    ],
  )
  // A copy outside of what is reserved, or where none is.
  for (const [copy, reserved] of [
    [60_000, 32],
    [60_000, 65_535],
    [6, 6],
    [5, 32],
  ] as const) {
    const odd = Buffer.from(edge)
    odd.writeUInt16LE(reserved, 14)
    odd.writeUInt16LE(copy, 0x32)
    assert.is(planHiddenSectors({ ...place, kind: 'fat' }, odd, edge).length, 1)
  }
  assert.equal(planHiddenSectors({ ...place, kind: 'fat', from: MIB }, edge, edge), [])
  assert.equal(planHiddenSectors({ ...place, kind: 'ext' }, edge, edge), [])
  const ntfs = planHiddenSectors({ ...place, kind: 'ntfs', oldBytes: 2 * MIB }, edge, edge)
  assert.equal(
    ntfs.map(({ offset, bytes }) => [offset, bytes.length]),
    [
      [0, 512],
      [MIB - 512, 512],
    ],
  )
})

test.run()
