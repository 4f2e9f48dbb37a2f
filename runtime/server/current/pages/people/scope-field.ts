/** The scope of a person as the text of a form: what is shown of it says the same when it is saved again. */
import { LabelSchema } from '#fleet/machine/rules/label.ts'
import type { Reach } from '#kit/web/answers/rules/reach.ts'

/** For a scope without machines; no label begins so. */
const NOTHING = '-'

/** Without stored labels that no machine can have: they show nothing. */
export function renderScope(labels: Reach): string {
  if (labels === null) return ''
  return labels.filter((label) => LabelSchema.safeParse(label).success).join(', ') || NOTHING
}

/** Null: empty, so all machines are seen. */
export function readScope(text: string): Reach {
  if (text.trim() === '') return null
  if (text.trim() === NOTHING) return []
  return text
    .split(',')
    .map((label) => label.trim())
    .filter((label) => label !== '')
}
