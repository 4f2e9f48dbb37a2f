/** Takes the next step at once where nothing is awaited: most requests need no promise. */

export type MaybePromise<T> = T | Promise<T>

/**
 * At once where it is no promise: a promise costs microtasks and memory, so one is made only where
 * there is one already.
 */
export const after = <A, B>(
  value: MaybePromise<A>,
  next: (value: A) => MaybePromise<B>,
): MaybePromise<B> => (value instanceof Promise ? value.then(next) : next(value))

/** Returns what `work` gives, or what `fail` makes of its error, whether it throws now or later. */
export function recover<T>(
  work: () => MaybePromise<T>,
  fail: (error: unknown) => T,
): MaybePromise<T> {
  try {
    const value = work()
    return value instanceof Promise ? value.catch(fail) : value
  } catch (error) {
    return fail(error)
  }
}
