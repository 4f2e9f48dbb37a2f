/** The scope of a person: the labels of the machines that they see and change. */
import { accept, refuse, type Result } from '../../../kit/foundation/result.ts'
import { LabelSchema } from '../../machine/rules/label.ts'

/** All labels of a scope as JSON: they are in the session of its person, which has at most 768 characters in all. */
export const MAX_SCOPE_CHARACTERS = 256

export type ScopeRefusal = 'scope-label' | 'scope-long'

/**
 * Parses the labels of a scope. Blanks around them are dropped, and so are repeated ones; a scope
 * without labels is one in which there is no machine.
 */
export function parseScope(given: readonly string[]): Result<readonly string[], ScopeRefusal> {
  const labels = [...new Set(given.map((label) => label.trim()))].toSorted()
  if (JSON.stringify(labels).length > MAX_SCOPE_CHARACTERS) return refuse('scope-long')
  const isFine = labels.every((label) => LabelSchema.safeParse(label).success)
  return isFine ? accept(labels) : refuse('scope-label')
}
