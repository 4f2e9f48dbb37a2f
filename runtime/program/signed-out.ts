/** Opens the list of sessions that were logged out; that it is damaged goes on record. */
import { renderError } from '../core/foundation/fault.ts'
import { createSignedOut, type SignedOut } from '../services/access/signed-out.ts'
import type { Journal } from '../services/state/journal.ts'

interface SignedOutDependencies {
  readonly path: string
  readonly journal: Journal
  readonly log: { warn(message: string): void }
  now(): Date
}

export function openSignedOut({ path, journal, log, now }: SignedOutDependencies): SignedOut {
  const onDamage = (summary: string) => {
    const note = {
      kind: 'auth.logouts.lost',
      subject_kind: 'auth',
      subject_id: null,
      actor: 'system',
      source_ip: null,
      summary,
      details: null,
    } as const
    journal.record(note).catch((thrown: unknown) => {
      log.warn(`the event could not be recorded: ${renderError(thrown)}`)
    })
  }
  return createSignedOut({ path, now, log, onDamage })
}
