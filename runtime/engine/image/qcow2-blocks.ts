/** Opens a qcow2 image as blocks, straight from a file or by HTTP ranges, without a local copy. */
import { SHORTEST_ZERO_RUN } from '#engine/disk/rules/extents.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import {
  clipRun,
  type ClusterRun,
  type CompressedPart,
  findInside,
  groupCompressed,
  type HostGroup,
  L1_ENTRY_BYTES,
  nextRun,
  parseL1Entry,
  parseQcow2Header,
  parseRefcountTable,
  type Part,
  planMetadata,
  QCOW2_HEAD_BYTES,
  type Qcow2Header,
  type Qcow2Metadata,
  renderQcow2Refusal,
  sortParts,
  TABLE_BREAKS,
  type TableBreak,
} from './rules/qcow2.ts'
import type { Blocks, Piece } from './stream-blocks.ts'
import type { SeekableSource, Source } from './sources/source.ts'
import { imageBroken } from '#kit/net/rules/network-failure.ts'
import { promisify } from 'node:util'
import { inflateRaw, zstdDecompress } from 'node:zlib'
import { findFrameEnd } from './rules/zstd.ts'
import { createQueue } from '#kit/host/queue.ts'

interface Qcow2Blocks extends Blocks {
  /** The exact size of the image once written. */
  readonly virtualBytes: number
}

/** Read ahead: four times 1 MiB, each with its own requests. */
const AHEAD_SLOTS = 4
const AHEAD_BYTES = 1024 * 1024

/**
 * In guest order. The caller closes the source after the blocks. Faults: `input-invalid` for an
 * image that cannot be written or no random access, `image-broken`.
 */
export async function openQcow2(source: Source): Promise<Qcow2Blocks> {
  const readAt = needRandomAccess(source)
  const header = await readHeader(source, readAt)
  const host = createHostReader(source.name, readAt)
  const map = await openQcow2Map(host, header)
  const planner = createPlanner(map, header)
  const clusters = createClusters(host, header)
  const isFar = source.path === null
  return { virtualBytes: header.virtualBytes, ...createBlocks(planner, clusters, isFar) }
}

/** Reads the image here and there: fewer bytes only at its end. Faults as `openQcow2`. */
export async function openQcow2Reader(source: Source): Promise<ReadAt> {
  const readAt = needRandomAccess(source)
  const header = await readHeader(source, readAt)
  const host = createHostReader(source.name, readAt)
  const map = await openQcow2Map(host, header)
  const clusters = createClusters(host, header)
  return async (into, from) => {
    const wanted = Math.max(0, Math.min(into.length, header.virtualBytes - from))
    const parts: Part[] = []
    for (let at = 0; at < wanted;) {
      const run = clipRun(await map.runWithin(from + at, wanted - at), wanted - at)
      parts.push({ at, guest: from + at, run })
      at += run.bytes
    }
    await clusters.load(parts, into)
    return wanted
  }
}

function needRandomAccess({ name, readAt }: Source): ReadAt {
  if (readAt !== null) return readAt
  throw new Fault('input-invalid', `${name}: qcow2 is not read from start to end`, {
    hint: 'qcow2 needs a file or a server that supports byte ranges; download it first.',
  })
}

async function readHeader(source: Source, readAt: ReadAt): Promise<Qcow2Header> {
  const head = Buffer.alloc(QCOW2_HEAD_BYTES)
  const bytes = await readAt(head, 0)
  const header = parseQcow2Header(head.subarray(0, bytes), source.sizeBytes)
  if (header.ok) return header.value
  throw new Fault('input-invalid', `${source.name}: ${renderQcow2Refusal(header.refusal)}`)
}

type Planned =
  | { readonly kind: 'zeros'; readonly bytes: number }
  | {
      readonly kind: 'data'
      readonly bytes: number
      readonly parts: readonly Part[]
      readonly isSlow: boolean
    }

