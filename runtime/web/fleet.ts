/** Everything that happens to machines: stored, put on record and announced, whoever asked for it. */
import type { FieldError } from '../core/field-error.ts'
import type { Mac } from '../core/mac.ts'
import type { MachineBase } from '../core/machine.ts'
import type { Result } from '../core/result.ts'
import type { By, Contact, Turn } from './line.ts'

export interface Fleet<M extends MachineBase> {
  /** As `PUT /machines/{mac}`: creates or replaces. */
  upsert(mac: Mac, body: unknown, by: By): Promise<Result<M, readonly FieldError[]>>
  /** False when there was none. */
  remove(mac: Mac, by: By): Promise<boolean>
  /**
   * Lets `turn` change a record and stores what it made; null when there is no such machine.
   * `turn` can be called twice and must be pure.
   */
  turn<T extends Turn<M>>(mac: Mac, by: By, turn: (machine: M) => T): Promise<T | null>
  /** One of the line's actions, or `delete`; the refusal in words, null when it was done. */
  act(mac: Mac, action: string, parameters: unknown, contact: Contact, by: By): Promise<Acted<M>>
}

export type Acted<M> =
  | { readonly result: 'done'; readonly machine: M | null }
  | { readonly result: 'refused'; readonly reason: string }
  | { readonly result: 'missing' }
