/** Waits that can be aborted or bounded by a deadline. */
import { addAbortListener } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

/** Resolves after so many milliseconds, without keeping the process alive. */
export const pause = (milliseconds: number): Promise<void> =>
  sleep(milliseconds, undefined, { ref: false })

/** Keeps the process alive until then; the signal ends it early. */
export const linger = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  sleep(milliseconds, undefined, { signal }).catch(() => undefined)

/** Rejects with the signal's reason as soon as it is aborted; the work itself goes on. */
export async function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  // Its end is awaited below or not at all; a late failure is of no interest.
  work.catch(() => undefined)
  signal.throwIfAborted()
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  using _ = addAbortListener(signal, () => reject(signal.reason))
  return await Promise.race([work, aborted])
}

/** Resolves to true when the work ended in time, whatever its result. */
export async function settle(work: PromiseLike<unknown>, milliseconds: number): Promise<boolean> {
  const late = new AbortController()
  const ended = work.then(
    () => true,
    () => true,
  )
  try {
    return await Promise.race([ended, sleep(milliseconds, false, { signal: late.signal })])
  } finally {
    late.abort()
  }
}

/** The least that a wait takes once the deadline has passed. */
const MIN_MS = 50

/**
 * Makes a function that does what `settle` does for several works one after another: all waits
 * together take about so many milliseconds, counted from the first.
 */
export function createDeadline(
  milliseconds: number,
): (work: PromiseLike<unknown>) => Promise<boolean> {
  let end: number | null = null
  return (work) => {
    const now = performance.now()
    end ??= now + milliseconds
    return settle(work, Math.max(MIN_MS, end - now))
  }
}

/** Yields what `look` sees every so many milliseconds; returns the work's result. */
export async function* watch<T, Seen>(
  work: Promise<T>,
  milliseconds: number,
  observe: () => Seen,
): AsyncGenerator<Seen, T> {
  while (!(await settle(work, milliseconds))) yield observe()
  return await work
}

/** `onSeen` gets what `look` sees every so many milliseconds; resolves to the work's result. */
export async function report<T, Seen>(
  work: Promise<T>,
  milliseconds: number,
  observe: () => Seen,
  onSeen: (seen: Seen) => void,
): Promise<T> {
  while (!(await settle(work, milliseconds))) onSeen(observe())
  return await work
}

export const awaitEnding = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
