/** Opens a qcow2 image as blocks, straight from a file or by HTTP ranges, without a local copy. */
import { SHORTEST_ZERO_RUN } from '#engine/disk/rules/extents.ts'
import { Fault } from '#kit/foundation/fault.ts'
import {
  parseQcow2Header,
  QCOW2_HEAD_BYTES,
  type Qcow2Header,
  renderQcow2Refusal,
} from './rules/qcow2.ts'
import { clipRun, type Part } from './rules/qcow2-plan.ts'
import type { ClusterRun } from './rules/qcow2-tables.ts'
import type { Blocks, Piece } from './blocks.ts'
import { createClusters, type Clusters } from './qcow2-clusters.ts'
import { createHostReader, type ReadAt } from './qcow2-host.ts'
import { openQcow2Map, type Qcow2Map } from './qcow2-map.ts'
import type { SeekableSource, Source } from './sources/source.ts'

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
