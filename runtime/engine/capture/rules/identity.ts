/** The files by which machines know each other or themselves, and debugfs's words about them. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Range } from '#engine/disk/rules/extents.ts'

interface IdentityFolder {
  /** From the root of the file system, or of a partition mounted at /var. */
  readonly folder: string
  readonly names: RegExp
}

const SYSTEM: readonly IdentityFolder[] = [
  { folder: '/etc', names: /^machine-id$/ },
  { folder: '/etc/ssh', names: /^ssh_host_[a-z0-9]+_key(\.pub)?$/ },
]

/** Below /var, which may be a partition of its own. */
const VARIABLE: readonly IdentityFolder[] = [
  { folder: '/lib/systemd', names: /^random-seed$/ },
  { folder: '/lib/dhcp', names: /^dhclient[\w.-]*\.leases?$/ },
  { folder: '/lib/dhcpcd', names: /^(duid|secret|[\w.-]+\.lease6?)$/ },
  { folder: '/lib/NetworkManager', names: /^(secret_key|[\w.-]+\.lease)$/ },
]

export const IDENTITY_FOLDERS: readonly IdentityFolder[] = [
  ...SYSTEM,
  ...VARIABLE.map(({ folder, names }) => ({ folder: `/var${folder}`, names })),
  ...VARIABLE,
]

export interface FoundFile {
  readonly inode: number
  readonly path: string
}

const REGULAR = 0o10

