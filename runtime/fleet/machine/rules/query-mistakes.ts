/** Terms of a search that look like filters and are none, each with the filter that may be meant. */
import { nearestOf } from '#kit/foundation/nearest.ts'
import { parseTest, splitValues, splitWords, type Vocabulary } from './query.ts'

export interface QueryMistake {
  readonly term: string
  readonly what: 'filter' | 'value' | 'time'
  /** The term that may be meant; null: nothing is close. */
  readonly suggestion: string | null
  /** The whole search with the suggestion in it. */
  readonly corrected: string | null
}

/** Parts of a MAC or IPv6 address have colons, too, and are searched for as text. */
const ADDRESS = /^[0-9a-f]{0,4}$/
const KEY = /^[a-z_]+$/

/** `suggestion` and `corrected` are null if nothing known is close. */
export function listMistakes(text: string, vocabulary: Vocabulary): readonly QueryMistake[] {
  const words = splitWords(text)
  return words.flatMap((word, at) => {
    const sign = word.length > 1 && word.startsWith('-') ? '-' : ''
    const found = findMistake(word.slice(sign.length), vocabulary)
    if (found === null) return []
    const suggestion = found.suggestion === null ? null : `${sign}${found.suggestion}`
    const corrected =
      suggestion === null ? null : words.map((each, n) => (n === at ? suggestion : each)).join(' ')
    return [{ term: word, what: found.what, suggestion, corrected }]
  })
}

type FoundMistake = Pick<QueryMistake, 'what' | 'suggestion'>

function findMistake(word: string, vocabulary: Vocabulary): FoundMistake | null {
  const { fields, times, values = {} } = vocabulary
  const colon = word.indexOf(':')
  const [key, rest] = [word.slice(0, Math.max(0, colon)).toLowerCase(), word.slice(colon + 1)]
  if (times.includes(key)) {
    return parseTest(word, vocabulary)?.kind === 'text' ? { what: 'time', suggestion: null } : null
  }
  if (fields.includes(key)) return findWrongValue(key, rest, values[key])
  return isText(key, rest, vocabulary) ? null : findFilter(key, rest, vocabulary)
}

const isText = (key: string, rest: string, { prefixes = [] }: Vocabulary): boolean =>
  ADDRESS.test(key) || !KEY.test(key) || prefixes.includes(key) || rest.startsWith('//')

function findFilter(key: string, rest: string, { fields, times }: Vocabulary): FoundMistake {
  const nearest = nearestOf(key, [...fields, ...times])
  return { what: 'filter', suggestion: nearest === null ? null : `${nearest}:${rest}` }
}

/** Fields without a closed list of values have no wrong ones. */
function findWrongValue(
  key: string,
  rest: string,
  known: readonly string[] | undefined,
): FoundMistake | null {
  const given = splitValues(rest)
  const isWrong = (value: string) => !value.endsWith('*') && known?.includes(value) === false
  if (!given.some(isWrong)) return null
  const meant = given.map((value) => (isWrong(value) ? nearestOf(value, known ?? []) : value))
  const suggestion = meant.includes(null) ? null : `${key}:${meant.join(',')}`
  return { what: 'value', suggestion }
}
