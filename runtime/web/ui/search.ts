/** The search above a list, the views beside it, and the pager of lists that are read from the newest on. */
import { icon } from './elements.ts'
import { hidden } from './fields.ts'
import { address, attributes, html, type Html } from './html.ts'

/** The parameters of an address that a list keeps from page to page. */
export type ListQuery = Readonly<Record<string, string>>

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

interface Search {
  readonly path: string
  readonly query: ListQuery
  /** The parameter that the field fills. */
  readonly name: string
  readonly label: string
  readonly placeholder: string
  /** Queries that people come back to. */
  readonly views: readonly (readonly [title: string, query: ListQuery])[]
}

export const renderSearch = ({ path, query, name, label, placeholder, views }: Search): Html =>
  html`<div class="tools">
    <form class="search" role="search" action="${path}">
      <input
        type="search"
        id="q"
        name="${name}"
        value="${query[name] ?? ''}"
        aria-label="${label}"
        placeholder="${placeholder}"
        autocomplete="off"
        spellcheck="false"
      />
      ${hidden({ ...query, [name]: null })}
      <button>${icon('search')}Search</button>
    </form>
    <nav class="views" aria-label="Views">
      ${views.map(([title, view]) => {
        const [href, here] = [address(path, view), address(path, query)]
        return html`<a
          href="${href}"
          ${attributes({ 'aria-current': href === here ? 'true' : null })}
          >${title}</a
        >`
      })}
    </nav>
  </div>`

/** By the oldest row that is shown, so that new rows do not push others onto the next page. */
export const renderOlder = (list: {
  readonly path: string
  readonly query: ListQuery
  readonly shown: number
  readonly isNewest: boolean
  /** What the address of the next page adds; null: there is none. */
  readonly next: Readonly<Record<string, string | number>> | null
}): Html =>
  html`<nav class="pager" aria-label="Pages">
    <span>${list.shown} shown</span>
    ${list.isNewest ? null : html`<a href="${address(list.path, list.query)}">Newest</a>`}
    ${list.next === null ? null : html`<a href="${address(list.path, { ...list.query, ...list.next })}" rel="next">Older</a>`}
  </nav>`
