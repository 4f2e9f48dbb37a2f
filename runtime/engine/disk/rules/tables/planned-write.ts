/** A small write to a disk as a value: planned here, carried out by a service. */

/** One write, which must be on the medium before the next one begins. */
export interface DiskWrite {
  /** For the log: `backup header`. */
  readonly what: string
  /** In bytes, on the disk or in the volume that is planned for. */
  readonly offset: number
  readonly bytes: Buffer
}
