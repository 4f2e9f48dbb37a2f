/** Finds files of a FAT file system (Microsoft, FAT specification 1.03) in an image that nobody mounts. Hostile. */

/** Fewer bytes only at the end of the image. */
export type ReadAt = (into: Buffer, offset: number) => Promise<number>

interface FatFile {
  readonly name: string
  readonly isFolder: boolean
  readonly bytes: number
  /** The first of its clusters. */
  readonly cluster: number
}

interface FatLayout {
  readonly bits: 12 | 16 | 32
  readonly clusterBytes: number
  readonly clusters: number
  readonly tableAt: number
  readonly rootAt: number
  /** 0: the root is a chain of clusters. */
  readonly rootBytes: number
  readonly rootCluster: number
  readonly heapAt: number
}

const MAX_FOLDER_BYTES = 256 * 1024
const ENTRY_BYTES = 32

export type FatFiles = NonNullable<Awaited<ReturnType<typeof openFat>>>

/** `at`: bytes from the start of the image. Null: there is none. */
export async function openFat(readAt: ReadAt, at: number) {
  const first = await read(readAt, at, 512)
  const layout = parseLayout(first, at)
  if (layout === null) return null
  const { bits, clusterBytes, clusters, tableAt, heapAt } = layout
  const end = { 12: 0xff8, 16: 0xfff8, 32: 0x0fff_fff8 }[bits]

  async function next(cluster: number): Promise<number | null> {
    const place = tableAt + Math.floor((cluster * bits) / 8)
    const entry = await read(readAt, place, 4)
    if (entry.length < 4) return null
    const whole = entry.readUInt32LE(0)
    const value =
      bits === 32
        ? whole & 0x0fff_ffff
        : bits === 16
          ? whole & 0xffff
          : ((whole & 0xffff) >> (cluster % 2 === 0 ? 0 : 4)) & 0xfff
    return value >= end || value < 2 || value >= clusters + 2 ? null : value
  }

  /** The bytes of a chain, at most so many. */
  async function readChain(start: number, most: number): Promise<Buffer> {
    const into = Buffer.alloc(most)
    let filled = 0
    let cluster: number | null = start
    while (filled < most && cluster !== null && cluster >= 2 && cluster < clusters + 2) {
      const part = into.subarray(filled, filled + clusterBytes)
      const bytes = await readAt(part, heapAt + (cluster - 2) * clusterBytes)
      if (bytes === 0) break
      filled += bytes
      cluster = await next(cluster)
    }
    return into.subarray(0, filled)
  }

  const readRoot = () =>
    layout.rootBytes > 0
      ? read(readAt, layout.rootAt, Math.min(layout.rootBytes, MAX_FOLDER_BYTES))
      : readChain(layout.rootCluster, MAX_FOLDER_BYTES)

  async function list(folder: FatFile | null): Promise<readonly FatFile[]> {
    return parseFolder(
      await (folder === null ? readRoot() : readChain(folder.cluster, MAX_FOLDER_BYTES)),
    )
  }

  return {
    /** Null: there is none; names in any case. */
    async find(path: readonly string[]): Promise<FatFile | null> {
      let found: FatFile | null = null
      for (const name of path) {
        const files: readonly FatFile[] = await list(found)
        found = files.find((file) => file.name.toLowerCase() === name.toLowerCase()) ?? null
        if (found === null) return null
      }
      return found
    },
    /** As many bytes as the file claims. */
    read: ({ cluster, bytes }: FatFile) => readChain(cluster, bytes),
  }
}

async function read(readAt: ReadAt, at: number, bytes: number): Promise<Buffer> {
  const into = Buffer.alloc(bytes)
  return into.subarray(0, await readAt(into, at))
}

function parseLayout(first: Buffer, at: number): FatLayout | null {
  const sizes = parseSizes(first)
  if (sizes === null) return null
  const { sectorBytes, clusterBytes, tables, tableSectors, sectors, rootEntries } = sizes
  const tableAt = at + first.readUInt16LE(14) * sectorBytes
  const rootAt = tableAt + tables * tableSectors * sectorBytes
  const rootBytes = rootEntries * ENTRY_BYTES
  const heapAt = rootAt + Math.ceil(rootBytes / sectorBytes) * sectorBytes
  const clusters = Math.floor((sectors * sectorBytes - (heapAt - at)) / clusterBytes)
  if (clusters <= 0) return null
  const isWide = first.readUInt16LE(22) === 0
  // Firmware and kernels do not ask how many clusters FAT32 has.
  const bits = isWide ? 32 : clusters < 4085 ? 12 : 16
  const rootCluster = first.readUInt32LE(44)
  return { bits, clusterBytes, clusters, tableAt, rootAt, rootBytes, rootCluster, heapAt }
}

const SECTORS = [512, 1024, 2048, 4096]
const MAX_CLUSTER_BYTES = 256 * 1024
const MAX_TABLES = 4

function parseSizes(first: Buffer) {
  if (first.length < 512 || first.readUInt16LE(510) !== 0xaa55) return null
  const sectorBytes = first.readUInt16LE(11)
  const clusterBytes = sectorBytes * first.readUInt8(13)
  const tables = first.readUInt8(16)
  const tableSectors = first.readUInt16LE(22) || first.readUInt32LE(36)
  const sectors = first.readUInt16LE(19) || first.readUInt32LE(32)
  const isSound =
    SECTORS.includes(sectorBytes) &&
    clusterBytes <= MAX_CLUSTER_BYTES &&
    tables <= MAX_TABLES &&
    ![clusterBytes, tables, tableSectors, sectors].includes(0)
  if (!isSound) return null
  const rootEntries = first.readUInt16LE(17)
  return { sectorBytes, clusterBytes, tables, tableSectors, sectors, rootEntries }
}

const ATTRIBUTES = { volume: 0x08, folder: 0x10, longName: 0x0f } as const
const DELETED = 0xe5

function parseFolder(bytes: Buffer): readonly FatFile[] {
  const files: FatFile[] = []
  let long = ''
  for (let at = 0; at + ENTRY_BYTES <= bytes.length; at += ENTRY_BYTES) {
    const entry = bytes.subarray(at, at + ENTRY_BYTES)
    const [first = 0] = entry
    if (first === 0) break
    const attributes = entry.readUInt8(11)
    if (first !== DELETED && attributes === ATTRIBUTES.longName) {
      const isLast = (first & 0x40) !== 0
      long = longPart(entry) + (isLast ? '' : long)
      continue
    }
    if (first !== DELETED && (attributes & ATTRIBUTES.volume) === 0) {
      files.push({
        name: long || shortName(entry),
        isFolder: (attributes & ATTRIBUTES.folder) !== 0,
        bytes: entry.readUInt32LE(28),
        cluster: entry.readUInt16LE(26) + entry.readUInt16LE(20) * 0x1_0000,
      })
    }
    long = ''
  }
  return files
}

/** Thirteen characters in three places; the parts come last first. */
const longPart = (entry: Buffer): string =>
  [
    [1, 11],
    [14, 26],
    [28, 32],
  ]
    .map(([from, to]) => entry.toString('utf16le', from, to))
    .join('')
    .split('\0', 1)[0]
    ?.replaceAll('\uffff', '') ?? ''

function shortName(entry: Buffer): string {
  const name = entry.toString('latin1', 0, 8).trimEnd()
  const extension = entry.toString('latin1', 8, 11).trimEnd()
  return extension === '' ? name : `${name}.${extension}`
}