/** debugfs exits with 0 for most of what it cannot read. */
interface FolderListing {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

/** Every folder has an entry of itself. */
const ITSELF = /^\/\d+\/\d{6}\/\d+\/\d+\/\.\/\d*\/\s*$/m
const ABSENT = /: File not found by ext2_lookup\s*$/m

/**
 * debugfs's `ls -p`: `/inode/mode/uid/gid/name/size/` in each line. Only files with content. Null:
 * the folder could not be read.
 */
export function parseListing(
  { exitCode, stdout, stderr }: FolderListing,
  { folder, names }: IdentityFolder,
): readonly FoundFile[] | null {
  if (exitCode !== 0 || (!ITSELF.test(stdout) && !ABSENT.test(stderr))) return null
  return stdout.split('\n').flatMap((line) => {
    const found = /^\/(\d{1,10})\/(\d{6})\/\d+\/\d+\/([^/]{1,255})\/(\d+)\/$/.exec(line.trim())
    const [, inode = '', mode = '', name = '', size = ''] = found ?? []
    const isFile = Number.parseInt(mode.slice(0, 2), 8) === REGULAR
    if (!isFile || Number(size) === 0 || !names.test(name)) return []
    return [{ inode: Number(inode), path: `${folder}/${name}` }]
  })
}

/** debugfs's `imap`. Null: it printed something else. */
export function parseInodeRange(
  text: string,
  { blockBytes, inodeBytes }: { readonly blockBytes: number; readonly inodeBytes: number },
): { readonly offset: number; readonly bytes: number } | null {
  const found = /located at block (\d{1,15}), offset 0x([0-9a-fA-F]{1,8})\b/.exec(text)
  if (found === null) return null
  const [, block = '', within = ''] = found
  return { offset: Number(block) * blockBytes + Number.parseInt(within, 16), bytes: inodeBytes }
}

/** They hold no system with such files. */
const WITHOUT_IDENTITY = ['vfat', 'exfat']

/** Null: it can be generalized, or need not. `whole`: why its used blocks are unknown. */
export function decideGeneralizing(type: string | null, whole: string | null): string | null {
  if (type === null) return 'there is a partition with unknown contents'
  if (WITHOUT_IDENTITY.includes(type)) return null
  return /^(ext[234]|swap)$/.test(type)
    ? whole
    : `only ext4 can be, and there is a partition with ${type}`
}

// Empties a file of an ext4 file system in the bytes of its inode: length 0, its blocks kept but unwritten.

/** Offsets in a superblock, which begins 1024 bytes into the file system. */
const SUPER_AT = {
  logBlock: 0x18,
  inodeBytes: 0x58,
  incompatible: 0x60,
  readonlyCompatible: 0x64,
  uuid: 0x68,
  seed: 0x270,
} as const
const METADATA_CSUM = 0x400
const CSUM_SEED = 0x2000

interface InodeFacts {
  readonly blockBytes: number
  readonly inodeBytes: number
  /** Null: inodes have no checksum. */
  readonly seed: number | null
}

export function readExtFacts(first: Buffer): InodeFacts {
  const block = first.subarray(1024, 2048)
  const hasSum = (block.readUInt32LE(SUPER_AT.readonlyCompatible) & METADATA_CSUM) !== 0
  const hasSeed = (block.readUInt32LE(SUPER_AT.incompatible) & CSUM_SEED) !== 0
  const uuid = block.subarray(SUPER_AT.uuid, SUPER_AT.uuid + 16)
  const seed = hasSeed ? block.readUInt32LE(SUPER_AT.seed) : crc32c(uuid, 0xffff_ffff)
  return {
    blockBytes: 1024 << (block.readUInt32LE(SUPER_AT.logBlock) & 7),
    inodeBytes: block.readUInt16LE(SUPER_AT.inodeBytes),
    seed: hasSum ? seed : null,
  }
}

const AT = {
  mode: 0,
  size: 4,
  flags: 0x20,
  magic: 0x28,
  entries: 0x2a,
  depth: 0x2e,
  extents: 0x34,
  generation: 0x64,
  sizeHigh: 0x6c,
  sumLow: 0x7c,
  extraBytes: 0x80,
  sumHigh: 0x82,
} as const
const EXTENT_BYTES = 12
/** An inode itself holds so many. */
const MAX_EXTENTS = 4
const EXTENTS_MAGIC = 0xf30a
const USES_EXTENTS = 0x8_0000
/** No such file is nearly as large. */
const MAX_CONTENT_BYTES = 16 * 1024 * 1024
/** Marks an extent whose blocks are allocated, but read as zeros. */
const UNWRITTEN = 0x8000

interface EmptiedFile {
  readonly inode: Buffer
  readonly content: readonly Range[]
}

type InodeRefusal = 'not-a-file' | 'no-extents' | 'too-large'

/** `number`: the inode's, from 1. */
export function emptyFile(
  inode: Buffer,
  number: number,
  { blockBytes, seed }: InodeFacts,
): Result<EmptiedFile, InodeRefusal> {
  if ((inode.readUInt16LE(AT.mode) & 0xf000) !== 0x8000) return refuse('not-a-file')
  const hasExtents = (inode.readUInt32LE(AT.flags) & USES_EXTENTS) !== 0
  if (!hasExtents || inode.readUInt16LE(AT.magic) !== EXTENTS_MAGIC) return refuse('no-extents')
  const entries = inode.readUInt16LE(AT.entries)
  if (inode.readUInt16LE(AT.depth) !== 0 || entries > MAX_EXTENTS) return refuse('too-large')
  const emptied = Buffer.from(inode)
  const content: Range[] = []
  for (let index = 0; index < entries; index += 1) {
    const extent = emptied.subarray(AT.extents + index * EXTENT_BYTES)
    const length = extent.readUInt16LE(4)
    if (length === UNWRITTEN) return refuse('too-large')
    const blocks = length & ~UNWRITTEN
    const first = extent.readUInt16LE(6) * 2 ** 32 + extent.readUInt32LE(8)
    content.push({ offset: first * blockBytes, bytes: blocks * blockBytes })
    extent.writeUInt16LE(blocks | UNWRITTEN, 4)
  }
  if (content.reduce((sum, { bytes }) => sum + bytes, 0) > MAX_CONTENT_BYTES) {
    return refuse('too-large')
  }
  emptied.writeUInt32LE(0, AT.size)
  emptied.writeUInt32LE(0, AT.sizeHigh)
  if (seed !== null) seal(emptied, number, seed)
  return accept({ inode: emptied, content })
}

function seal(inode: Buffer, number: number, seed: number) {
  // The upper half is there where the inode is large enough.
  const hasHigh = inode.length > 128 && inode.readUInt16LE(AT.extraBytes) >= 4
  inode.writeUInt16LE(0, AT.sumLow)
  if (hasHigh) inode.writeUInt16LE(0, AT.sumHigh)
  const name = Buffer.alloc(4)
  name.writeUInt32LE(number)
  const generation = inode.subarray(AT.generation, AT.generation + 4)
  const sum = crc32c(inode, crc32c(generation, crc32c(name, seed)))
  inode.writeUInt16LE(sum & 0xffff, AT.sumLow)
  if (hasHigh) inode.writeUInt16LE(sum >>> 16, AT.sumHigh)
}

const REFUSALS: Readonly<Record<InodeRefusal, string>> = {
  'not-a-file': 'it is not a file',
  'no-extents': 'its file system keeps it in blocks without extents',
  'too-large': 'it is too large or too fragmented',
}

export const renderInodeRefusal = (refusal: InodeRefusal): string => REFUSALS[refusal]

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit += 1) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0x82f6_3b78 : crc >>> 1
  return crc >>> 0
})

function crc32c(bytes: Uint8Array, before: number): number {
  let crc = before >>> 0
  for (const byte of bytes) crc = (TABLE[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8)
  return crc >>> 0
}
