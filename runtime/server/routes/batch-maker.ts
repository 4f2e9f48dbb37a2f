/** What makes a batch of one action on many machines, where a release line keeps batches. */
import type { By } from '#kit/web/answers/caller.ts'
import type { Mac } from '#kit/net/rules/mac.ts'

export interface BatchMaker<M> {
  /** The batch is on disk before its first machine is acted on. */
  begin(batch: {
    readonly action: string
    readonly macs: readonly Mac[]
    /** Null: they were named. */
    readonly q: string | null
    readonly by: By
  }): Promise<BegunBatch<M>>
  /** `after` null: deleted. `undone`: the batch whose edit was undone; null: none was. */
  leave(before: M, after: M | null, undone: string | null): Promise<void>
}

export interface BegunBatch<M> {
  readonly id: string
  /** Stores nothing. `refusal` says why nothing was done. */
  note(mac: Mac, before: M | null, after: M | null, refusal: string | null): void
  keep(): Promise<void>
  /** Stores what was noted and closes the batch. Resolves to its name. */
  settle(): Promise<string>
}
