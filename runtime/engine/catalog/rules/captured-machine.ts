/** A machine of which an image was ordered, with its labels: they decide who sees that image at the cache. */

export interface CapturedMachine {
  readonly mac: string
  readonly labels: readonly string[]
}

export const MAX_CAPTURED = 2000
