/** An event to record, with its actor and its subject. */
import type { Eventual } from '../../foundation/eventual.ts'
import type { By } from './caller.ts'
import type { EventNote } from '../../../fleet/state/journal.ts'

/** Something to put on record; the server adds subject, actor and address. */
export type Note = Pick<EventNote, 'kind' | 'summary' | 'details'> & {
  /** `machine` unless said. */
  readonly subject_kind?: EventNote['subject_kind']
}

/** What a note is about, and who did it. */
export type NoteSubject = { readonly subject_id: string | null } & By

/** Puts on record; a journal that fails is logged, and stops nobody. */
export type NoteAll = (notes: readonly Note[], on: NoteSubject) => Eventual<void>
