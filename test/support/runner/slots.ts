/** A slot lives through the run and keeps what is expensive to open for one file after another. */

export interface Slot {
  /** What the files of this slot are given besides the runner's own environment. */
  readonly environment: Readonly<Record<string, string>>
  /** What the last file left behind, as a text; empty where it left nothing. */
  check(): Promise<string>
  close(): Promise<void>
}

export function openSlot(): Slot {
  return { environment: {}, check: async () => '', close: async () => {} }
}
