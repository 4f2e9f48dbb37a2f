/** Threads that work on frames side by side: each task goes to the one that has the least to do. */
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { Fault } from '#kit/foundation/fault.ts'
import {
  createSum,
  isTextLike,
  putInto,
  serveFrames,
  type FrameAnswer,
  type FrameRequest,
  type FrameResult,
  type FrameTask,
} from './frame-worker.ts'

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