type Planner = ReturnType<typeof createPlanner>

function createPlanner(map: Qcow2Map, { virtualBytes }: Qcow2Header) {
  let guest = 0
  // The writer does not take shorter zeros out either.
  const isZeroPiece = (run: ClusterRun, at: number) =>
    run.kind === 'zeros' && (run.bytes >= SHORTEST_ZERO_RUN || at + run.bytes === virtualBytes)
  return {
    /** At most `limit` bytes but for zeros; null at the end. One call at a time. */
    async take(limit: number): Promise<Planned | null> {
      const parts: Part[] = []
      let bytes = 0
      let isSlow = false
      while (bytes < limit && guest < virtualBytes) {
        const run = await map.runAt(guest, limit - bytes)
        const isZeros = isZeroPiece(run, guest)
        if (bytes > 0 && (isZeros || isCut(run, limit - bytes))) break
        if (isZeros) {
          guest += run.bytes
          return { kind: 'zeros', bytes: run.bytes }
        }
        const taken = clipRun(run, limit - bytes)
        isSlow ||= run.kind === 'compressed'
        parts.push({ at: bytes, guest, run: taken })
        guest += taken.bytes
        bytes += taken.bytes
      }
      return bytes === 0 ? null : { kind: 'data', bytes, parts, isSlow }
    },
  }
}

const isCut = (run: ClusterRun, room: number) => run.kind === 'compressed' && run.bytes > room

interface Ahead {
  readonly planned: Planned
  readonly buffer: Buffer
  readonly loaded: Promise<void>
}

function createBlocks(planner: Planner, clusters: Clusters, isFar: boolean): Blocks {
  const ahead: Promise<Ahead | null>[] = []
  const free: Buffer[] = []
  let last: Promise<unknown> = Promise.resolve()
  let isSlow = isFar
  let isClosed = false
  let served = 0

  function readAhead() {
    if (!isSlow) return
    while (ahead.length < AHEAD_SLOTS) {
      const next = last.then(startNext)
      next.catch(() => undefined)
      last = next
      ahead.push(next)
    }
  }

  async function startNext(): Promise<Ahead | null> {
    const planned = isClosed ? null : await planner.take(AHEAD_BYTES)
    if (planned === null) return null
    if (planned.kind === 'zeros') {
      return { planned, buffer: Buffer.alloc(0), loaded: Promise.resolve() }
    }
    isSlow = isFar || planned.isSlow
    const buffer = free.pop() ?? Buffer.allocUnsafeSlow(AHEAD_BYTES)
    const loaded = clusters.load(planned.parts, buffer)
    loaded.catch(() => undefined)
    return { planned, buffer, loaded }
  }

  async function readDirectly(into: Buffer): Promise<Piece | null> {
    const planned = await planner.take(into.length)
    if (planned === null || planned.kind === 'zeros') return planned
    isSlow = isFar || planned.isSlow
    const loaded = clusters.load(planned.parts, into)
    readAhead()
    await loaded
    return { kind: 'data', bytes: planned.bytes }
  }

  async function takeFrom(head: Ahead, into: Buffer): Promise<Piece> {
    const { planned, buffer } = head
    await head.loaded
    const bytes =
      planned.kind === 'data' ? Math.min(planned.bytes - served, into.length) : planned.bytes
    if (planned.kind === 'data') buffer.copy(into, 0, served, served + bytes)
    served += bytes
    if (served === planned.bytes) {
      served = 0
      ahead.shift()
      if (planned.kind === 'data') free.push(buffer)
      readAhead()
    }
    return { kind: planned.kind, bytes }
  }

  return {
    async next(into) {
      const [first] = ahead
      if (first === undefined) return await readDirectly(into)
      const head = await first
      return head === null ? null : await takeFrom(head, into)
    },
    async [Symbol.asyncDispose]() {
      isClosed = true
      for (const started of await Promise.allSettled(ahead)) {
        if (started.status === 'fulfilled') await started.value?.loaded.catch(() => undefined)
      }
    },
  }
}

