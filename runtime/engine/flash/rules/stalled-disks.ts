/** Decides which of several disks fail because the others wait for them. Pure. */

export interface SharingDisk {
  /** Whether it holds memory that the others wait for. */
  readonly isHolding: boolean
  /** How long it has done nothing while another disk waited. */
  readonly idleMs: number
}

/** By their indexes. Never all of them: then no disk is better off than the others. */
export function decideStalled(disks: readonly SharingDisk[], limitMs: number): readonly number[] {
  const stalled = disks.flatMap(({ isHolding, idleMs }, index) =>
    isHolding && idleMs >= limitMs ? [index] : [],
  )
  return stalled.length < disks.length ? stalled : []
}
