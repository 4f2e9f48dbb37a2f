/** Reads a qcow2 file by offset, several reads at once; missing bytes are a Fault. */
import { imageBroken } from '#kit/net/rules/source-fault.ts'
import { createQueue } from '#kit/host/queue.ts'

interface HostRead {
  readonly into: Buffer
  readonly host: number
  readonly guest: number
}

export type HostReader = ReturnType<typeof createHostReader>

export type ReadAt = (into: Buffer, offset: number) => Promise<number>

/** Enough to hide an HTTP server's latency. */
const MAX_READS = 8

export function createHostReader(name: string, readFreely: ReadAt) {
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
export async function inParallel(
  jobs: readonly (() => Promise<void>)[],
  most: number,
): Promise<void> {
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
