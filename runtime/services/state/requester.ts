/** Who asked for something, for the record. */
import type { Actor } from './journal.ts'

export interface Requester {
  readonly actor: Actor
  /** Null where it came over no network. */
  readonly ip: string | null
}

export const SYSTEM: Requester = { actor: 'system', ip: null }
