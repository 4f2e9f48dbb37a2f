/** What becomes of a file that every server has and a row of the database has as well. */
import { z } from 'zod'

/** The files that servers share, by the names of their rows. */
export const SharedFileNameSchema = z.enum(['session-secret', 'admin-password', 'power', 'notify'])
export type SharedFileName = z.infer<typeof SharedFileNameSchema>

/** What a server remembers of the last time that its file and the row were the same. */
export interface SharedFileNote {
  readonly version: string
  /** SHA-256 of the content; hexadecimal. */
  readonly digest: string
}

interface SharedFileState {
  readonly name: SharedFileName
  /** Null: they never were the same. */
  readonly noted: SharedFileNote | null
  /** The digest of the file; null: there is none. */
  readonly local: string | null
  /** The version of the row; null: there is none. */
  readonly stored: string | null
}

/**
 * `take`: the row's content replaces the file; `bring`: the other way; `renew`: a new one is made and brought.
 */
type SharedFileDecision = 'nothing' | 'take' | 'bring' | 'renew'

/**
 * A server that joins takes what the others have. A file that somebody changed since is meant,
 * unless the row was changed as well. Without its file the key of sessions is made anew, which ends
 * all sessions: that is what people delete it for.
 */
export function decideSharedFile(state: SharedFileState): SharedFileDecision {
  const { noted, local, stored } = state
  if (local === null) return decideMissing(state)
  if (stored === null) return 'bring'
  if (noted === null) return 'take'
  if (noted.version !== stored) return 'take'
  return noted.digest === local ? 'nothing' : 'bring'
}

function decideMissing({ name, noted, stored }: SharedFileState): SharedFileDecision {
  const isFirst = stored !== null && noted === null
  if (name === 'session-secret' && !isFirst) return 'renew'
  return stored === null ? 'nothing' : 'take'
}
