/** Finds the bottleneck of a write from the time it waited for each part. Pure. */

const BOTTLENECKS = ['network', 'source', 'decoder', 'disk'] as const
/** `source`: the medium that a local image lies on. */
export type Bottleneck = (typeof BOTTLENECKS)[number]

/** Seconds out of the same span of time. */
export interface Waited {
  /** The time until the disk took what was there. */
  readonly disk: number
  /** The time until there was something to write; within it, until the source had given something. */
  readonly filling: number
  readonly source: number
}

export interface WaitedFor extends Waited {
  /** The length of that span. */
  readonly span: number
}

/** Less than this share of the time is no wait to speak of. */
const MIN_SHARE = 0.1

/** Null: nothing was waited for, so the machine itself is busy. */
export function decideBottleneck(
  { disk, filling, source, span }: WaitedFor,
  from: { readonly isRemote: boolean; readonly isDecoded: boolean },
): Bottleneck | null {
  if (Math.max(disk, filling) <= span * MIN_SHARE) return null
  if (disk >= filling) return 'disk'
  if (from.isDecoded && source < filling / 2) return 'decoder'
  return from.isRemote ? 'network' : 'source'
}
