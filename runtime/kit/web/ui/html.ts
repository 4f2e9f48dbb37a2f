/** HTML templates: every value is escaped unless it is such a template itself. */
import { html as template, raw } from 'hono/html'
import { splitText, type TextValues } from '#kit/foundation/text.ts'

export type Html = ReturnType<typeof raw>

/** Null, undefined and booleans render as nothing. */
export type Content = Html | string | number | boolean | null | undefined | readonly Content[]

/** Its values are escaped, unless they are templates themselves. */
export function html(strings: TemplateStringsArray, ...values: readonly Content[]): Html {
  const rendered = template(strings, ...values)
  // hono returns a promise only when a value is one, and no `Content` is.
  if (rendered instanceof Promise) throw new TypeError('a template cannot hold a promise')
  return rendered
}

/** From a constant of ours: it is not escaped. */
export const trusted = (text: string): Html => raw(text)

export const NOTHING: Html = raw('')

type Attribute = string | number | boolean | null | undefined

/** `true` gives the name alone, false and null nothing. */
export function attributes(given: Readonly<Record<string, Attribute>>): Html {
  const parts = Object.entries(given).map(([name, value]) => {
    if (value === false || value === null || value === undefined) return NOTHING
    return value === true ? html` ${name}` : html` ${name}="${value}"`
  })
  return html`${parts}`
}

/** Empty values are left out. */
export function address(
  path: string,
  query: Readonly<Record<string, string | number | null | undefined>>,
): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === null || value === undefined || value === '' ? [] : [[name, String(value)]],
  )
  const search = new URLSearchParams(given).toString()
  return search === '' ? path : `${path}?${search}`
}

/** HTML for the placeholders; everything else in the text is escaped. */
export function fillHtml<const Text extends string>(
  text: Text,
  values: TextValues<Text, Content>,
): Html {
  const byName: Readonly<Record<string, Content>> = values
  return html`${splitText(text).map((piece, at) => (at % 2 === 0 ? piece : byName[piece]))}`
}

/** What encloses a part of a text: `{strong}all of it{end} is lost`. */
export const STRONG = { strong: trusted('<strong>'), end: trusted('</strong>') } as const
export const DIM = { dim: trusted('<span class="dim">'), end: trusted('</span>') } as const
