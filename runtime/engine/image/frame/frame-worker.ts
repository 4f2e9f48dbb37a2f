/** What a thread does that decodes, hashes and compresses frames in shared memory. */
import type crypto from 'node:crypto'
import type { MessagePort } from 'node:worker_threads'
import type zlib from 'node:zlib'

/** Buffers travel as shared memory, uncopied. */
export type FrameTask =
  | { readonly does: 'hash'; readonly from: SharedArrayBuffer; readonly bytes: number }
  /** Must hold exactly `bytes`. */
  | {
      readonly does: 'decode'
      readonly from: SharedArrayBuffer
      readonly storedBytes: number
      readonly into: SharedArrayBuffer
      readonly bytes: number
      readonly hashes: boolean
    }
  /** Adds to a digest that the thread keeps; without bytes, ends and returns it. */
  | { readonly does: 'sum'; readonly from: SharedArrayBuffer; readonly bytes: number }
  | {
      readonly does: 'encode'
      readonly from: SharedArrayBuffer
      readonly bytes: number
      readonly into: SharedArrayBuffer
      readonly level: number
    }

export interface FrameResult {
  /** Hexadecimal; empty: not wanted. */
  readonly sha256: string
  readonly bytes: number
}

export interface FrameRequest {
  readonly id: number
  readonly task: FrameTask
}
export type FrameAnswer = { readonly id: number } & (
  | { readonly ok: true; readonly result: FrameResult }
  | { readonly ok: false; readonly reason: string }
)

/**
 * A quarter of the samples, without those of zeros, have no byte below 9, as ASCII and UTF-8 texts.
 * The thread gets this function's text.
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

/** Without bytes it ends and returns the digest. The thread gets this function's text. */
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

/** Gives the memory back at once: several MiB a frame would pile up. The thread gets this text. */
export function putInto(into: SharedArrayBuffer, made: Buffer): number {
  const room = Buffer.from(into)
  const { length, buffer } = made
  if (length > room.length) throw new Error('a frame became larger than its content')
  made.copy(room)
  // Small buffers lie in memory that Node shares out, which nobody can give back.
  const isOwn = buffer instanceof ArrayBuffer && buffer.byteLength > 4 * Buffer.poolSize
  if (isOwn) buffer.transfer(0)
  return length
}

/**
 * The thread gets this function's text, so that it need not load what reads TypeScript (13 MiB
 * each): it uses only what it defines or is given. Once `isEnding` is not 0, it ends at the next
 * message.
 */
export function serveFrames(
  port: MessagePort,
  { createHash, hash }: typeof crypto,
  { constants, zstdCompressSync, zstdDecompressSync }: typeof zlib,
  isEnding: Int32Array,
): void {
  const digestOf = (bytes: Buffer) => hash('sha256', bytes, 'hex')

  /**
   * Level 3 in three quarters of the time, and 2 % larger: one table of 512 KiB fits a processor's
   * cache. Text would be 7 % larger and hardly faster.
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
      if (Object(thrown).code === 'ERR_BUFFER_TOO_LARGE') {
        return { id, ok: false, reason: OTHER_LENGTH }
      }
      return { id, ok: false, reason: thrown instanceof Error ? thrown.message : String(thrown) }
    }
  }

  port.on('message', (request: FrameRequest) => {
    // A thread ends between two tasks: ended within zlib, Node aborts the whole process.
    if (Atomics.load(isEnding, 0) === 0) port.postMessage(answer(request), [])
    else port.close()
  })
}