/** A Fault `image-broken` where a cluster lies outside the file. */
export async function checkClusters(source: SeekableSource): Promise<void> {
  const head = Buffer.alloc(QCOW2_HEAD_BYTES)
  await source.readAt(head, 0)
  const header = parseQcow2Header(head, source.sizeBytes)
  // It was measured before, which refuses such a header.
  if (!header.ok) return
  const map = await openQcow2Map(createHostReader(source.name, source.readAt), header.value)
  for (let guest = 0; guest < header.value.virtualBytes;) {
    guest += (await map.runAt(guest, header.value.virtualBytes - guest)).bytes
  }
}

type Qcow2Map = Awaited<ReturnType<typeof openQcow2Map>>

/** L2 tables in memory: the next ones are read together. */
const TABLES_BYTES = 1024 * 1024

/** Checks the L1 table and the places of all tables before a disk is touched. */
async function openQcow2Map(host: HostReader, header: Qcow2Header) {
  const { guestBytesPerTable, l1Entries, virtualBytes, clusterBytes } = header
  const l1 = Buffer.allocUnsafe(l1Entries * L1_ENTRY_BYTES)
  const refcounts = Buffer.allocUnsafe(header.refcountBytes)
  await host.readAll([
    { into: l1, host: header.l1Offset, guest: 0 },
    { into: refcounts, host: header.refcountOffset, guest: 0 },
  ])
  const l2Tables = needTables(host.name, header, l1)
  const metadata = needMetadata(host.name, header, l2Tables, parseRefcountTable(refcounts))
  let tables: ReadonlyMap<number, Buffer> = new Map()

  /** 0: nowhere. */
  const tableOf = (index: number) => l2Tables[index] ?? 0

  function findAllocated(from: number): number {
    let index = from
    while (index < l1Entries && tableOf(index) === 0) index += 1
    return index
  }

  /** The table of `first` and those that follow; earlier ones are dropped. */
  async function readTables(first: number): Promise<ReadonlyMap<number, Buffer>> {
    const read = new Map<number, Buffer>()
    const most = Math.max(1, Math.floor(TABLES_BYTES / clusterBytes))
    let index = first
    while (index < l1Entries && read.size < most) {
      read.set(index, Buffer.allocUnsafe(clusterBytes))
      index = findAllocated(index + 1)
    }
    await host.readAll(
      [...read].map(([at, into]) => ({ into, host: tableOf(at), guest: at * guestBytesPerTable })),
    )
    return read
  }

  async function runWithin(guest: number, limit: number): Promise<ClusterRun> {
    const index = Math.floor(guest / guestBytesPerTable)
    if (tableOf(index) === 0) {
      const end = Math.min(findAllocated(index) * guestBytesPerTable, virtualBytes)
      return { kind: 'zeros', bytes: end - guest }
    }
    if (!tables.has(index)) {
      tables = new Map()
      tables = await readTables(index)
    }
    const run = nextRun(tables.get(index) ?? null, guest, limit, header)
    if (!run.ok) throw broken(host.name, run.refusal, guest)
    checkRange(host.name, metadata, run.value, guest)
    return run.value
  }

  return {
    /** To the end of a table at most. */
    runWithin,
    /** Zeros come in one run however long; others end at most a cluster after `limit` bytes. */
    async runAt(guest: number, limit: number): Promise<ClusterRun> {
      let run = await runWithin(guest, limit)
      while (run.kind === 'zeros' && guest + run.bytes < virtualBytes) {
        const next = await runWithin(guest + run.bytes, 1)
        if (next.kind !== 'zeros') break
        run = { kind: 'zeros', bytes: run.bytes + next.bytes }
      }
      return run
    },
  }
}

