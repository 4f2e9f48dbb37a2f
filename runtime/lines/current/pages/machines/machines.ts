/** /ui/machines: the fleet in one table, found by a query, changed by a bar, live. */
import type { H3Event, HTTPResponse } from 'h3'
import { parseMac } from '../../../../core/machine/mac.ts'
import { seeOther } from '../../../../web/http/answers.ts'
import { banner, emptyState, icon } from '../../../../web/ui/elements.ts'
import { address, attributes, html, type Content, type Html } from '../../../../web/ui/html.ts'
import { cutPage, PAGE_ROWS, type Page } from '../../../../web/ui/paging.ts'
import type { Route } from '../../../../web/http/route.ts'
import { renderHead, renderPager, type Column, type TableQuery } from '../../../../web/ui/tables.ts'
import { renderBulkBar } from './bulk-bar.ts'
import { goBack } from '../frame/form-answer.ts'
import { messageOf, type PageContext } from '../frame/page-context.ts'
import { keysDialog } from './keys-dialog.ts'
import { machinePath, renderMachineRow, renderTile } from '../view/machine-row.ts'
import type { Machine } from '../../rules/machine.ts'

const PATH = '/ui/machines'
/** What of an address belongs to the table, and survives every post. */
const KEPT = ['q', 'filter', 'sort', 'page', 'view'] as const

const COLUMNS: readonly Column[] = [
  { key: 'state', title: 'State', className: 'state' },
  { key: 'name', title: 'Machine', className: 'name' },
  { key: null, title: 'Next network boot', className: 'will' },
  { key: 'image', title: 'Image', className: 'image' },
  { key: 'disk', title: 'Disk', className: 'disk' },
  { key: 'seen', title: 'Seen', className: 'seen' },
]

/** Searches that people come back to. */
const VIEWS = [
  { title: 'All', q: '' },
  { title: 'Needs you', q: 'state:needs-you,failed' },
  { title: 'Discovered', q: 'is:discovered' },
  { title: 'Armed', q: 'state:armed' },
  { title: 'Running', q: 'state:running' },
  { title: 'Done', q: 'state:done' },
  { title: 'Seen this hour', q: 'seen:<1h' },
] as const

export function machinesPage(context: PageContext): readonly Route[] {
  return [
    { method: 'GET', path: PATH, access: 'page', handle: (event) => show(context, event) },
    {
      method: 'POST',
      path: PATH,
      access: 'page',
      takes: 'form',
      handle: (e, form) => add(context, e, form),
    },
  ]
}

const readTableQuery = (query: URLSearchParams): TableQuery =>
  Object.fromEntries(
    KEPT.flatMap((name) => {
      const value = query.get(name)
      return value === null || value === '' ? [] : [[name, value.slice(0, 1000)]]
    }),
  )

