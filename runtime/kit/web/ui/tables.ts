/** Tables whose order and page are part of the address. */
import { address, attributes, html, type Content, type Html } from './html.ts'
import type { PageOfRows } from './paging.ts'
import type { ListQuery } from './search.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill, renderNumber } from '#kit/texts/text.ts'

const t = PAGES.frame.table

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

export const ACTIONS: TableColumn = { title: html`<span class="spoken">${t.actions}</span>` }

/** `sort=seen` is ascending, `sort=-seen` descending; a click reverses the order and keeps the filters. */
const renderHead = (table: TableView): Html =>
  html`<thead>
    <tr data-label="${t.sortBy}">
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
  return html`<nav class="pager" aria-label="${t.pages}">
    <span>${fill(t.range, { range, total: renderNumber(total) })}</span>${
      pages < 2
        ? null
        : html`${link(1, t.first, 'first')}${link(page - 1, t.previous, 'prev')}<span>${fill(t.page, { page, pages })}</span>${link(page + 1, t.next, 'next')}${link(pages, t.last, 'last')}`
    }
  </nav>`
}
