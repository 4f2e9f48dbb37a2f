/** How a text is completed: `{name}` stands for a value. */
/** The names in the braces of a text: `'a' | 'b'` of `'{a} of {b}'`. */
type Placeholder<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Placeholder<Rest>
  : never

export type TextValues<Text extends string, Value> = Readonly<Record<Placeholder<Text>, Value>>

/** Two forms of one text. */
export interface PluralText {
  readonly one: string
  readonly other: string
}

const RULES = new Intl.PluralRules('en')

/** In order: plain text at even places, names of placeholders at odd ones. */
export const splitText = (text: string): readonly string[] => text.split(/\{([a-zA-Z]+)\}/)

/** Completes a plain text with its values; a value's own braces stay as they are. */
export function fill<const Text extends string>(
  text: Text,
  values: TextValues<Text, string | number>,
): string {
  const byName: Readonly<Record<string, string | number>> = values
  return splitText(text)
    .map((piece, at) => (at % 2 === 0 ? piece : String(byName[piece] ?? '')))
    .join('')
}

/** Chooses the form for this count; `{count}` in it is left to `fill`. */
export const pluralOf = <const Text extends PluralText>(
  text: Text,
  count: number,
): Text['one'] | Text['other'] => (RULES.select(count) === 'one' ? text.one : text.other)

/** Completes a counted text with only `{count}` in it: `1 machine`, `12 machines`. */
export const fillCount = (text: PluralText, count: number): string =>
  pluralOf(text, count).replace('{count}', renderNumber(count))

/** For the beginning of a sentence; what is no plain word, such as a file name, stays as it is. */
export const upperFirst = (text: string): string =>
  /^[\p{L}'’-]+[,;:.?!]*(\s|$)/u.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text

const NUMBERS = new Intl.NumberFormat('en')

/** Renders a number of things: `12`, `12,345`. */
export const renderNumber = (count: number): string => NUMBERS.format(count)
