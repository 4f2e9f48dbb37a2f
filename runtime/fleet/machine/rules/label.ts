/** Validates a label of a machine ("Limits"). */
import { z } from 'zod'
import { printable } from '#kit/foundation/printable.ts'

const MAX_LABEL_CHARACTERS = 64
const LABEL = /^[A-Za-z0-9][A-Za-z0-9 ._-]*$/
const LABEL_RULE =
  'use the letters A to Z, digits, spaces and . _ - and begin with a letter or a digit'

export const LabelSchema = z
  .string()
  .superRefine((label, context) => {
    const wrong = findLabelMistake(label)
    if (wrong !== null) context.addIssue(wrong)
  })
  .meta({ minLength: 1, maxLength: MAX_LABEL_CHARACTERS, pattern: LABEL.source })

function findLabelMistake(label: string): string | null {
  if (label === '') return 'a label is not empty'
  if (label.length > MAX_LABEL_CHARACTERS) {
    return `a label has at most ${MAX_LABEL_CHARACTERS} characters, not ${label.length}`
  }
  if (LABEL.test(label)) return null
  const wrong = [...label].find((character) => !/[A-Za-z0-9 ._-]/.test(character))
  return wrong === undefined
    ? `a label cannot begin with ${nameCharacter(label.charAt(0))}: ${LABEL_RULE}`
    : `a label cannot hold ${nameCharacter(wrong)}: ${LABEL_RULE}`
}

export function nameCharacter(character: string): string {
  if (character === ' ') return 'a space'
  if (printable(character) === character) return `"${character}"`
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}
