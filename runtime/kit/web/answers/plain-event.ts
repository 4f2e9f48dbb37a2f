/** An event to record, with its actor and its subject. */
import type { Eventual } from '#kit/foundation/eventual.ts'
import type { By } from './caller.ts'
import type { JournalEntry } from '#fleet/state/journal.ts'

/** Something to put on record; the server adds subject, actor and address. */
export type PlainEvent = Pick<JournalEntry, 'kind' | 'summary' | 'details'> & {
  /** `machine` unless said. */
  readonly subject_kind?: JournalEntry['subject_kind']
}

export type EventSubject = { readonly subject_id: string | null } & By

/** Puts on record; a journal that fails is logged, and stops nobody. */
export type RecordEvents = (events: readonly PlainEvent[], on: EventSubject) => Eventual<void>
