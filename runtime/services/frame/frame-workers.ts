/** Threads that work on frames side by side: each task goes to the one that has the least to do. */
import { availableParallelism } from 'node:os'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { FrameAnswer, FrameRequest, FrameResult, FrameTask } from './frame-worker.ts'

export interface FrameWorkers extends AsyncDisposable {
  readonly count: number
  /** Rejects with an Error whose message is a reason in words. */
  run(task: FrameTask): Promise<FrameResult>
}

/** Of more threads the memory would add up, and no disk takes what so many decode. */
const MAX_WORKERS = 8

const countWorkers = (): number => Math.min(MAX_WORKERS, availableParallelism())

/** Memory that threads share and direct I/O accepts: it begins on a page. */
export const createSharedSlot = (bytes: number): SharedArrayBuffer =>
  new SharedArrayBuffer(bytes, { maxByteLength: bytes })

interface Waiting {
  readonly resolve: (result: FrameResult) => void
  readonly reject: (reason: Error) => void
}

export function createFrameWorkers(count = countWorkers()): FrameWorkers {
  const threads = Array.from({ length: count }, createThread)
  return {
    count,
    run(task) {
      const [idlest] = threads.toSorted((a, b) => a.load() - b.load())
      return idlest?.run(task) ?? Promise.reject(new Error('there are no threads'))
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(threads.map((thread) => thread.end()))
    },
  }
}

/** As it is, or as the npm package has it. */
const CODE = new URL(`./frame-worker${extname(import.meta.url)}`, import.meta.url)
/** All that is large lies outside of the threads' heaps. */
const LIMITS = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 32 }

function createThread() {
  const worker = new Worker(CODE, { resourceLimits: LIMITS })
  const waiting = new Map<number, Waiting>()
  let lastId = 0
  function fail(reason: Error) {
    const failed = [...waiting.values()]
    waiting.clear()
    for (const { reject } of failed) reject(reason)
  }
  worker.on('message', (answer: FrameAnswer) => {
    const asked = waiting.get(answer.id)
    waiting.delete(answer.id)
    if (answer.ok) asked?.resolve(answer.result)
    else asked?.reject(new Error(answer.reason))
  })
  let ended: Error | null = null
  worker.on('error', (cause) => {
    ended = new Error('a thread of this program failed', { cause })
  })
  worker.on('exit', () => {
    ended ??= new Error('a thread of this program ended')
    fail(ended)
  })
  return {
    load: () => waiting.size,
    run: (task: FrameTask) =>
      new Promise<FrameResult>((resolve, reject) => {
        if (ended !== null) return reject(ended)
        lastId += 1
        waiting.set(lastId, { resolve, reject })
        worker.postMessage({ id: lastId, task } satisfies FrameRequest, [])
      }),
    end: () => worker.terminate(),
  }
}
