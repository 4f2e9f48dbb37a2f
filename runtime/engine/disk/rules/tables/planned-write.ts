/** A small write to a disk as a value: planned here, carried out by a service. */

/** Must be on the medium before the next write. */
export interface DiskWrite {
  readonly what: string
  /** On the disk or in the planned volume. */
  readonly offset: number
  readonly bytes: Buffer
}
