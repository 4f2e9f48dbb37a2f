/** Compares two ext file systems, one of them shrunk: every name, content, owner, mode, time, link, attribute and ACL. */
import type { Range } from '#engine/disk/rules/extents.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { isSameContent, type Piece, type ReadBytes } from './content-comparison.ts'
import {
  ATTRIBUTES_HEAD,
  type Extent,
  type ExtLayout,
  type FolderEntry,
  type Inode,
  locateInode,
  parseAttributes,
  parseExtentNode,
  parseExtLayout,
  parseFolderBlock,
  parseInode,
  parseInodeTable,
} from './rules/ext.ts'

const ROOT = 2
const SUPERBLOCK: Range = { offset: 1024, bytes: 1024 }
/** Inodes are read in pieces of this size, and so many pieces are kept. */
const PIECE_BYTES = 64 * 1024
const MAX_PIECES = 256

interface Pair {
  readonly path: string
  readonly before: number
  readonly after: number
}

/** Of an inode of the shrunk one: the times that it had before. */
export interface LostTimes {
  readonly inode: number
  readonly times: readonly string[]
}

/** What differs first, as a clause; null: nothing. `lost`: gets the times that differ, which is no difference then. */
export async function compareExt(
  readBefore: ReadBytes,
  readAfter: ReadBytes,
  signal: AbortSignal,
  lost: LostTimes[] | null = null,
): Promise<string | null> {
  const before = await openExt(readBefore)
  const after = await openExt(readAfter)
  const [was, is] = [before.layout, after.layout]
  const isSameKind = was.identity.equals(is.identity) && was.blockBytes === is.blockBytes
  return isSameKind ? await compareTrees({ before, after, lost }, signal) : 'its superblock'
}

interface Sides {
  readonly before: Ext
  readonly after: Ext
  readonly lost: LostTimes[] | null
}

async function compareTrees(sides: Sides, signal: AbortSignal): Promise<string | null> {
  const { before, after } = sides
  const links = createLinks()
  const todo: Pair[] = [{ path: '', before: ROOT, after: ROOT }]
  for (let pair = todo.pop(); pair !== undefined; pair = todo.pop()) {
    signal.throwIfAborted()
    const one = await before.inode(pair.before)
    const two = await after.inode(pair.after)
    const refusal = await compareInodes({ ...sides, one, two }, pair)
    if (refusal !== null) return `${refusal} of ${pair.path || '/'}`
    if (one.kind !== 'folder') continue
    const inside = pairEntries(pair.path, await before.list(one), await after.list(two))
    if (!inside.ok) return inside.refusal
    for (const found of inside.value) {
      const state = links.take(found)
      if (state === 'other') return `the link ${found.path}`
      if (state === 'new') todo.push(found)
    }
  }
  return null
}

/** Which inode of one is which of the other: the same for every link. */
function createLinks() {
  const partners = new Map([[ROOT, ROOT]])
  const taken = new Set([ROOT])
  return {
    take({ before, after }: Pair): 'new' | 'known' | 'other' {
      const partner = partners.get(before)
      if (partner !== undefined) return partner === after ? 'known' : 'other'
      if (taken.has(after)) return 'other'
      partners.set(before, after)
      taken.add(after)
      return 'new'
    },
  }
}

/** `.` and `..` among them. Refused with what differs. */
function pairEntries(
  path: string,
  ones: readonly FolderEntry[],
  twos: readonly FolderEntry[],
): Result<readonly Pair[], string> {
  const others = new Map(twos.map((entry) => [entry.name, entry]))
  if (others.size !== ones.length || twos.length !== ones.length) {
    return refuse(`the names in ${path}/`)
  }
  const pairs: Pair[] = []
  for (const { name, inode, type } of ones) {
    const other = others.get(name)
    if (other === undefined || other.type !== type) return refuse(`the name ${path}/${name}`)
    pairs.push({ path: `${path}/${name}`, before: inode, after: other.inode })
  }
  return accept(pairs)
}

type Ext = Awaited<ReturnType<typeof openExt>>

interface InodePair extends Sides {
  readonly one: Inode
  readonly two: Inode
}

/** Its name, as attributes show it: the kernel signs the number of an inode, too. */
const EVM = `6:${Buffer.from('evm').toString('hex')}=`