/** Throws for a broken entry. */
const needTables = (name: string, header: Qcow2Header, l1: Buffer): Float64Array =>
  Float64Array.from({ length: header.l1Entries }, (_, index) => {
    const entry = parseL1Entry(l1, index, header)
    if (!entry.ok) throw broken(name, entry.refusal, index * header.guestBytesPerTable)
    return entry.value
  })

function needMetadata(
  name: string,
  header: Qcow2Header,
  l2Tables: Float64Array,
  blocks: Float64Array,
): Qcow2Metadata {
  const planned = planMetadata(header, blocks, l2Tables)
  if (planned.ok) return planned.value
  const { refusal } = planned
  throw refusal.why === 'l2-table'
    ? broken(name, 'inside-tables', refusal.index * header.guestBytesPerTable)
    : damaged(name, 'its reference counts lie in its other tables')
}

function checkRange(name: string, metadata: Qcow2Metadata, run: ClusterRun, guest: number): void {
  if (run.kind === 'zeros') return
  const isPlain = run.kind === 'data'
  const inside = findInside(metadata, run.host, isPlain ? run.bytes : run.hostBytes)
  if (inside === null) return
  throw broken(name, 'inside-tables', isPlain ? guest + inside - run.host : guest)
}

const broken = (name: string, why: TableBreak, guest: number) =>
  damaged(name, `its table entry for guest byte ${guest} ${TABLE_BREAKS[why]}`)

const damaged = (name: string, what: string) => imageBroken(`${name} is damaged: ${what}`)

type Clusters = ReturnType<typeof createClusters>

/** Reads and decodings of one `load` at once. */
const MAX_JOBS = 6
/** Room beyond a cluster shows one that is longer. */
const SPARE_BYTES = 64
/** One is usual; a cluster in thousands of tiny frames is an attack. */
const MAX_FRAMES = 16

function createClusters(host: HostReader, header: Qcow2Header) {
  const { clusterBytes } = header
  const decode = header.compression === 'zstd' ? decodeZstd : decodeZlib
  let kept: { readonly host: number; readonly bytes: Promise<Buffer> } | null = null

  async function decodeWhole(stored: Buffer, guest: number): Promise<Buffer> {
    try {
      const decoded = await decode(stored, clusterBytes)
      if (decoded.length === clusterBytes) return decoded
      throw new Error(`${decoded.length} bytes instead of ${clusterBytes}`)
    } catch (thrown) {
      const where = `the compressed cluster of guest byte ${guest}`
      throw imageBroken(`${host.name} is damaged: ${where}: ${renderError(thrown)}`, thrown)
    }
  }

  async function unpack({ at, guest, run }: CompressedPart, stored: Buffer, into: Buffer) {
    const whole = await decodeWhole(stored, guest)
    whole.copy(into, at, run.skip, run.skip + run.bytes)
    release(whole)
  }

  async function loadGroup(group: HostGroup, into: Buffer) {
    const stored = Buffer.allocUnsafeSlow(group.bytes)
    const bytes = await host.readSome(stored, group.host)
    const jobs = group.parts.map((part) => () => {
      const start = part.run.host - group.host
      const end = Math.min(start + part.run.hostBytes, bytes)
      return unpack(part, stored.subarray(Math.min(start, end), end), into)
    })
    await inParallel(jobs, MAX_JOBS)
    release(stored)
  }

  async function loadPiece({ at, guest, run }: CompressedPart, into: Buffer) {
    if (kept === null || kept.host !== run.host) {
      kept = { host: run.host, bytes: readWhole(run.host, run.hostBytes, guest) }
    }
    const whole = await kept.bytes
    whole.copy(into, at, run.skip, run.skip + run.bytes)
  }

  async function readWhole(from: number, hostBytes: number, guest: number) {
    const stored = Buffer.allocUnsafe(hostBytes)
    const bytes = await host.readSome(stored, from)
    return await decodeWhole(stored.subarray(0, bytes), guest)
  }

  return {
    /** Nothing touches `into` after it returns or throws. */
    async load(parts: readonly Part[], into: Buffer): Promise<void> {
      const { zeros, data, compressed } = sortParts(parts)
      for (const { at, run } of zeros) into.fill(0, at, at + run.bytes)
      const whole = compressed.filter(({ run }) => run.bytes === clusterBytes)
      const pieces = compressed.filter(({ run }) => run.bytes < clusterBytes)
      await inParallel(
        [
          ...data.map(
            ({ at, guest, run }) =>
              () =>
                host.read(into.subarray(at, at + run.bytes), run.host, guest),
          ),
          ...groupCompressed(whole).map((group) => () => loadGroup(group, into)),
          ...pieces.map((part) => () => loadPiece(part, into)),
        ],
        MAX_JOBS,
      )
    },
  }
}

