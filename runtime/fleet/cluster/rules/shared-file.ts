/** What becomes of a file that every server has and a row of the database has as well. */
import { z } from 'zod'

export const SharedFileNameSchema = z.enum(['session-secret', 'admin-password', 'power', 'notify'])
export type SharedFileName = z.infer<typeof SharedFileNameSchema>

export interface SharedFileNote {
  readonly version: string
  /** SHA-256 of the content, hexadecimal. */
  readonly digest: string
}

interface SharedFileState {
  readonly name: SharedFileName
  /** Null: they were never the same. */
  readonly noted: SharedFileNote | null
  /** The file's digest; null: no file. */
  readonly local: string | null
  /** The row's version; null: no row. */
  readonly stored: string | null
}

/** `take`: the row replaces the file; `bring`: the reverse; `renew`: a new one is made. */
type SharedFileDecision = 'nothing' | 'take' | 'bring' | 'renew'

/**
 * A joining server takes what the others have. A file changed here is meant, unless the row
 * changed, too. A missing key of sessions is made anew, which ends all sessions: people delete it
 * for that.
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
