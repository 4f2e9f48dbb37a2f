/** The texts of a table by their keys, and what tables of every language have in common. */
import { splitText } from '../../runtime/kit/texts/text.ts'

interface Text {
  /** `disk.refused.mounted`. */
  readonly key: string
  readonly text: string
}

export const listTexts = (table: object, above = ''): readonly Text[] =>
  Object.entries(table).flatMap(([name, value]: [string, unknown]) => {
    const key = `${above}${name}`
    if (typeof value === 'string') return [{ key, text: value }]
    return typeof value === 'object' && value !== null ? listTexts(value, `${key}.`) : []
  })

/** `a, b` of `{b} of {a}`. */
const placeholdersOf = (text: string) =>
  [...new Set(splitText(text).filter((_piece, at) => at % 2 === 1))].toSorted().join(', ')

/** Keys and their placeholders. */
export const shapeOf = (table: object): readonly string[] =>
  listTexts(table)
    .map(({ key, text }) => `${key}: ${placeholdersOf(text)}`)
    .toSorted()

/** Empty, with superfluous blanks, or with a brace that is no placeholder's. */
export const listMalformed = (table: object): readonly Text[] =>
  listTexts(table).filter(
    ({ text }) =>
      text === '' ||
      text !== text.trim() ||
      /\s\s|[\n\t]/.test(text) ||
      /[{}]/.test(text.replaceAll(/\{[a-zA-Z]+\}/g, '')),
  )
