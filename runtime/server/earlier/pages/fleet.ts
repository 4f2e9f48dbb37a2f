/** /ui/dashboard and /ui/machines: counts, and the fleet in one live table. */
import type { Answer } from '../../../kit/web/answers/answers.ts'
import { card, factList } from '../../../kit/web/ui/elements.ts'
import { address, html, type Html } from '../../../kit/web/ui/html.ts'
import { cutPage } from '../../../kit/web/ui/paging.ts'
import { refreshOnNews } from '../../../kit/web/ui/refresh.ts'
import { readListQuery, renderSearch, type ListQuery } from '../../../kit/web/ui/search.ts'
import { renderPager } from '../../../kit/web/ui/tables.ts'
import { formAt, pageAt } from '../../pages/context-routes.ts'
import {
  addMachine,
  MACHINES_PATH,
  renderFound,
  renderFleetTable,
  renderFoldedAddForm,
  renderGone,
  renderNoMachines,
} from '../../pages/machines/machines-list.ts'
import { PAGES } from '../../texts/texts.ts'
import { isUnassigned } from '../rules/machine.ts'
import { COLUMNS, renderMachineRow } from './machine-row.ts'
import type { EarlierContext } from './page-context.ts'

const t = PAGES.earlier

const HOME = '/ui/dashboard'
const PATH = MACHINES_PATH

export const FLEET_PAGES = [
  pageAt(HOME, showCounts),
  pageAt(PATH, showMachines),
  formAt(PATH, addMachine),
]

async function showCounts(context: EarlierContext): Promise<Answer> {
  const machines = await context.site.machines.list()
  const images = await context.services.shelf.list()
  const discovered = machines.filter(isUnassigned).length
  return await context.show({
    title: t.dashboard.title,
    section: HOME,
    updates: address('/events/machines', { q: '', page: 1 }),
    body: html`<div id="dashboard-counts" ${refreshOnNews('dashboard-counts', HOME, 2000)}>
      ${card({
        title: t.dashboard.fleet,
        body: factList([
          [t.dashboard.machines, linkCount(machines.length, PATH)],
          [t.dashboard.discovered, linkCount(discovered, address(PATH, { q: 'is:discovered' }))],
          [t.dashboard.images, linkCount(images.length, '/ui/images')],
        ]),
      })}
    </div>`,
  })
}

const linkCount = (count: number, href: string): Html =>
  html`<a href="${href}"><strong>${count}</strong></a>`

async function showMachines(context: EarlierContext): Promise<Answer> {
  const { site } = context
  const query = readListQuery(context.query, ['q', 'filter', 'sort', 'page'], 1000)
  const all = await site.machines.list()
  const found = site.views.match(all, context.query)
  const page = cutPage(found, context.query)
  const clock = context.clock()
  return await context.show({
    title: PAGES.frame.titles.machines,
    section: PATH,
    count: renderFound(found.length, all.length),
    updates: address('/events/machines', { q: '', page: 1, ...query }),
    messages: html`${context.message()}${renderGone(context.query)}`,
    body: html`${all.length === 0 ? null : renderTools(query)}
      <form>
        ${renderFleetTable({
          query,
          columns: COLUMNS,
          rows: page.rows.map((machine) =>
            renderMachineRow(machine, site.runs.findRunning(machine.mac), clock),
          ),
        })}
      </form>
      ${all.length === 0 ? renderNoMachines(context.contact().baseUrl) : renderPager(PATH, query, page)}
      ${renderFoldedAddForm()}`,
  })
}

const renderTools = (query: ListQuery): Html =>
  renderSearch({
    path: PATH,
    query,
    name: 'q',
    label: PAGES.machines.search.label,
    placeholder: t.machines.example,
    views: [
      [PAGES.machines.search.filters.all, {}],
      [PAGES.machines.search.filters.discovered, { q: 'is:discovered' }],
      [t.machines.views.flash, { q: 'policy:flash' }],
    ],
  })
