/** Tables whose order and page are part of the address. */
import { address, attributes, html, type Content, type Html } from './html.ts'
import { renderNumber } from '#kit/foundation/text.ts'
import { icon } from './elements.ts'
import { hidden } from './fields.ts'

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
      <button>${icon('search')}Search</button>
    </form>
    ${aside}
    <nav class="views" id="views" aria-label="Views">
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

/** Cut by the oldest row shown, so that new rows push no others onto the next page. */
export const renderOlder = (list: {
  readonly path: string
  readonly query: ListQuery
  readonly shown: number
  readonly isNewest: boolean
  /** Null: there is no next page. */
  readonly next: Readonly<Record<string, string | number>> | null
}): Html =>
  html`<nav class="pager" aria-label="Pages">
    <span>${list.shown} shown</span>
    ${list.isNewest ? null : html`<a href="${address(list.path, list.query)}">Newest</a>`}
    ${list.next === null ? null : html`<a href="${address(list.path, { ...list.query, ...list.next })}" rel="next">Older</a>`}
  </nav>`

/** `path` without an ending. */
export const renderDownloads = (path: string, query: ListQuery): Html =>
  html`<details class="menu" name="menu">
    <summary class="button">Download</summary>
    <ul class="panel links">
      ${['CSV', 'JSON'].map(
        (kind) =>
          html`<li>
            <a href="${address(`${path}.${kind.toLowerCase()}`, query)}">As ${kind}</a>
          </li>`,
      )}
    </ul>
  </details>`

export interface TableColumn {
  /** `sort` after the first click, with `-` for descending; undefined: it cannot be sorted. */
  readonly key?: string
  readonly title: Content
  readonly className?: string
}

interface TableView {
  readonly caption: string
  /** A text is the title of a column. */
  readonly columns: readonly (string | TableColumn)[]
  readonly rows: Content
  readonly className?: string
  /** The page, where columns can be sorted. */
  readonly path?: string
  readonly query?: ListQuery
  readonly body?: Readonly<Record<string, string>>
}

/**
 * On a phone each row is a card: a cell with `data-label="Size"` then stands behind its label, one
 * without takes the whole width.
 */
export const renderTable = (table: TableView): Html =>
  html`<div class="table">
    <table${attributes({ class: table.className })}>
      <caption class="spoken">
        ${table.caption}
      </caption>
      ${renderHead(table)}
      <tbody${attributes(table.body ?? {})}>
        ${table.rows}
      </tbody>
    </table>
  </div>`

export const numberColumn = (title: string): TableColumn => ({ title, className: 'number' })

/** The one in its head selects all rows of the page. */
export const pickColumn = (label: string): TableColumn => ({
  className: 'pick',
  title: html`<label class="scripted-only check"
    ><input type="checkbox" id="pick-page" aria-label="${label}" /><span class="narrow-only"
      >${label}</span
    ></label
  >`,
})

export const ACTIONS: TableColumn = { title: html`<span class="spoken">Actions</span>` }

/** `sort=seen` is ascending, `sort=-seen` descending; a click reverses the order and keeps the filters. */
const renderHead = (table: TableView): Html =>
  html`<thead>
    <tr data-label="Sort by">
      ${table.columns.map((column) => renderTitle(typeof column === 'string' ? { title: column } : column, table))}
    </tr>
  </thead>`

const renderTitle = (column: TableColumn, table: TableView): Html =>
  column.key === undefined
    ? html`<th scope="col" ${attributes({ class: column.className })}>${column.title}</th>`
    : renderSortable(column.key, column, table)

function renderSortable(
  key: string,
  { title, className }: TableColumn,
  { path = '', query = {} }: TableView,
): Html {
  const name = key.replace(/^-/, '')
  const sort = query['sort'] ?? ''
  const [isUp, isDown] = [sort === name, sort === `-${name}`]
  const next = isUp ? `-${name}` : isDown ? name : key
  const href = address(path, { ...query, page: null, sort: next })
  const order = isUp ? 'ascending' : isDown ? 'descending' : null
  return html`<th scope="col" ${attributes({ class: className, 'aria-sort': order })}>
    <a href="${href}"
      >${title}<span aria-hidden="true">${isUp ? ' ↑' : isDown ? ' ↓' : ''}</span></a
    >
  </th>`
}

/** "101–200 of 412", and links to the other pages. */
export function renderPager<Row>(
  path: string,
  query: ListQuery,
  { page, pages, first, rows, total }: PageOfRows<Row>,
): Html {
  const link = (to: number, text: string, rel: string) =>
    to < 1 || to > pages || to === page
      ? html`<span class="dim">${text}</span>`
      : html`<a href="${address(path, { ...query, page: to })}" ${attributes({ rel })}>${text}</a>`
  const range =
    rows.length === 0 ? '0' : `${renderNumber(first)}–${renderNumber(first + rows.length - 1)}`
  return html`<nav class="pager" aria-label="Pages">
    <span>${range} of ${renderNumber(total)}</span>${
      pages < 2
        ? null
        : html`${link(1, 'First', 'first')}${link(page - 1, 'Previous', 'prev')}<span
              >Page ${page} of ${pages}</span
            >${link(page + 1, 'Next', 'next')}${link(pages, 'Last', 'last')}`
    }
  </nav>`
}

/** Rows of a page of the machines table. */
export const PAGE_ROWS = 100

interface PageOfRows<Row> {
  readonly rows: readonly Row[]
  /** The number of the page from 1; it is never past the last. */
  readonly page: number
  readonly pages: number
  /** The number of its first row, from 1. */
  readonly first: number
  readonly total: number
}

/** By the parameter `page`, from 1; else the first page. `most`: how many rows a page has. */
export function cutPage<Row>(
  rows: readonly Row[],
  query: URLSearchParams,
  most = PAGE_ROWS,
): PageOfRows<Row> {
  const pages = Math.max(1, Math.ceil(rows.length / most))
  const requested = /^\d{1,6}$/.test(query.get('page') ?? '') ? Number(query.get('page')) : 1
  const page = Math.min(pages, Math.max(1, requested))
  return {
    rows: rows.slice((page - 1) * most, page * most),
    page,
    pages,
    first: (page - 1) * most + 1,
    total: rows.length,
  }
}
