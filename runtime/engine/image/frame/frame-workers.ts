/** Threads that work on frames side by side: each task goes to the one that has the least to do. */
import type crypto from 'node:crypto'
import { availableParallelism } from 'node:os'
import { type MessagePort, Worker } from 'node:worker_threads'
import type zlib from 'node:zlib'
import { Fault } from '#kit/foundation/fault.ts'

export type FrameWorkers = ReturnType<typeof createFrameWorkers>

/** The memory of more threads adds up, and no disk takes what so many decode. */
const MAX_WORKERS = 6

const countWorkers = (): number => Math.min(MAX_WORKERS, availableParallelism())

/** Direct I/O accepts it, as it begins on a page. */
export const createSharedSlot = (bytes: number): SharedArrayBuffer =>
  new SharedArrayBuffer(bytes, { maxByteLength: bytes })

/** Threads end when the result is disposed of. */
export function createFrameWorkers(count = countWorkers()) {
  const threads = Array.from({ length: count }, createThread)
  return {
    count,
    /** Rejects with an Error whose message is a reason; a Fault where a thread has ended. */
    run(task: FrameTask): Promise<FrameResult> {
      const [idlest] = threads.toSorted((a, b) => a.load() - b.load())
      return idlest?.run(task) ?? Promise.reject(new Error('there are no threads'))
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(threads.map((thread) => thread.end()))
    },
  }
}

/** Buffers travel as shared memory, uncopied. */
type FrameTask =
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

interface FrameResult {
  /** Hexadecimal; empty: not wanted. */
  readonly sha256: string
  readonly bytes: number
}

interface FrameRequest {
  readonly id: number
  readonly task: FrameTask
}
type FrameAnswer = { readonly id: number } & (
  | { readonly ok: true; readonly result: FrameResult }
  | { readonly ok: false; readonly reason: string }
)

/**
 * A quarter of the samples, without those of zeros, have no byte below 9, as ASCII and UTF-8 texts.
 * The thread gets this function's text.
 */
function isTextLike(content: Buffer): boolean {
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
function createSum(createHash: typeof crypto.createHash) {
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
function putInto(into: SharedArrayBuffer, made: Buffer): number {
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
function serveFrames(
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

const CODE = `${isTextLike.toString()}
${createSum.toString()}
${putInto.toString()}
const { parentPort, workerData } = require('node:worker_threads')
;(${serveFrames.toString()})(
  parentPort, require('node:crypto'), require('node:zlib'), workerData)`

/** All that is large is outside of the threads' heaps. */
const LIMITS = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 32 }

function createThread() {
  const isEnding = new Int32Array(new SharedArrayBuffer(4))
  const worker = new Worker(CODE, { eval: true, resourceLimits: LIMITS, workerData: isEnding })
  const exited = Promise.withResolvers<undefined>()
  const waiting = new Map<number, PromiseWithResolvers<FrameResult>>()
  let lastId = 0
  worker.on('message', (answer: FrameAnswer) => {
    const asked = waiting.get(answer.id)
    waiting.delete(answer.id)
    if (answer.ok) asked?.resolve(answer.result)
    else asked?.reject(new Error(answer.reason))
  })
  let ended: Error | null = null
  worker.on('error', (cause) => {
    ended = new Fault('tool-failed', 'a thread of this program failed', { cause })
  })
  worker.on('exit', () => {
    ended ??= new Fault('tool-failed', 'a thread of this program ended')
    for (const { reject } of waiting.values()) reject(ended)
    waiting.clear()
    exited.resolve(undefined)
  })
  return {
    load: () => waiting.size,
    async run(task: FrameTask) {
      if (ended !== null) throw ended
      lastId += 1
      const asked = Promise.withResolvers<FrameResult>()
      waiting.set(lastId, asked)
      worker.postMessage({ id: lastId, task } satisfies FrameRequest, [])
      return asked.promise
    },
    async end() {
      Atomics.store(isEnding, 0, 1)
      worker.postMessage(null, [])
      await exited.promise
    },
  }
}
