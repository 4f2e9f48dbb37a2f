/** Reads the clusters of a qcow2 image into a buffer, and decodes compressed ones. */
import { promisify } from 'node:util'
import { inflateRaw, zstdDecompress } from 'node:zlib'
import { renderError } from '#kit/foundation/fault.ts'
import { imageBroken } from '#kit/net/rules/source-fault.ts'
import type { Qcow2Header } from './rules/qcow2.ts'
import {
  groupCompressed,
  sortParts,
  type CompressedPart,
  type HostGroup,
  type Part,
} from './rules/qcow2-plan.ts'
import { findFrameEnd } from './rules/zstd-frame.ts'
import { inParallel, type HostReader } from './qcow2-host.ts'

export type Clusters = ReturnType<typeof createClusters>

/** Reads and decodings of one `load` at once. */
const MAX_JOBS = 6
/** Room beyond a cluster shows one that is longer. */
const SPARE_BYTES = 64
/** One is usual; a cluster in thousands of tiny frames is an attack. */
const MAX_FRAMES = 16

export function createClusters(host: HostReader, header: Qcow2Header) {
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
