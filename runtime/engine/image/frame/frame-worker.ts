/** What a thread does that decodes, hashes and compresses frames in shared memory. */
import type crypto from 'node:crypto'
import type { MessagePort } from 'node:worker_threads'
import type zlib from 'node:zlib'

/** Buffers travel as the shared memory behind them, so that nothing is copied. */
export type FrameTask =
  /** The digest of the first `bytes`. */
  | { readonly does: 'hash'; readonly from: SharedArrayBuffer; readonly bytes: number }
  /** One frame, which must hold exactly `bytes`, with their digest where it is wanted. */
  | {
      readonly does: 'decode'
      readonly from: SharedArrayBuffer
      readonly storedBytes: number
      readonly into: SharedArrayBuffer
      readonly bytes: number
      readonly hashes: boolean
    }
  /** Adds the first `bytes` to a digest that the thread keeps; without any, ends and gives it. */
  | { readonly does: 'sum'; readonly from: SharedArrayBuffer; readonly bytes: number }
  /** One frame of the first `bytes`; `into` has room for it. */
  | {
      readonly does: 'encode'
      readonly from: SharedArrayBuffer
      readonly bytes: number
      readonly into: SharedArrayBuffer
      readonly level: number
    }

export interface FrameResult {
  /** The digest in hexadecimal; empty where it was not wanted. */
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

/**
 * Whether a quarter of the content's samples, leaving out those of zeros, have no byte below 9, as
 * texts in ASCII and UTF-8 have none.
 * The thread gets this function's text as well.
 */
export function isTextLike(content: Buffer): boolean {
  const sampleBytes = 64
  const step = Math.max(sampleBytes, Math.floor(content.length / 256))
  let [texts, others] = [0, 0]
  for (let at = 0; at < content.length; at += step) {
    const sample = content.subarray(at, at + sampleBytes)
    if (sample.every((byte) => byte > 8)) texts += 1
    else if (sample.some((byte) => byte > 0)) others += 1
  }
  return texts * 3 > others
}

/** Adds bytes to a digest; without any it ends and gives it. The thread gets this function's text as well. */
export function createSum(createHash: typeof crypto.createHash) {
  let sum = createHash('sha256')
  return (bytes: Buffer): string => {
    if (bytes.length > 0) {
      sum.update(bytes)
      return ''
    }
    const sha256 = sum.digest('hex')
    sum = createHash('sha256')
    return sha256
  }
}

/**
 * Copies what was made, and gives its memory back at once: several MiB a frame would pile up until
 * they are collected. The thread gets this function's text as well.
 */
export function putInto(into: SharedArrayBuffer, made: Buffer): number {
  const room = Buffer.from(into)
  const { length, buffer } = made
  if (length > room.length) throw new Error('a frame became larger than its content')
  made.copy(room)
  // What is small lies in memory that Node shares out, which nobody can give back.
  const isOwn = buffer instanceof ArrayBuffer && buffer.byteLength > 4 * Buffer.poolSize
  if (isOwn) buffer.transfer(0)
  return length
}

/**
 * The thread gets this function's own text, so that it need not load what reads TypeScript (13 MiB
 * each): all that it uses it defines itself, or is given; the three before it go with it. Once
 * `isEnding` holds something else than 0, it carries out nothing more and ends at the next message.
 */
export function serveFrames(
  port: MessagePort,
  { createHash, hash }: typeof crypto,
  { constants, zstdCompressSync, zstdDecompressSync }: typeof zlib,
  isEnding: Int32Array,
): void {
  const digestOf = (bytes: Buffer) => hash('sha256', bytes, 'hex')

  /**
   * Level 3 in three quarters of the time that zstd's own parameters take, and 2 % larger: one table of
   * 512 KiB, which a processor's cache holds. Of text it would be 7 % larger and hardly faster.
   */
  const fastLevel3 = {
    [constants.ZSTD_c_strategy]: constants.ZSTD_fast,
    [constants.ZSTD_c_hashLog]: 17,
    [constants.ZSTD_c_minMatch]: 5,
  }

  function decode(task: Extract<FrameTask, { does: 'decode' }>): FrameResult {
    const { from, storedBytes, into, bytes, hashes } = task
    // In one piece, with room to see its end: several would be joined by a copy.
    const size = { chunkSize: bytes + 64, maxOutputLength: bytes + 64 }
    const content = zstdDecompressSync(Buffer.from(from, 0, storedBytes), size)
    if (content.length !== bytes) throw new Error(OTHER_LENGTH)
    putInto(into, content)
    return { sha256: hashes ? digestOf(Buffer.from(into, 0, bytes)) : '', bytes }
  }

  function encode(task: Extract<FrameTask, { does: 'encode' }>): FrameResult {
    const { from, bytes, into, level } = task
    const content = Buffer.from(from, 0, bytes)
    const params = {
      [constants.ZSTD_c_compressionLevel]: level,
      [constants.ZSTD_c_checksumFlag]: 1,
      [constants.ZSTD_c_contentSizeFlag]: 1,
      ...(level === 3 && !isTextLike(content) ? fastLevel3 : {}),
    }
    const options = { pledgedSrcSize: bytes, chunkSize: into.byteLength, params }
    const stored = putInto(into, zstdCompressSync(content, options))
    return { sha256: digestOf(content), bytes: stored }
  }

  const OTHER_LENGTH = 'a frame does not hold as much as its tables say'
  const addUp = createSum(createHash)

  function carryOut(task: FrameTask): FrameResult {
    if (task.does === 'decode') return decode(task)
    if (task.does === 'encode') return encode(task)
    const { from, bytes } = task
    const content = Buffer.from(from, 0, bytes)
    return { sha256: task.does === 'sum' ? addUp(content) : digestOf(content), bytes }
  }

  function answer({ id, task }: FrameRequest): FrameAnswer {
    try {
      return { id, ok: true, result: carryOut(task) }
    } catch (thrown) {
      // Unpacked, it had no room.
      if (Object(thrown).code === 'ERR_BUFFER_TOO_LARGE') {
        return { id, ok: false, reason: OTHER_LENGTH }
      }
      return { id, ok: false, reason: thrown instanceof Error ? thrown.message : String(thrown) }
    }
  }

  port.on('message', (request: FrameRequest) => {
    // A thread ends between two tasks: where it is ended within zlib, Node aborts the whole process.
    if (Atomics.load(isEnding, 0) === 0) port.postMessage(answer(request), [])
    else port.close()
  })
}
