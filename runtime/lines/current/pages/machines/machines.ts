/** /ui/machines: the fleet in one live table, with a search and a bar of actions. */
import type { H3Event, HTTPResponse } from 'h3'
import { parseMac } from '../../../../core/machine/mac.ts'
import { seeOther } from '../../../../web/http/answers.ts'
import { banner, emptyState } from '../../../../web/ui/elements.ts'
import { address, html, type Content, type Html } from '../../../../web/ui/html.ts'
import { cutPage, PAGE_ROWS, type Page } from '../../../../web/ui/paging.ts'
import type { Route } from '../../../../web/http/route.ts'
import { readListQuery, renderSearch, type ListQuery } from '../../../../web/ui/search.ts'
import { refreshOnNews } from '../../../../web/ui/refresh.ts'
import { renderPager, renderTable, type Column } from '../../../../web/ui/tables.ts'
import { renderBulkBar } from './bulk-bar.ts'
import { goBack } from '../frame/form-answer.ts'
import { messageOf, type PageContext } from '../frame/page-context.ts'
import { formRoute, pageRoute } from '../frame/page-routes.ts'
import { opensQuestion } from '../frame/question.ts'
import { keysDialog } from './keys-dialog.ts'
import { machinePath, renderMachineRow, renderTile } from '../view/machine-row.ts'
import type { Machine } from '../../rules/machine.ts'

const PATH = '/ui/machines'
/** The parameters of the table; forms pass them on. */
const KEPT = ['q', 'filter', 'sort', 'page', 'view'] as const

const COLUMNS: readonly Column[] = [
  {
    className: 'pick',
    title: html`<input
      type="checkbox"
      id="pick-page"
      class="scripted-only"
      aria-label="Select all on this page"
    />`,
  },
  { key: 'state', title: 'State', className: 'state' },
  { key: 'name', title: 'Machine', className: 'name' },
  { title: 'Next network boot', className: 'will' },
  { key: 'image', title: 'Image', className: 'image' },
  { key: 'disk', title: 'Disk', className: 'disk' },
  { key: 'seen', title: 'Seen', className: 'seen' },
]

const VIEWS = [
  ['All', ''],
  ['Needs attention', 'state:needs-you,failed'],
  ['Discovered', 'is:discovered'],
  ['Armed', 'state:armed'],
  ['Running', 'state:running'],
  ['Done', 'state:done'],
  ['Seen this hour', 'seen:<1h'],
] as const

export const machinesPage = (context: PageContext): readonly Route[] => [
  pageRoute(PATH, (event) => show(context, event)),
  formRoute(PATH, (event, form) => add(context, event, form)),
]

async function show(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const { site } = context
  const { searchParams } = event.url
  const query = readListQuery(searchParams, KEPT, 1000)
  const all = await site.machines.list()
  const found = site.views.match(all, searchParams)
  const page = cutPage(found, searchParams)
  const isWall = query['view'] === 'wall'
  return await context.show(event, {
    title: 'Machines',
    section: PATH,
    count: html`<span ${refreshOnNews('count', address(PATH, query), 2000)}
      >${found.length === all.length ? all.length : `${found.length} of ${all.length}`}</span
    >`,
    live: address('/events/machines', { q: '', page: 1, ...query, view: null }),
    actions: html`<button type="button" class="chip" id="arrived" hidden></button>
      <button type="button" class="scripted-only" data-open="#keys">Keyboard shortcuts</button>
      <a
        class="button"
        href="${address(PATH, { ...query, page: null, view: isWall ? null : 'wall' })}"
        >${isWall ? 'Table' : 'Wall'}</a
      >`,
    messages: html`${messageOf(context, event)}${done(searchParams)}`,
    body: html`${all.length === 0 ? null : renderTools(query)}
    ${all.length === 0 ? null : renderQueue(context, query)}
    ${isWall ? renderWall(context, event, page) : renderFleet(context, event, query, page)}
    ${all.length === 0 ? teach(context, event) : found.length === 0 ? nothingFound() : null}
    ${
      all.length === 0
        ? addForm()
        : html`<details>
            <summary>Add a machine by its MAC address</summary>
            ${addForm()}
          </details>`
    }
    ${keysDialog}`,
  })
}

