/** A machine of which an image was ordered, with its labels: they decide who sees that image at the cache. */

export interface CapturedMachine {
  readonly mac: string
  readonly labels: readonly string[]
}

/** Machines of one report of a server. */
export const MAX_CAPTURED = 2000
