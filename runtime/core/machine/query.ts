/** The query language of tables: `mode:flash-once label:rack-1 -state:done seen:<1h nuc`. */

/** What a row offers to be found by. Keys are the language's words; values are compared without case. */
export interface Searchable {
  /** Where plain words are looked for. */
  readonly text: string
  /** `label:rack-1` asks whether one of these is `rack-1`. */
  readonly fields: Readonly<Record<string, readonly string[]>>
  /** `seen:<1h` asks how long ago; milliseconds since the epoch. */
  readonly times: Readonly<Record<string, number | null>>
}

/** Whether its answer changes as time goes by. */
export const asksForAge = (query: Query): boolean =>
  query.some(({ kind }) => kind === 'younger' || kind === 'older')

/** Which words stand before a colon; anything else with a colon in it is plain text. */
export interface Vocabulary {
  readonly fields: readonly string[]
  readonly times: readonly string[]
}

type Test =
  | { readonly kind: 'text'; readonly text: string }
  /** One of the values; a `*` at the end stands for any rest. */
  | { readonly kind: 'field'; readonly key: string; readonly values: readonly string[] }
  | { readonly kind: 'younger' | 'older'; readonly key: string; readonly seconds: number }
  | { readonly kind: 'never'; readonly key: string }

type Term = Test & { readonly isNegated: boolean }
/** All of them must hold. */
export type Query = readonly Term[]

/** Longer ones are cut: nobody types them. */
const MAX_LENGTH = 1000
const MAX_TERMS = 32
/** Blanks part terms, save between double quotes; an open quote ends with the text. */
const WORD = /(?:"[^"]*"?|[^\s"])+/g

/** Any text is a query: what makes no filter is looked for as it stands. */
export function parseQuery(text: string, vocabulary: Vocabulary): Query {
  const words = text.slice(0, MAX_LENGTH).match(WORD) ?? []
  return words.slice(0, MAX_TERMS).flatMap((word) => {
    const isNegated = word.length > 1 && word.startsWith('-')
    const test = parseTest(isNegated ? word.slice(1) : word, vocabulary)
    return test === null ? [] : [{ ...test, isNegated }]
  })
}

function parseTest(word: string, { fields, times }: Vocabulary): Test | null {
  const colon = word.indexOf(':')
  const key = word.slice(0, Math.max(0, colon)).toLowerCase()
  const rest = word.slice(colon + 1)
  if (times.includes(key)) {
    const test = parseTime(key, unquote(rest))
    if (test !== null) return test
  }
  if (fields.includes(key)) {
    const values = splitValues(rest)
    return values.length === 0 ? null : { kind: 'field', key, values }
  }
  const text = unquote(word)
  return text === '' ? null : { kind: 'text', text }
}

const unquote = (text: string) => text.replaceAll('"', '').toLowerCase()

/** `a,"b, c"`: commas part values, save between quotes. */
const splitValues = (text: string): readonly string[] =>
  (text.match(/(?:"[^"]*"?|[^",])+/g) ?? []).map(unquote).filter((value) => value !== '')

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/** `<1h`, `>7d`, `never`; a bare `1h` means `<1h`. */
function parseTime(key: string, text: string): Test | null {
  if (text === 'never') return { kind: 'never', key }
  const [, sign, amount, unit] = /^([<>]?)(\d{1,6})([smhdw])$/.exec(text) ?? []
  const scale = UNITS[unit ?? '']
  if (scale === undefined) return null
  return { kind: sign === '>' ? 'older' : 'younger', key, seconds: Number(amount) * scale }
}

/** Whether the query finds a row; `now` in milliseconds. */
export const matchesQuery = (query: Query, row: Searchable, now: number): boolean =>
  query.every((term) => matchesTest(term, row, now) !== term.isNegated)

function matchesTest(test: Test, row: Searchable, now: number): boolean {
  switch (test.kind) {
    case 'text':
      return row.text.toLowerCase().includes(test.text)
    case 'field': {
      const has = (row.fields[test.key] ?? []).map((value) => value.toLowerCase())
      return test.values.some((wanted) => has.some((value) => isMeant(wanted, value)))
    }
    case 'never':
      return (row.times[test.key] ?? null) === null
    case 'younger':
    case 'older': {
      const at = row.times[test.key] ?? null
      if (at === null) return false
      const isYoung = now - at < test.seconds * 1000
      return isYoung === (test.kind === 'younger')
    }
  }
}

const isMeant = (wanted: string, value: string) =>
  wanted.endsWith('*') ? value.startsWith(wanted.slice(0, -1)) : value === wanted