async function compareInodes(
  { before, one, after, two, lost }: InodePair,
  pair: Pair,
): Promise<string | null> {
  if (!one.kept.equals(two.kept)) return 'owner, mode, size or times'
  if (one.times.join() !== two.times.join()) {
    if (lost === null) return 'the times'
    lost.push({ inode: pair.after, times: one.times })
  }
  const attributes = [await before.attributes(one), await after.attributes(two)] as const
  if (attributes[0].join('\n') !== attributes[1].join('\n')) return 'the attributes'
  const isNumbered = attributes[0].some((attribute) => attribute.startsWith(EVM))
  if (isNumbered && pair.before !== pair.after) return 'the inode number, which security.evm signs,'
  // Folders hold numbers of inodes: their names are compared instead.
  if (!one.isMapped || one.kind === 'folder') return null
  const sides = [
    { pieces: await before.pieces(one), read: before.read },
    { pieces: await after.pieces(two), read: after.read },
  ] as const
  return (await isSameContent(...sides, before.layout.blockBytes)) ? null : 'the content'
}

async function openExt(read: ReadBytes) {
  const layout = parseExtLayout(await read(SUPERBLOCK))
  const { blockBytes } = layout
  const readCached = createCache(read, layout)
  const block = (number: number) => {
    if (number <= 0 || number >= layout.blocks) throw new RangeError()
    return read({ offset: number * blockBytes, bytes: blockBytes })
  }

  async function readTree(node: Buffer, into: Extent[]): Promise<void> {
    const parsed = parseExtentNode(node)
    if (parsed.kind === 'leaf') into.push(...parsed.extents)
    else for (const child of parsed.children) await readTree(await block(child), into)
  }

  /** Of ext2 and ext3: twelve blocks, then one, two and three levels of lists. */
  async function readLists(map: Buffer, into: Extent[]): Promise<void> {
    const add = createRunner(into)
    const perBlock = blockBytes / 4
    async function walk(number: number, level: number, logical: number): Promise<void> {
      if (number === 0) return
      if (level === 0) return add(logical, number)
      const list = await block(number)
      for (let index = 0; index < perBlock; index += 1) {
        const child = list.readUInt32LE(index * 4)
        await walk(child, level - 1, logical + index * perBlock ** (level - 1))
      }
    }
    let logical = 0
    for (let index = 0; index < 15; index += 1) {
      const level = Math.max(0, index - 11)
      await walk(map.readUInt32LE(index * 4), level, logical)
      logical += perBlock ** level
    }
  }

  async function extents({ hasExtents, map }: Inode): Promise<readonly Extent[]> {
    const found: Extent[] = []
    await (hasExtents ? readTree(map, found) : readLists(map, found))
    return found
  }

  return {
    layout,
    read,
    async pieces(inode: Inode): Promise<readonly Piece[]> {
      return (await extents(inode)).map(({ logical, physical, count, isUnwritten }) => ({
        from: logical,
        at: isUnwritten ? null : physical,
        count,
      }))
    },
    async inode(number: number): Promise<Inode> {
      if (number < 1 || number > layout.inodes) throw new RangeError()
      const { descriptor, within } = locateInode(layout, number)
      const table = parseInodeTable(await readCached(descriptor), layout)
      return parseInode(await readCached({ offset: table + within, bytes: layout.inodeBytes }))
    },
    async attributes({ attributes, attributesBlock }: Inode): Promise<readonly string[]> {
      if (attributesBlock === 0) return attributes
      const apart = parseAttributes(await block(attributesBlock), ATTRIBUTES_HEAD, 0)
      return [...attributes, 'apart', ...apart]
    },
    async list(inode: Inode): Promise<readonly FolderEntry[]> {
      const entries: FolderEntry[] = []
      for (const { physical, count } of await extents(inode)) {
        for (let index = 0; index < count; index += 1) {
          entries.push(...parseFolderBlock(await block(physical + index)))
        }
      }
      return entries
    },
  }
}

function createRunner(into: Extent[]) {
  return (logical: number, physical: number) => {
    const last = into.at(-1)
    const isNext =
      last !== undefined &&
      logical === last.logical + last.count &&
      physical === last.physical + last.count
    if (isNext) into[into.length - 1] = { ...last, count: last.count + 1 }
    else into.push({ logical, physical, count: 1, isUnwritten: false })
  }
}

/** Inodes that lie together are read together. */
function createCache(read: ReadBytes, { blocks, blockBytes }: ExtLayout): ReadBytes {
  const pieces = new Map<number, Buffer>()
  const end = blocks * blockBytes
  return async ({ offset, bytes }) => {
    const at = Math.floor(offset / PIECE_BYTES) * PIECE_BYTES
    const within = offset - at
    if (within + bytes > PIECE_BYTES || offset + bytes > end) return await read({ offset, bytes })
    let piece = pieces.get(at)
    if (piece === undefined) {
      piece = await read({ offset: at, bytes: Math.min(PIECE_BYTES, end - at) })
      const [oldest] = pieces.keys()
      if (pieces.size >= MAX_PIECES && oldest !== undefined) pieces.delete(oldest)
      pieces.set(at, piece)
    }
    return piece.subarray(within, within + bytes)
  }
}
