/** Tables that sort by their heads and are turned page by page, all of it in the address. */
import { address, attributes, html, type Content, type Html } from './html.ts'
import type { Page } from './paging.ts'

export interface Column {
  /** What `sort` says; null: not sortable. */
  readonly key: string | null
  readonly title: Content
  readonly className?: string
}

/** What the address holds of a table. */
export type TableQuery = Readonly<Record<string, string>>

/** `sort=seen` is ascending, `sort=-seen` descending; a click turns it round. */
export function renderHead(path: string, query: TableQuery, columns: readonly Column[]): Html {
  const sort = query['sort'] ?? ''
  return html`<thead>
    <tr>
      ${columns.map(({ key, title, className }) => {
        if (key === null)
          return html`<th scope="col" ${attributes({ class: className })}>${title}</th>`
        const [isUp, isDown] = [sort === key, sort === `-${key}`]
        const href = address(path, { ...query, page: null, sort: isUp ? `-${key}` : key })
        const order = isUp ? 'ascending' : 'descending'
        return html`<th
          scope="col"
          ${attributes({
            class: className,
            'aria-sort': isUp || isDown ? order : null,
          })}
        >
          <a href="${href}"
            >${title}<span aria-hidden="true">${isUp ? ' ↑' : isDown ? ' ↓' : ''}</span></a
          >
        </th>`
      })}
    </tr>
  </thead>`
}

/** "101–200 of 412", and the ways to the other pages. */
export function renderPager<Row>(
  path: string,
  query: TableQuery,
  { page, pages, rows, total }: Page<Row>,
  first: number,
): Html {
  const link = (to: number, text: string, rel: string) =>
    to < 1 || to > pages || to === page
      ? html`<span class="dim">${text}</span>`
      : html`<a href="${address(path, { ...query, page: to })}" ${attributes({ rel })}>${text}</a>`
  const range = rows.length === 0 ? '0' : `${first}–${first + rows.length - 1}`
  return html`<nav class="pager" aria-label="Pages">
    <span>${range} of ${total}</span>${
      pages < 2
        ? null
        : html`${link(1, 'First', 'first')}${link(page - 1, 'Previous', 'prev')}<span
              >Page ${page} of ${pages}</span
            >${link(page + 1, 'Next', 'next')}${link(pages, 'Last', 'last')}`
    }
  </nav>`
}
