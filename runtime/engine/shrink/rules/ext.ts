/** Reads ext2, ext3 and ext4 as they lie on a disk, as far as a comparison of two of them needs it. */

const SUPER = 1024
/** Offsets in the superblock. */
const AT = { state: 0x3a, compatible: 0x5c, incompatible: 0x60, readOnly: 0x64 } as const
const ORPHAN_FILE = { compatible: 0x1000, readOnly: 0x1_0000 } as const

/** Features that the comparison understands. */
const KNOWN = {
  // dir_prealloc, imagic, has_journal, ext_attr, resize_inode, dir_index, sparse_super2, fast_commit, stable_inodes, orphan_file
  compatible: 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x20 | 0x200 | 0x400 | 0x800 | 0x1000,
  // filetype, extents, 64bit, mmp, flex_bg, csum_seed, largedir, encrypt, casefold
  incompatible: 0x2 | 0x40 | 0x80 | 0x100 | 0x200 | 0x2000 | 0x4000 | 0x1_0000 | 0x2_0000,
  // sparse_super, large_file, btree_dir, huge_file, gdt_csum, dir_nlink, extra_isize, quota, metadata_csum, read-only, project, verity
  readOnly: 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x20 | 0x40 | 0x100 | 0x400 | 0x1000 | 0x2000 | 0x8000,
} as const
const RECOVER = 0x4
const HAS_JOURNAL = 0x4

/** Why it is not shrunk, as a clause; null: nothing speaks against it. */
export function judgeExt(first: Buffer): string | null {
  const at = (offset: number) => first.readUInt32LE(SUPER + offset)
  const state = first.readUInt16LE(SUPER + AT.state)
  if ((at(AT.incompatible) & RECOVER) !== 0 || (state & 1) === 0) return UNCLEAN
  if ((state & 2) !== 0) return 'it has errors: repair it with e2fsck first'
  if ((at(AT.compatible) & HAS_JOURNAL) !== 0 && at(0xe0) === 0) {
    return 'its journal lies on another disk'
  }
  const unknown = (Object.keys(KNOWN) as (keyof typeof KNOWN)[]).filter(
    (set) => (at(AT[set]) & ~KNOWN[set]) !== 0,
  )
  return unknown.length === 0 ? null : 'it has features that cannot be compared afterwards'
}

const UNCLEAN = 'it was not unmounted cleanly: start the system once, and shut it down'

export type ExtLayout = ReturnType<typeof parseExtLayout>

/** `block`: the superblock. */
export function parseExtLayout(block: Buffer) {
  const at = (offset: number) => block.readUInt32LE(offset)
  const isLong = (at(AT.incompatible) & 0x80) !== 0
  const blockBytes = 1024 << (at(0x18) & 15)
  return {
    blockBytes,
    blocks: at(0x04) + (isLong ? at(0x150) * 2 ** 32 : 0),
    inodes: at(0x00),
    inodesPerGroup: at(0x28),
    inodeBytes: at(0x4c) === 0 ? 128 : block.readUInt16LE(0x58),
    descriptorBytes: isLong ? block.readUInt16LE(0xfe) : 32,
    descriptorsAt: (Math.floor(SUPER / blockBytes) + 1) * blockBytes,
    identity: readIdentity(block),
  }
}

/** What must be the same afterwards: UUID, name, features, hash seed, defaults, times of making. */
function readIdentity(block: Buffer): Buffer {
  const kept: readonly (readonly [number, number])[] = [
    [0x3c, 2],
    [0x50, 4],
    [0x58, 2],
    [AT.incompatible, 4],
    [0x68, 32],
    [0xec, 17],
    [0x100, 4],
    [0x108, 4],
    [0x15c, 4],
    [0x254, 16],
    [0x270, 4],
  ]
  const compatible = Buffer.alloc(8)
  const unmasked = (offset: number, mask: number) => (block.readUInt32LE(offset) & ~mask) >>> 0
  compatible.writeUInt32LE(unmasked(AT.compatible, 0))
  compatible.writeUInt32LE(unmasked(AT.readOnly, ORPHAN_FILE.readOnly), 4)
  return Buffer.concat([
    compatible,
    ...kept.map(([from, bytes]) => block.subarray(from, from + bytes)),
  ])
}

export function locateInode(layout: ExtLayout, inode: number) {
  const { inodesPerGroup, descriptorBytes, descriptorsAt, inodeBytes } = layout
  const index = inode - 1
  const group = Math.floor(index / inodesPerGroup)
  return {
    descriptor: { offset: descriptorsAt + group * descriptorBytes, bytes: descriptorBytes },
    /** Of the inode table. */
    within: (index % inodesPerGroup) * inodeBytes,
  }
}

export const parseInodeTable = (descriptor: Buffer, { blockBytes }: ExtLayout): number =>
  (descriptor.readUInt32LE(8) +
    (descriptor.length >= 64 ? descriptor.readUInt32LE(0x28) : 0) * 2 ** 32) *
  blockBytes

const EXTENTS = 0x8_0000
const KINDS: Readonly<Record<number, 'file' | 'folder' | 'link'>> = {
  0x8000: 'file',
  0x4000: 'folder',
  0xa000: 'link',
}
const FAST_LINK_BYTES = 60

export type Inode = ReturnType<typeof parseInode>

