/** The live environment's files: what is in the boot directory, and which set is active. */

export interface BootFile {
  readonly name: string
  readonly sizeBytes: number
  /** ISO time of the file's last change. */
  readonly modifiedAt: string
}

/** The files that boot scripts name; swapped as one. */
export interface BootSet {
  readonly arch: 'x86_64' | 'arm64'
  /** The release they came with; null for files that were uploaded by hand. */
  readonly version: string | null
  readonly vmlinuz: string
  readonly initrd: string
  readonly squashfs: string
  /** Of the squashfs, 64 hexadecimal digits; null when nobody said. */
  readonly squashfsSha256: string | null
}

export interface ActiveSets {
  readonly x86_64: BootSet | null
  readonly arm64: BootSet | null
}

export interface BootFiles {
  readonly dir: string
  list(): Promise<readonly BootFile[]>
  has(name: string): Promise<boolean>
  /** Which set the scripts name now; kept in memory, so that a boot script waits for no disk. */
  active(): ActiveSets
  /** Streams to a temporary file on the same file system, then renames; returns the bytes written. */
  save(name: string, bytes: AsyncIterable<Uint8Array>, mostBytes: number): Promise<number>
}
