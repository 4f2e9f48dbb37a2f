/** /ui/dashboard and /ui/machines: counts, and the fleet in one live table. */
import type { H3Event, HTTPResponse } from 'h3'
import { parseMac } from '../../../kit/net/rules/mac.ts'
import { seeOther } from '../../../kit/web/answers/answers.ts'
import { banner, card, emptyState, factList } from '../../../kit/web/ui/elements.ts'
import { address, fillHtml, html, type Content, type Html } from '../../../kit/web/ui/html.ts'
import { cutPage } from '../../../kit/web/ui/paging.ts'
import { refreshOnNews } from '../../../kit/web/ui/refresh.ts'
import { readListQuery, renderSearch, type ListQuery } from '../../../kit/web/ui/search.ts'
import { renderPager, renderTable } from '../../../kit/web/ui/tables.ts'
import type { Route } from '../../../kit/web/answers/route.ts'
import { isUnassigned } from '../rules/machine.ts'
import { COLUMNS, machinePath, renderMachineRow } from './frame/machine-row.ts'
import { goBack, type PageContext } from './frame/page-context.ts'
import { formRoute, pageRoute } from '../../../kit/web/ui/page-routes.ts'
import { PAGES } from '../../texts/texts.ts'
import { fill } from '../../../kit/texts/text.ts'

const t = PAGES.earlier

const HOME = '/ui/dashboard'
const PATH = '/ui/machines'

export const fleetPages = (context: PageContext): readonly Route[] => [
  pageRoute(HOME, (event) => showCounts(context, event)),
  pageRoute(PATH, (event) => showMachines(context, event)),
  formRoute(PATH, (event, form) => add(context, event, form)),
]

async function showCounts(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const machines = await context.site.machines.list()
  const images = await context.services.shelf.list()
  const discovered = machines.filter(isUnassigned).length
  return await context.show(event, {
    title: t.dashboard.title,
    section: HOME,
    updates: address('/events/machines', { q: '', page: 1 }),
    body: html`<div id="dashboard-counts" ${refreshOnNews('dashboard-counts', HOME, 2000)}>
      ${card({
        title: t.dashboard.fleet,
        body: factList([
          [t.dashboard.machines, renderCount(machines.length, PATH)],
          [t.dashboard.discovered, renderCount(discovered, address(PATH, { q: 'is:discovered' }))],
          [t.dashboard.images, renderCount(images.length, '/ui/images')],
        ]),
      })}
    </div>`,
  })
}

const renderCount = (count: number, href: string): Html =>
  html`<a href="${href}"><strong>${count}</strong></a>`

async function showMachines(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const { site } = context
  const { searchParams } = event.url
  const query = readListQuery(searchParams, ['q', 'filter', 'sort', 'page'], 1000)
  const all = await site.machines.list()
  const found = site.views.match(all, searchParams)
  const page = cutPage(found, searchParams)
  const clock = context.clock()
  return await context.show(event, {
    title: t.machines.title,
    section: PATH,
    count:
      found.length === all.length
        ? all.length
        : fill(t.machines.count, { found: found.length, all: all.length }),
    updates: address('/events/machines', { q: '', page: 1, ...query }),
    messages: renderDeleted(searchParams),
    body: html`${all.length === 0 ? null : renderTools(query)}
      <form>
        ${renderTable({
          caption: t.machines.caption,
          className: 'fleet',
          path: PATH,
          query,
          columns: COLUMNS,
          body: { id: 'rows', 'sse-swap': 'machines-update', 'hx-swap': 'morph:innerHTML' },
          rows: page.rows.map((machine) =>
            renderMachineRow(machine, site.runs.findRunning(machine.mac), clock),
          ),
        })}
      </form>
      ${all.length === 0 ? teach(context, event) : renderPager(PATH, query, page)} ${addForm}`,
  })
}

function renderDeleted(query: URLSearchParams): Content {
  const mac = parseMac(query.get('deleted') ?? '')
  if (!mac.ok) return null
  return banner('done', fill(t.machines.deleted, { mac: mac.value }))
}

const renderTools = (query: ListQuery): Html =>
  renderSearch({
    path: PATH,
    query,
    name: 'q',
    label: t.machines.search,
    placeholder: t.machines.example,
    views: [
      [t.machines.views.all, {}],
      [t.machines.views.discovered, { q: 'is:discovered' }],
      [t.machines.views.flash, { q: 'policy:flash' }],
    ],
  })

/** Hidden as soon as the live channel brings a row. */
const teach = ({ site }: PageContext, event: H3Event): Html =>
  html`<div class="if-empty">
    ${emptyState(
      t.machines.empty.title,
      fillHtml(t.machines.empty.text, {
        url: html`<code>${site.contact(event).baseUrl}/pxe-bootstrap.ipxe</code>`,
      }),
    )}
  </div>`

const addForm: Html = html`<details>
  <summary>${t.machines.add.title}</summary>
  <form method="post" action="${PATH}" class="row">
    <input
      name="mac"
      class="mono"
      required
      aria-label="${t.machines.add.label}"
      placeholder="aa:bb:cc:dd:ee:ff"
      maxlength="17"
      autocomplete="off"
      spellcheck="false"
    />
    <button>${t.machines.add.button}</button>
  </form>
</details>`

/** Adds a machine that has not booted yet; it boots its own disk until it is configured. */
async function add(context: PageContext, event: H3Event, form: URLSearchParams): Promise<unknown> {
  const { fleet, by } = context.site
  const given = (form.get('mac') ?? '').trim()
  const mac = parseMac(given)
  if (!mac.ok) {
    const error = fill(t.machines.add.invalid, { text: given.slice(0, 40) })
    return goBack(context, event, PATH, error)
  }
  await fleet.upsert(mac.value, {}, by(event), (before) => before === null)
  return seeOther(machinePath(mac.value))
}