function done(query: URLSearchParams): Content {
  const [deleted, missing] = ['deleted', 'missing'].map((name) => {
    const mac = parseMac(query.get(name) ?? '')
    return mac.ok ? mac.value : null
  })
  if (deleted)
    return banner(
      'done',
      html`${deleted} was deleted. It reappears as discovered when it next boots from the network.`,
    )
  return missing ? banner('failed', html`${missing} no longer exists.`) : null
}

function renderTools(query: ListQuery): Html {
  const { page: _page, filter: _filter, ...kept } = query
  return renderSearch({
    path: PATH,
    query: kept,
    name: 'q',
    label: 'Search machines',
    placeholder: 'rack-1  mode:flash-once  -state:done  seen:<1h',
    views: VIEWS.map(([title, q]) => [title, { ...kept, q }]),
  })
}

/** Where the number of concurrent flashes is limited: how many run, and how many wait. */
function renderQueue(context: PageContext, query: ListQuery): Content {
  const queue = context.queue()
  if (queue === null) return null
  const { most, flashing, waiting } = queue
  return html`<p class="dim" ${refreshOnNews('queue', address(PATH, query), 2000)}>
    ${flashing} of at most ${most} machines flashing,
    ${
      waiting === 0
        ? 'none waiting'
        : html`<a href="${address(PATH, { q: 'is:waiting' })}">${waiting} waiting</a>`
    }.
  </p>`
}

function renderFleet(
  context: PageContext,
  event: H3Event,
  query: ListQuery,
  page: Page<Machine>,
): Html {
  const clock = context.clock()
  return html`<form id="bulk" hx-disinherit="*" ${opensQuestion('/ui/machines/bulk')}>
      ${renderTable({
        caption: 'Machines',
        className: 'fleet',
        path: PATH,
        query,
        columns: COLUMNS,
        body: { id: 'rows', 'sse-swap': 'machines-update', 'hx-swap': 'morph:innerHTML' },
        rows: page.rows.map((machine) => renderMachineRow(context.view(machine, event), clock)),
      })}
      ${renderBulkBar(page.total, query)}
    </form>
    ${page.total === 0 ? null : renderPager(PATH, query, page, (page.page - 1) * PAGE_ROWS + 1)}`
}

function renderWall(context: PageContext, event: H3Event, page: Page<Machine>): Html {
  const clock = context.clock()
  const here = `${event.url.pathname}${event.url.search}`
  return html`<div class="tiles" ${refreshOnNews('wall', here, 1000)}>
    ${page.rows.map((machine) => renderTile(context.view(machine, event), clock))}
  </div>`
}

const nothingFound = (): Html =>
  html`<div class="if-empty">
    ${emptyState('No matching machines', 'Remove a term or clear the search.', html`<a class="button" href="${PATH}">Show all machines</a>`)}
  </div>`

function teach(context: PageContext, event: H3Event): Html {
  const { baseUrl } = context.site.contact(event)
  return html`<div class="if-empty">
    ${emptyState(
      'No machines yet',
      html`Boot one from the network and it appears here. Your DHCP server must point machines to
        <code>${baseUrl}/pxe-bootstrap.ipxe</code>.`,
      html`<a class="button primary" href="/ui/settings#dhcp-pxe">Set up DHCP</a>`,
    )}
  </div>`
}

const addForm = (): Html =>
  html`<form method="post" action="${PATH}" class="row">
    <input
      name="mac"
      class="mono"
      required
      aria-label="MAC address"
      placeholder="aa:bb:cc:dd:ee:ff"
      maxlength="17"
      pattern="[0-9a-fA-F]{2}([:\\-][0-9a-fA-F]{2}){5}"
      autocomplete="off"
      spellcheck="false"
    />
    <button>Add machine</button>
  </form>`

/** Adds a machine that has not booted yet; it boots its own disk until it is configured. */
async function add(context: PageContext, event: H3Event, form: URLSearchParams): Promise<unknown> {
  const { site } = context
  const given = (form.get('mac') ?? '').trim()
  const mac = parseMac(given)
  if (!mac.ok) {
    const error = `"${given.slice(0, 40)}" is not a MAC address (six pairs of hexadecimal digits).`
    return goBack(site, event, PATH, { error })
  }
  if ((await site.machines.find(mac.value)) === null) {
    const added = await site.fleet.upsert(
      mac.value,
      {},
      site.by(event),
      (before) => before === null,
    )
    if (!added.ok && added.refusal.why === 'fields') {
      return goBack(site, event, PATH, { error: 'The machine could not be added.' })
    }
  }
  return seeOther(machinePath(mac.value))
}
