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
