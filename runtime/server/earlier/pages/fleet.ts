/** /ui/machines: the fleet in one live table, with a search. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { address, attributes, html, type Html } from '#kit/web/ui/html.ts'
import { cutPage } from '#kit/web/ui/paging.ts'
import { refreshOnNews } from '#kit/web/ui/refresh.ts'
import { readListQuery, renderSearch, type ListQuery } from '#kit/web/ui/search.ts'
import { renderPager } from '#kit/web/ui/tables.ts'
import { formAt, pageAt } from '#server/pages/context-routes.ts'
import {
  addMachine,
  MACHINES_PATH,
  renderFound,
  renderFleetTable,
  renderFoldedAddForm,
  renderGone,
  renderNoMachines,
  renderNoneFound,
} from '#server/pages/machines/machines-list.ts'
import { renderMistakes } from '#server/pages/machines/search-mistakes.ts'
import { PAGES } from '#server/texts/texts.ts'
import { VOCABULARY } from './fleet-query.ts'
import { COLUMNS, renderMachineRow } from './machine-row.ts'
import { viewOf } from './machine-view.ts'
import type { EarlierContext } from './page-context.ts'

const t = PAGES.earlier
const { filters } = PAGES.machines.search

const PATH = MACHINES_PATH

export const FLEET_PAGES = [pageAt(PATH, showMachines), formAt(PATH, addMachine)]

async function showMachines(context: EarlierContext): Promise<Answer> {
  const { site } = context
  const query = readListQuery(context.query, ['q', 'filter', 'sort', 'page'], 1000)
  const all = await site.machines.list()
  const count = (q: string) => site.views.match(all, new URLSearchParams({ q })).length
  // Default: by state if something failed.
  const sort = query['sort'] ?? (count('state:failed') > 0 ? 'state' : null)
  const sorted = sort === null ? query : { ...query, sort }
  const found = site.views.match(all, new URLSearchParams(sorted))
  const page = cutPage(found, context.query)
  const clock = context.clock()
  return await context.show({
    title: PAGES.frame.titles.machines,
    section: PATH,
    count: html`<span
      ${attributes({ 'hx-select-oob': all.length === 0 ? null : '#views:morph' })}
      ${refreshOnNews('count', address(PATH, query), 2000)}
      >${renderFound(found.length, all.length)}</span
    >`,
    updates: address('/events/machines', { q: '', page: 1, ...sorted }),
    messages: html`${context.message()}${renderGone(context.query)}`,
    body: html`${all.length === 0 ? null : renderTools(query, count)}
      <form>
        ${renderFleetTable({
          query: sorted,
          columns: COLUMNS,
          rows: page.rows.map((machine) => renderMachineRow(viewOf(context, machine), clock)),
        })}
      </form>
      ${
        all.length === 0
          ? renderNoMachines(context.contact().baseUrl)
          : found.length === 0
            ? renderNoneFound()
            : renderPager(PATH, query, page)
      }
      ${renderFoldedAddForm()}`,
  })
}

const VIEWS = [
  [filters.all, ''],
  [filters.needsAttention, 'state:needs-attention,failed'],
  [filters.failed, 'state:failed'],
  [filters.discovered, 'is:discovered'],
  [filters.armed, 'state:armed'],
  [filters.running, 'state:running'],
  [filters.done, 'state:done'],
  [t.machines.views.flash, 'policy:flash'],
] as const

const renderTools = (
  { page: _page, filter: _filter, ...kept }: ListQuery,
  count: (q: string) => number,
): Html =>
  html`${renderSearch({
    path: PATH,
    query: kept,
    name: 'q',
    label: PAGES.machines.search.label,
    placeholder: t.machines.example,
    views: VIEWS.map(([title, q]): [string, ListQuery, number] => [
      title,
      { ...kept, q },
      count(q),
    ]),
  })}
  ${renderMistakes(kept, VOCABULARY)}`
