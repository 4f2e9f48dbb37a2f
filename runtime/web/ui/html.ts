/** HTML from templates: whatever is put into one is escaped, unless it is such HTML itself. */
import { html as template, raw } from 'hono/html'

export type Html = ReturnType<typeof raw>

/** What a template takes; null, undefined and booleans leave nothing behind. */
export type Content = Html | string | number | boolean | null | undefined | readonly Content[]

export function html(strings: TemplateStringsArray, ...values: readonly Content[]): Html {
  const made = template(strings, ...values)
  // No value of `Content` can be a promise, so neither can what is made of them.
  if (made instanceof Promise) throw new TypeError('a template cannot wait')
  return made
}

/** HTML of our own making that stands in a constant. */
export const trusted = (text: string): Html => raw(text)

export const NOTHING: Html = raw('')

type Attribute = string | number | boolean | null | undefined

/** ` name="value"` for each; `true` gives the name alone, false and null nothing. */
export function attributes(given: Readonly<Record<string, Attribute>>): Html {
  const parts = Object.entries(given).map(([name, value]) => {
    if (value === false || value === null || value === undefined) return NOTHING
    return value === true ? html` ${name}` : html` ${name}="${value}"`
  })
  return html`${parts}`
}

/** What stands between each two. */
export const joined = (parts: readonly Content[], between: Content): Html =>
  html`${parts.map((part, at) => (at === 0 ? part : html`${between}${part}`))}`

/** A local address with a query; empty values are left out. */
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
