/** Decides which of several disks fail because the others wait for them. Pure. */

export interface SharingDisk {
  /** Whether it holds memory that the others wait for. */
  readonly isHolding: boolean
  /** How long it has done nothing while another disk waited. */
  readonly idleMs: number
}

/** By their indexes. None unless a disk is better off: what stops all of them, such as their hub, fails none. */
export function decideStalled(disks: readonly SharingDisk[], limitMs: number): readonly number[] {
  const stalled = disks.flatMap(({ isHolding, idleMs }, index) =>
    isHolding && idleMs >= limitMs ? [index] : [],
  )
  const goesOn = disks.some(({ isHolding, idleMs }) => !isHolding || idleMs < limitMs / 2)
  return goesOn ? stalled : []
}
