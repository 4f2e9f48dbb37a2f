/** A queue that runs a limited number of tasks at a time. */

/**
 * Creates a queue that runs so many works at a time, in the order of the calls; the first ones at
 * once. Failures hold up nothing.
 */
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
