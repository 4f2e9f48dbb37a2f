/** Current line: validates what people call machines: their name, and their labels ("Limits"). */
import { z } from 'zod'
import { printable } from '../../../core/foundation/printable.ts'

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

export const MAX_NAME_CHARACTERS = 64

/** Composed and without blanks around it, so that equal names are equal texts. */
const compose = (text: string): string => text.normalize('NFC').trim()

/** The first character that cannot be shown, as `U+202E`; null: all of them can. */
function findUnprintable(text: string): string | null {
  const found = [...text].find((character) => printable(character) !== character)
  const code = found?.codePointAt(0)
  return code === undefined ? null : `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
}

/** Null and the empty name clear it. Counted in characters, not in units of UTF-16. */
export const NameSchema = z
  .string()
  .overwrite(compose)
  .superRefine((name, context) => {
    const unprintable = findUnprintable(name)
    if (unprintable !== null) {
      context.addIssue(`a name holds printable characters only, and ${unprintable} is not one`)
    }
    const length = [...name].length
    if (length > MAX_NAME_CHARACTERS) {
      context.addIssue(`a name has at most ${MAX_NAME_CHARACTERS} characters, not ${length}`)
    }
  })
  .nullable()
  .meta({ maxLength: MAX_NAME_CHARACTERS })

/** What DHCP calls a machine is its own word, so only what can be a host name is believed. */
export const parseHostname = (text: string): string | null =>
  /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/.test(text) ? text : null
