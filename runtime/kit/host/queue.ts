/** A queue that runs a limited number of tasks at a time. */
/** The first works run at once, the others in the order of the calls. Failures hold up nothing. */
export function createQueue(parallel: number) {
  const waiting: (() => void)[] = []
  let free = parallel
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next === undefined) free += 1
      else next()
    }
  }
}

/** The turns of each path; there are as many as a state folder has files. */
const queues = new Map<string, ReturnType<typeof createQueue>>()

/** Once all earlier work on it is done. Work must not wait for other work on the same path. */
export function inTurnOf<T>(path: string, work: () => Promise<T>): Promise<T> {
  const queue = queues.get(path) ?? createQueue(1)
  queues.set(path, queue)
  return queue(work)
}
