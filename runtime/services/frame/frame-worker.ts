/** A thread that decodes, hashes and compresses frames in shared memory; started by frame-workers.ts. */
import { hash } from 'node:crypto'
import { parentPort } from 'node:worker_threads'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { renderError } from '../../core/foundation/fault.ts'
import { findFrameEnd } from '../../core/image/zstd-frame.ts'
import { release } from '../image/chunks.ts'

/** Buffers travel as the shared memory behind them, so that nothing is copied. */
export type FrameTask =
  /** The digest of the first `bytes`. */
  | { readonly does: 'hash'; readonly from: SharedArrayBuffer; readonly bytes: number }
  /** Exactly one frame, which must hold exactly `bytes`, with their digest where it is wanted. */
  | {
      readonly does: 'decode'
      readonly from: SharedArrayBuffer
      readonly storedBytes: number
      readonly into: SharedArrayBuffer
      readonly bytes: number
      readonly hashes: boolean
    }
  /** One frame of the first `bytes`; `into` has room for it. */
  | {
      readonly does: 'encode'
      readonly from: SharedArrayBuffer
      readonly bytes: number
      readonly into: SharedArrayBuffer
      readonly level: number
    }

export interface FrameResult {
  /** In hexadecimal; empty where it was not wanted. */
  readonly sha256: string
  /** What was put into `into`. */
  readonly bytes: number
}

export interface FrameRequest {
  readonly id: number
  readonly task: FrameTask
}
export type FrameAnswer = { readonly id: number } & (
  | { readonly ok: true; readonly result: FrameResult }
  /** What is wrong, as words for a Fault. */
  | { readonly ok: false; readonly reason: string }
)

parentPort?.on('message', ({ id, task }: FrameRequest) => {
  parentPort?.postMessage(answer(id, task), [])
})

function answer(id: number, task: FrameTask): FrameAnswer {
  try {
    return { id, ok: true, result: carryOut(task) }
  } catch (thrown) {
    return { id, ok: false, reason: renderError(thrown) }
  }
}

function carryOut(task: FrameTask): FrameResult {
  switch (task.does) {
    case 'hash':
      return { sha256: digestOf(Buffer.from(task.from, 0, task.bytes)), bytes: task.bytes }
    case 'decode':
      return decode(task)
    case 'encode':
      return encode(task)
  }
}

const digestOf = (bytes: Buffer) => hash('sha256', bytes, 'hex')

function decode(task: Extract<FrameTask, { does: 'decode' }>): FrameResult {
  const stored = Buffer.from(task.from, 0, task.storedBytes)
  if (findFrameEnd(stored) !== stored.length) {
    throw new Error('its tables do not say where its frames end')
  }
  // In one piece, with room to see its end: several would be joined by a copy.
  const size = { chunkSize: task.bytes + 64, maxOutputLength: task.bytes + 64 }
  const content = zstdDecompressSync(stored, size)
  if (content.length !== task.bytes) {
    throw new Error('a frame does not hold as much as its tables say')
  }
  content.copy(Buffer.from(task.into))
  release(content)
  return {
    sha256: task.hashes ? digestOf(Buffer.from(task.into, 0, task.bytes)) : '',
    bytes: task.bytes,
  }
}

function encode({ from, bytes, into, level }: Extract<FrameTask, { does: 'encode' }>): FrameResult {
  const content = Buffer.from(from, 0, bytes)
  const frame = zstdCompressSync(content, {
    pledgedSrcSize: bytes,
    chunkSize: into.byteLength,
    params: {
      [constants.ZSTD_c_compressionLevel]: level,
      [constants.ZSTD_c_checksumFlag]: 1,
      [constants.ZSTD_c_contentSizeFlag]: 1,
    },
  })
  const room = Buffer.from(into)
  if (frame.length > room.length) throw new Error('a frame became larger than its content')
  frame.copy(room)
  const stored = frame.length
  release(frame)
  return { sha256: digestOf(content), bytes: stored }
}
