/** The archive format of an initrd: cpio "newc". */

export type Entry = FileEntry | FolderEntry | LinkEntry | DeviceEntry

interface FileEntry {
  readonly kind: 'file'
  readonly name: string
  readonly mode: number
  readonly bytes: Uint8Array
}

interface FolderEntry {
  readonly kind: 'folder'
  readonly name: string
}

interface LinkEntry {
  readonly kind: 'link'
  readonly name: string
  readonly target: string
}

/** A character device. */
interface DeviceEntry {
  readonly kind: 'device'
  readonly name: string
  readonly mode: number
  readonly major: number
  readonly minor: number
}

/** Makes the entry of a file from its bytes or its text. */
export const fileEntry = (name: string, bytes: Uint8Array | string, mode = 0o644): Entry => ({
  kind: 'file',
  name,
  mode,
  bytes: typeof bytes === 'string' ? Buffer.from(bytes) : bytes,
})

const TYPE = { file: 0o100000, folder: 0o040000, link: 0o120000, device: 0o020000 } as const
const FOLDER_MODE = 0o755
const LINK_MODE = 0o777
const END = 'TRAILER!!!'
/** The whole archive is a multiple of this, as `cpio` makes it. */
const BLOCK = 512

/**
 * Renders the archive of these entries in this order. Inodes are numbered in order, everything
 * belongs to root and has the time `epoch` (seconds since 1970), so that the same entries give the
 * same bytes.
 */
export function renderNewc(entries: readonly Entry[], epoch: number): Buffer {
  const parts: Uint8Array[] = []
  let length = 0
  const add = (bytes: Uint8Array) => {
    const rest = -(length + bytes.length) & 3
    parts.push(bytes, Buffer.alloc(rest))
    length += bytes.length + rest
  }
  for (const [at, entry] of entries.entries()) {
    const data = dataOf(entry)
    const [major, minor] = entry.kind === 'device' ? [entry.major, entry.minor] : [0, 0]
    const links = entry.kind === 'folder' ? 2 : 1
    const [inode, mode, size] = [at + 1, modeOf(entry), data.length]
    add(renderHeader(entry.name, { inode, mode, links, epoch, size, major, minor }))
    add(data)
  }
  add(renderHeader(END, { links: 1 }))
  parts.push(Buffer.alloc(-length & (BLOCK - 1)))
  return Buffer.concat(parts)
}

const NOTHING = Buffer.alloc(0)

function dataOf(entry: Entry): Uint8Array {
  if (entry.kind === 'file') return entry.bytes
  return entry.kind === 'link' ? Buffer.from(entry.target) : NOTHING
}

function modeOf(entry: Entry): number {
  if (entry.kind === 'folder') return TYPE.folder + FOLDER_MODE
  return entry.kind === 'link' ? TYPE.link + LINK_MODE : TYPE[entry.kind] + entry.mode
}

/** The fields of a header in their order; a field that is not set is 0. */
const FIELDS = 'inode mode uid gid links epoch size onMajor onMinor major minor nameSize sum'.split(
  ' ',
)

function renderHeader(text: string, fields: Readonly<Record<string, number>>): Buffer {
  const name = Buffer.from(`${text}\0`)
  const values: Readonly<Record<string, number>> = { ...fields, nameSize: name.length }
  const digits = FIELDS.map((field) => (values[field] ?? 0).toString(16).padStart(8, '0'))
  return Buffer.concat([Buffer.from(`070701${digits.join('').toUpperCase()}`), name])
}
