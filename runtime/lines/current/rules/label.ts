/** Current line: validates the labels of machines ("Limits"). */
import { z } from 'zod'

export const MAX_LABELS = 16
const MAX_LABEL_CHARACTERS = 64
const LABEL = /^[A-Za-z0-9][A-Za-z0-9 ._-]*$/

export const LabelSchema = z
  .string()
  .min(1, 'a label is not empty')
  .max(MAX_LABEL_CHARACTERS, `a label has at most ${MAX_LABEL_CHARACTERS} characters`)
  .regex(LABEL, 'a label starts with a letter or digit; then also blanks and . _ - may stand')

/** Sixteen are counted before equal ones are dropped. */
export const LabelsSchema = z
  .array(LabelSchema)
  .max(MAX_LABELS, `a machine has at most ${MAX_LABELS} labels`)

/** A set, in the order of code points. */
export const sortLabels = (labels: readonly string[]): readonly string[] =>
  [...new Set(labels)].toSorted()

/** As a form has them: between commas; blanks around them, empty and repeated ones go. */
export function splitLabels(text: string): readonly string[] {
  const found = new Map<string, string>()
  for (const part of text.split(',')) {
    const label = part.trim()
    const key = label.toLowerCase()
    if (label !== '' && !found.has(key)) found.set(key, label)
  }
  return [...found.values()]
}
