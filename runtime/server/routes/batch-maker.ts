/** What makes a batch of one action on many machines, where a release line keeps batches. */
import type { By } from '../../kit/web/answers/caller.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'

/** Keeps what is done to many machines at once, so that people can follow it. */
export interface BatchMaker<M> {
  /** Begins a batch, which is on disk before its first machine is acted on. */
  begin(batch: {
    readonly action: string
    readonly macs: readonly Mac[]
    /** The search that found them; null: they were named. */
    readonly q: string | null
    readonly by: By
  }): Promise<BegunBatch<M>>
  /**
   * An operator's edit made `after` of a record (null: deleted it), which may leave its batch by that.
   * `undone`: by undoing the edit that had brought it there.
   */
  leave(before: M, after: M | null, how: 'edited' | 'undone'): Promise<void>
}

/** A batch while its machines are acted on. */
export interface BegunBatch<M> {
  readonly id: string
  /** What was done to a machine; `refusal` says why nothing was. Nothing is stored by that. */
  note(mac: Mac, before: M | null, after: M | null, refusal: string | null): void
  /** Stores what was noted. */
  keep(): Promise<void>
  /** Stores what was noted, and that there will be no more. Resolves to what people call the batch. */
  settle(): Promise<string>
}
