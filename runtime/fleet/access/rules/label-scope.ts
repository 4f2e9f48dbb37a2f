/** The scope of a person: the labels of the machines that they see and change. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { LabelSchema } from '#fleet/machine/rules/label.ts'

/** As JSON: the labels are part of the session, which has at most 768 characters. */
export const MAX_SCOPE_CHARACTERS = 256

export type ScopeRefusal = 'scope-label' | 'scope-long'

/** Trims and deduplicates. A scope without labels contains no machine. */
export function parseScope(given: readonly string[]): Result<readonly string[], ScopeRefusal> {
  const labels = [...new Set(given.map((label) => label.trim()))].toSorted()
  if (JSON.stringify(labels).length > MAX_SCOPE_CHARACTERS) return refuse('scope-long')
  const isFine = labels.every((label) => LabelSchema.safeParse(label).success)
  return isFine ? accept(labels) : refuse('scope-label')
}