async function show(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const { site } = context
  const { searchParams } = event.url
  const query = readTableQuery(searchParams)
  const all = await site.machines.list()
  const found = site.views.match(all, searchParams)
  const page = cutPage(found, searchParams)
  const isWall = query['view'] === 'wall'
  return await context.show(event, {
    title: 'Machines',
    section: PATH,
    count: html`<span${attributes(countAttributes(query))}>${found.length === all.length ? all.length : `${found.length} of ${all.length}`}</span>`,
    live: address('/events/machines', { q: '', page: 1, ...query, view: null }),
    actions: html`<button type="button" class="chip" id="arrived" hidden></button>
      <button type="button" class="scripted-only" data-open="#keys">Keyboard</button>
      <a
        class="button"
        href="${address(PATH, { ...query, page: null, view: isWall ? null : 'wall' })}"
        >${isWall ? 'Table' : 'Wall'}</a
      >`,
    messages: html`${messageOf(context, event)}${done(searchParams)}`,
    body: html`${all.length === 0 ? null : renderTools(query)}
    ${all.length === 0 ? null : renderQueue(context, query)}
    ${isWall ? renderWall(context, event, page) : renderTable(context, event, query, page)}
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

/** The number follows the rows, at leisure. */
const countAttributes = (query: TableQuery) => ({
  id: 'count',
  'hx-get': address(PATH, query),
  'hx-select': '#count',
  'hx-swap': 'outerHTML',
  'hx-trigger': 'flasher:news',
  'data-every': 2000,
})

function done(query: URLSearchParams): Content {
  const [deleted, missing] = ['deleted', 'missing'].map((name) => {
    const mac = parseMac(query.get(name) ?? '')
    return mac.ok ? mac.value : null
  })
  if (deleted)
    return banner(
      'done',
      html`${deleted} was deleted. It comes back as discovered when it boots from the network.`,
    )
  return missing ? banner('failed', html`${missing} was not there any more.`) : null
}

const renderTools = (query: TableQuery): Html =>
  html`<div class="tools">
    <form class="search" role="search" action="${PATH}">
      <input
        type="search"
        id="q"
        name="q"
        value="${query['q'] ?? ''}"
        aria-label="Search machines"
        placeholder="rack-1  mode:flash-once  -state:done  seen:<1h"
        autocomplete="off"
        spellcheck="false"
      />
      ${query['sort'] === undefined ? null : html`<input type="hidden" name="sort" value="${query['sort']}" />`}
      ${query['view'] === undefined ? null : html`<input type="hidden" name="view" value="${query['view']}" />`}
      <button>${icon('search')}Search</button>
    </form>
    <nav class="views" aria-label="Views">
      ${VIEWS.map(({ title, q }) => {
        const isHere = (query['q'] ?? '') === q
        return html`<a
          href="${address(PATH, { ...query, page: null, q })}"
          ${attributes({ 'aria-current': isHere ? 'true' : null })}
          >${title}</a
        >`
      })}
    </nav>
  </div>`

/** Where only so many may flash at a time: how many do, and who waits. */
function renderQueue(context: PageContext, query: TableQuery): Content {
  const queue = context.queue()
  if (queue === null) return null
  const { most, flashing, waiting } = queue
  const follow = attributes({
    'hx-get': address(PATH, query),
    'hx-select': '#queue',
    'hx-swap': 'outerHTML',
    'hx-trigger': 'flasher:news',
    'data-every': 2000,
  })
  return html`<p id="queue" class="dim" ${follow}>
    ${flashing} of at most ${most} ${most === 1 ? 'machine is' : 'machines are'} being flashed,
    ${
      waiting === 0
        ? 'nobody waits in line'
        : html`<a href="${address(PATH, { q: 'is:waiting' })}"
            >${waiting} ${waiting === 1 ? 'waits' : 'wait'} in line</a
          >`
    }.
  </p>`
}

function renderTable(
  context: PageContext,
  event: H3Event,
  query: TableQuery,
  page: Page<Machine>,
): Html {
  const clock = context.clock()
  const rows = page.rows.map((machine) => renderMachineRow(context.view(machine, event), clock))
  const head: readonly Column[] = [
    {
      key: null,
      className: 'pick',
      title: html`<input
        type="checkbox"
        id="pick-page"
        class="scripted-only"
        aria-label="Pick all on this page"
      />`,
    },
    ...COLUMNS,
  ]
  return html`<form
      method="post"
      action="/ui/machines/bulk"
      id="bulk"
      hx-post="/ui/machines/bulk"
      hx-target="#dialog"
      hx-select="#question"
      hx-swap="innerHTML"
      hx-disinherit="*"
    >
      <div class="table">
        <table class="fleet">
          <caption class="spoken">
            Machines
          </caption>
          ${renderHead(PATH, query, head)}
          <tbody id="rows" sse-swap="machines-update" hx-swap="morph:innerHTML">
            ${rows}
          </tbody>
        </table>
      </div>
      ${renderBulkBar(page.total, query)}
    </form>
    ${page.total === 0 ? null : renderPager(PATH, query, page, (page.page - 1) * PAGE_ROWS + 1)}`
}

const renderWall = (context: PageContext, event: H3Event, page: Page<Machine>): Html => {
  const clock = context.clock()
  const here = `${event.url.pathname}${event.url.search}`
  return html`<div
    class="tiles"
    id="wall"
    ${attributes({
      'hx-get': here,
      'hx-select': '#wall',
      'hx-swap': 'morph:outerHTML',
      'hx-trigger': 'flasher:news',
      'data-every': 1000,
    })}
  >
    ${page.rows.map((machine) => renderTile(context.view(machine, event), clock))}
  </div>`
}

const nothingFound = (): Html =>
  html`<div class="if-empty">
    ${emptyState('No machine matches', 'Take a word out of the search, or begin with all of them.', html`<a class="button" href="${PATH}">Show all machines</a>`)}
  </div>`

function teach(context: PageContext, event: H3Event): Html {
  const { baseUrl } = context.site.contact(event)
  return html`<div class="if-empty">
    ${emptyState(
      'No machines yet',
      html`Boot one from the network: it appears here by itself. Your DHCP server has to send it to
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

/** A box that has not booted yet: it is there with nothing to do but start its disk. */
async function add(context: PageContext, event: H3Event, form: URLSearchParams): Promise<unknown> {
  const { site } = context
  const given = (form.get('mac') ?? '').trim()
  const mac = parseMac(given)
  if (!mac.ok) {
    const error = `"${given.slice(0, 40)}" is not a MAC address: six pairs of hexadecimal digits.`
    return goBack(site, event, PATH, { error })
  }
  if ((await site.machines.find(mac.value)) === null) {
    const made = await site.fleet.upsert(mac.value, {}, site.by(event), (before) => before === null)
    if (!made.ok && made.refusal.why === 'fields') {
      return goBack(site, event, PATH, { error: 'The machine could not be added.' })
    }
  }
  return seeOther(machinePath(mac.value))
}
