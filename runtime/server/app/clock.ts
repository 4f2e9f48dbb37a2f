/** The clocks of a machine server. */

export interface Clock {
  now(): Date
  /** The milliseconds of a clock that nobody sets. */
  elapsed(): number
}

export const HOST_CLOCK: Clock = { now: () => new Date(), elapsed: () => performance.now() }
