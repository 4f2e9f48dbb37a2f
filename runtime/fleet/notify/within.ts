/** Waits for what cannot be stopped, such as a name server, no longer than a signal says. */

/**
 * Resolves to what the work resolves to; null: the signal came first. The work then goes on by itself,
 * and what becomes of it is nobody's business any more.
 */
export async function within<T>(work: Promise<T>, signal: AbortSignal): Promise<T | null> {
  const { promise, resolve } = Promise.withResolvers<null>()
  const end = () => resolve(null)
  if (signal.aborted) end()
  signal.addEventListener('abort', end, { once: true })
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', end)
  }
}
