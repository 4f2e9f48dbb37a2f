/** The clocks of a machine server. */

export interface Clock {
  now(): Date
  /** Milliseconds, monotonic. */
  elapsed(): number
}

export const HOST_CLOCK: Clock = { now: () => new Date(), elapsed: () => performance.now() }
