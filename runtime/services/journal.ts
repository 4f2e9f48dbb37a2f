/** Recorded events: what happened, to what, by whom ("Recorded system events"). */

export type Actor = 'operator' | 'system' | 'pxe-client' | `token:${string}`

/** What is noted; `kind` is dotted, for example `machine.flashed` (the facts list the names). */
export interface EventNote {
  readonly kind: string
  readonly subject_kind:
    | 'machine'
    | 'catalog'
    | 'netboot'
    | 'settings'
    | 'auth'
    | 'backup'
    | 'system'
  readonly subject_id: string | null
  readonly actor: Actor
  readonly source_ip: string | null
  /** One sentence for people. */
  readonly summary: string
  /** Never holds a secret. */
  readonly details: Readonly<Record<string, unknown>> | null
}

export interface JournalEvent extends EventNote {
  readonly id: number
  /** ISO time. */
  readonly ts: string
  readonly acknowledged: boolean
}

export interface EventFilter {
  readonly kind?: string
  readonly subject_kind?: string
  readonly subject_id?: string
  readonly actor?: string
  readonly source_ip?: string
  /** Kinds that end in `failed`. */
  readonly failed?: boolean
  readonly unacknowledged?: boolean
  /** Plain text, looked for in kind, subject, actor, address and summary. */
  readonly text?: string
  readonly before_id?: number
  /** 1 to 500. */
  readonly limit: number
}

export interface Journal {
  /** On disk before it resolves, save for floods, of which some are counted instead of noted. */
  record(note: EventNote): Promise<void>
  /** Newest first. */
  list(filter: EventFilter): Promise<readonly JournalEvent[]>
  /** What needs a look: unacknowledged failures and resets. */
  countAlarms(): Promise<number>
  /** How many were changed; ids that do not exist count for nothing. */
  acknowledge(ids: readonly number[], acknowledged: boolean): Promise<number>
}
