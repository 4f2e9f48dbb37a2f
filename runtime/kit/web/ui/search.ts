/** The search above a list, the views below it with their counts, and the pager of lists that are read from the newest on. */
import { icon } from './elements.ts'
import { hidden } from './fields.ts'
import { address, attributes, html, type Content, type Html } from './html.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill, renderNumber } from '#kit/texts/text.ts'

const t = PAGES.frame.search

/** The parameters of an address that a list keeps from page to page. */
export type ListQuery = Readonly<Record<string, string>>

/** Each cut at `maxLength`; empty ones are left out. */
export const readListQuery = (
  query: URLSearchParams,
  names: readonly string[],
  maxLength: number,
): ListQuery =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = query.get(name)
      return value ? [[name, value.slice(0, maxLength)]] : []
    }),
  )

interface SearchField {
  readonly name: string
  readonly value: string | undefined
  readonly label: string
  readonly placeholder: string
  /** What a script filters while somebody types: a selector. */
  readonly filter?: string
}

export const searchField = ({ name, value = '', label, placeholder, filter }: SearchField): Html =>
  html`<input${attributes({
    type: 'search',
    id: 'q',
    name,
    value,
    'aria-label': label,
    placeholder,
    autocomplete: 'off',
    spellcheck: 'false',
    'data-filter': filter,
  })} />`

interface SearchView extends Omit<SearchField, 'value'> {
  readonly path: string
  readonly query: ListQuery
  /** Queries that people come back to; `count`: how many rows each finds. */
  readonly views: readonly SuggestedSearch[]
  /** More fields of the form, and the names of the parameters that they fill. */
  readonly more?: { readonly fields: Html; readonly names: readonly string[] }
  readonly aside?: Content
}

type SuggestedSearch = readonly [title: string, query: ListQuery, count?: number]

/** A new search keeps the other parameters. */
export const renderSearch = ({ path, query, views, aside, more, ...field }: SearchView): Html =>
  html`<div class="tools">
    <form class="search${more === undefined ? '' : ' filters'}" role="search" action="${path}">
      ${searchField({ ...field, value: query[field.name] })} ${more?.fields}
      ${hidden({ ...query, ...Object.fromEntries((more?.names ?? []).map((name) => [name, null])), [field.name]: null })}
      <button>${icon('search')}${t.button}</button>
    </form>
    ${aside}
    <nav class="views" id="views" aria-label="${t.views}">
      ${views.map((view) => renderView(path, query, view))}
    </nav>
  </div>`

function renderView(path: string, query: ListQuery, [title, view, count]: SuggestedSearch): Html {
  const [href, here] = [address(path, view), address(path, query)]
  return html`<a href="${href}" ${attributes({ 'aria-current': href === here ? 'true' : null })}
    >${title}${renderCount(count)}</a
  >`
}

/** Undefined: nothing. */
export const renderCount = (count: number | undefined): Content =>
  count === undefined ? null : html` <span class="count">${renderNumber(count)}</span>`

/**
 * Pages are cut by the oldest row that is shown, so that new rows do not push others onto the next
 * page.
 */
export const renderOlder = (list: {
  readonly path: string
  readonly query: ListQuery
  readonly shown: number
  readonly isNewest: boolean
  /** Null: there is no next page. */
  readonly next: Readonly<Record<string, string | number>> | null
}): Html =>
  html`<nav class="pager" aria-label="${PAGES.frame.table.pages}">
    <span>${fill(t.shown, { count: list.shown })}</span>
    ${list.isNewest ? null : html`<a href="${address(list.path, list.query)}">${t.newest}</a>`}
    ${list.next === null ? null : html`<a href="${address(list.path, { ...list.query, ...list.next })}" rel="next">${t.older}</a>`}
  </nav>`
