/** Current line: validates what people call machines: their name, and their labels ("Limits"). */
import { z } from 'zod'
import { LabelSchema, nameCharacter } from '#fleet/machine/rules/label.ts'
import { printable } from '#kit/foundation/printable.ts'

export const MAX_LABELS = 16

/** At most 16, counted before duplicates are dropped. */
export const LabelsSchema = z
  .array(LabelSchema)
  .max(MAX_LABELS, `a machine has at most ${MAX_LABELS} labels`)

/** In the order of code points. */
export const sortLabels = (labels: readonly string[]): readonly string[] =>
  [...new Set(labels)].toSorted()

/** Drops blanks, empty labels, and duplicates whatever their case. */
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

/** A joiner between emojis, or letters of scripts that join; elsewhere it only imitates a name. */
const JOINER =
  /(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})|(?<=[\p{Script=Arabic}\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca])\u200d/gu

/** Null and the empty name clear it. The limit counts characters, not UTF-16 units. */
export const NameSchema = z
  .string()
  .overwrite(compose)
  .superRefine((name, context) => {
    const hidden = [...name.replaceAll(JOINER, '')].find(
      (character) => printable(character) !== character,
    )
    if (hidden !== undefined) {
      context.addIssue(`a name cannot hold ${nameCharacter(hidden)}, which cannot be shown`)
    }
    const length = [...name].length
    if (length > MAX_NAME_CHARACTERS) {
      context.addIssue(`a name has at most ${MAX_NAME_CHARACTERS} characters, not ${length}`)
    }
  })
  .nullable()
  .meta({ maxLength: MAX_NAME_CHARACTERS })

/** DHCP's name is the machine's own word: only a valid host name is believed. */
export const parseHostname = (text: string): string | null =>
  /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/.test(text) ? text : null