/** The collector would let a hundred megabytes pile up. */
function release({ buffer, byteLength }: Buffer) {
  // A slice of Node's shared pool is not ours alone.
  const isOwn = buffer.byteLength <= byteLength + SPARE_BYTES
  if (isOwn && buffer instanceof ArrayBuffer) buffer.transfer(0)
}

const inflate = promisify(inflateRaw)
const unzstd = promisify(zstdDecompress)
const roomFor = (bytes: number) => ({
  chunkSize: bytes + SPARE_BYTES,
  maxOutputLength: bytes + SPARE_BYTES,
})

/** On the thread pool. Ignores what follows the stream in its last sector. */
const decodeZlib = (stored: Buffer, bytes: number): Promise<Buffer> =>
  inflate(stored, { windowBits: 12, ...roomFor(bytes) })

/** Of several frames; what follows them is the next cluster's. */
async function decodeZstd(stored: Buffer, bytes: number): Promise<Buffer> {
  const frames: Buffer[] = []
  let rest = stored
  let decoded = 0
  while (decoded < bytes) {
    const end = frames.length < MAX_FRAMES ? findFrameEnd(rest) : null
    if (end === null) throw new Error('no whole zstd frames in it')
    const frame = await unzstd(rest.subarray(0, end), roomFor(bytes - decoded))
    frames.push(frame)
    decoded += frame.length
    rest = rest.subarray(end)
  }
  return frames.length === 1 && frames[0] !== undefined ? frames[0] : Buffer.concat(frames)
}

interface HostRead {
  readonly into: Buffer
  readonly host: number
  readonly guest: number
}

type HostReader = ReturnType<typeof createHostReader>

type ReadAt = (into: Buffer, offset: number) => Promise<number>

/** Enough to hide an HTTP server's latency. */
const MAX_READS = 8

function createHostReader(name: string, readFreely: ReadAt) {
  const enqueue = createQueue(MAX_READS)
  const readAt: ReadAt = (into, offset) => enqueue(() => readFreely(into, offset))

  async function read(into: Buffer, host: number, guest: number) {
    const bytes = into.length === 0 ? 0 : await readAt(into, host)
    if (bytes === into.length) return
    throw imageBroken(
      `${name} is cut short: what it holds for guest byte ${guest} is missing from file byte ${host + bytes} on`,
    )
  }
  return {
    name,
    read,
    readSome: readAt,
    readAll(reads: readonly HostRead[]) {
      const jobs = reads.map((one) => () => read(one.into, one.host, one.guest))
      return inParallel(jobs, MAX_READS)
    },
  }
}

/** All that were started have ended when it returns or throws. */
async function inParallel(jobs: readonly (() => Promise<void>)[], most: number): Promise<void> {
  const waiting = jobs.values()
  let failed = false
  const work = async () => {
    for (const job of waiting) {
      if (failed) return
      await job().catch((thrown: unknown) => {
        failed = true
        throw thrown
      })
    }
  }
  const workers = Array.from({ length: Math.min(most, jobs.length) }, work)
  for (const ended of await Promise.allSettled(workers)) {
    if (ended.status === 'rejected') throw ended.reason
  }
}