export function parseInode(raw: Buffer) {
  const kind = KINDS[raw.readUInt16LE(0) & 0xf000] ?? 'special'
  const flags = raw.readUInt32LE(32)
  const sizeBytes = raw.readUInt32LE(4) + raw.readUInt32LE(108) * 2 ** 32
  const hasExtents = (flags & EXTENTS) !== 0
  const isFast = kind === 'link' && !hasExtents && sizeBytes < FAST_LINK_BYTES
  const extra = raw.length > 128 ? raw.readUInt16LE(128) : 0
  const isMapped = kind !== 'special' && !isFast
  const own = raw.subarray(0, 128 + extra)
  return {
    kind,
    hasExtents,
    isMapped,
    sizeBytes,
    map: raw.subarray(40, 100),
    attributesBlock: raw.readUInt32LE(104) + raw.readUInt16LE(118) * 2 ** 32,
    attributes: parseAttributes(raw.subarray(128 + extra), 4, MAGIC_BYTES),
    /** Everything that no move changes; the times of content and of the inode apart. */
    kept: clear(own, [
      ...TIMES.map(({ at }) => [at, 4] as const),
      [28, 4],
      [116, 2],
      [104, 4],
      [118, 2],
      [124, 2],
      [130, 2],
      ...(isMapped ? ([[40, 60]] as const) : []),
    ]),
    times: TIMES.flatMap(({ field, at }) =>
      at + 4 <= own.length ? [`${field} ${own.readUInt32LE(at)}`] : [],
    ),
  }
}

/** resize2fs sets them where a number of an inode changes; as debugfs calls them. */
const TIMES = [
  { field: 'ctime', at: 12 },
  { field: 'mtime', at: 16 },
  { field: 'ctime_extra', at: 132 },
  { field: 'mtime_extra', at: 136 },
] as const

/** Lines for debugfs. The low half of a time comes first: setting it may touch the other. */
export const renderTimes = (inode: number, times: readonly string[]): readonly string[] =>
  times.map((time) => {
    const [field = '', value = ''] = time.split(' ')
    const isExtra = field.endsWith('_extra')
    return `set_inode_field <${inode}> ${field} ${isExtra ? '' : '@'}${value}`
  })

function clear(bytes: Buffer, ranges: readonly (readonly [number, number])[]): Buffer {
  const copy = Buffer.from(bytes)
  for (const [at, length] of ranges) copy.subarray(at, at + length).fill(0)
  return copy
}

const ATTRIBUTES = 0xea02_0000
const MAGIC_BYTES = 4
export const ATTRIBUTES_HEAD = 32

/**
 * Extended attributes and ACLs: names with their values, sorted. `head`: bytes before the first;
 * places of values count from `base`. Throws where they cannot be read.
 */
export function parseAttributes(bytes: Buffer, head: number, base: number): readonly string[] {
  if (bytes.length < head || bytes.readUInt32LE(0) !== ATTRIBUTES) return []
  const found: string[] = []
  for (let at = head; at + 4 <= bytes.length && bytes.readUInt32LE(at) !== 0;) {
    const nameBytes = bytes.readUInt8(at)
    const size = bytes.readUInt32LE(at + 8)
    const start = base + bytes.readUInt16LE(at + 2)
    if (bytes.readUInt32LE(at + 4) !== 0 || start + size > bytes.length) throw new RangeError()
    const name = bytes.toString('hex', at + 16, at + 16 + nameBytes)
    found.push(`${bytes.readUInt8(at + 1)}:${name}=${bytes.toString('hex', start, start + size)}`)
    at += Math.ceil((16 + nameBytes) / 4) * 4
  }
  return found.toSorted()
}

/** In blocks; `isUnwritten`: it reads as zeros. */
export interface Extent {
  readonly logical: number
  readonly physical: number
  readonly count: number
  readonly isUnwritten: boolean
}

type ExtentNode =
  | { readonly kind: 'leaf'; readonly extents: readonly Extent[] }
  | { readonly kind: 'index'; readonly children: readonly number[] }

const EXTENT_MAGIC = 0xf30a
const MAX_WRITTEN = 32_768

/** Throws where it cannot be read. */
export function parseExtentNode(node: Buffer): ExtentNode {
  const [count, depth] = [node.readUInt16LE(2), node.readUInt16LE(6)]
  if (node.readUInt16LE(0) !== EXTENT_MAGIC || depth > 5) throw new RangeError()
  const rows = Array.from({ length: count }, (_, index) =>
    node.subarray(12 + index * 12, 24 + index * 12),
  )
  if (depth > 0) {
    const children = rows.map((row) => row.readUInt32LE(4) + row.readUInt16LE(8) * 2 ** 32)
    return { kind: 'index', children }
  }
  return {
    kind: 'leaf',
    extents: rows.map((row) => {
      const length = row.readUInt16LE(4)
      const isUnwritten = length > MAX_WRITTEN
      return {
        logical: row.readUInt32LE(0),
        physical: row.readUInt32LE(8) + row.readUInt16LE(6) * 2 ** 32,
        count: isUnwritten ? length - MAX_WRITTEN : length,
        isUnwritten,
      }
    }),
  }
}

export interface FolderEntry {
  readonly name: string
  readonly inode: number
  readonly type: number
}

/** Of one block of a folder; those of its index hold none. Throws where it cannot be read. */
export function parseFolderBlock(block: Buffer): readonly FolderEntry[] {
  const entries: FolderEntry[] = []
  for (let at = 0; at + 8 <= block.length;) {
    const stored = block.readUInt16LE(at + 4)
    const isLong = block.length > 32_768
    const length = isLong && (stored === 0 || stored === 65_535) ? 65_536 : stored
    const inode = block.readUInt32LE(at)
    const nameBytes = block.readUInt8(at + 6)
    if (length < 8 || at + length > block.length || nameBytes + 8 > length) throw new RangeError()
    const name = block.toString('latin1', at + 8, at + 8 + nameBytes)
    if (inode !== 0) entries.push({ name, inode, type: block.readUInt8(at + 7) })
    at += length
  }
  return entries
}
