/** /ui/machines: the fleet in one live table, with a search and a bar of actions. */
import type { HTTPResponse } from 'h3'
import { TEMPLATES_PATH } from '../first-boot/template-path.ts'
import { parseMac } from '../../../../kit/net/rules/mac.ts'
import { PAGES } from '../../../texts/texts.ts'
import { fill } from '../../../../kit/texts/text.ts'
import { seeOther } from '../../../../kit/web/answers/answers.ts'
import { banner, emptyState } from '../../../../kit/web/ui/elements.ts'
import {
  address,
  attributes,
  fillHtml,
  html,
  trusted,
  type Content,
  type Html,
} from '../../../../kit/web/ui/html.ts'
import { cutPage, type PageOfRows } from '../../../../kit/web/ui/paging.ts'
import { readListQuery } from '../../../../kit/web/ui/search.ts'
import { refreshOnNews } from '../../../../kit/web/ui/refresh.ts'
import {
  pickColumn,
  renderPager,
  renderTable,
  type TableColumn,
} from '../../../../kit/web/ui/tables.ts'
import { renderBulkBar } from './bulk-bar.ts'
import { formAt, pageAt } from '../frame/context-routes.ts'
import type { PageContext } from '../frame/page-context.ts'
import { opensQuestion } from '../frame/question.ts'
import { keysDialog } from './keys-dialog.ts'
import { LIST_CHOICES, readColumns, readSaved } from './list-choices.ts'
import { renderTools } from './list-tools.ts'
import { COLUMN_TITLES, isUsual, renderColumns, type ColumnName } from '../view/fleet-columns.ts'
import { machinePath, renderMachineRow, renderTile } from '../view/machine-row.ts'
import type { Machine } from '../../rules/machine.ts'

const t = PAGES.machines.list

const PATH = '/ui/machines'
/** The parameters of the table; forms pass them on. */
const KEPT = ['q', 'filter', 'sort', 'page', 'view', 'columns'] as const

/** Columns that a window of 1280 pixels holds. */
const MAX_BESIDE = 7

const TIMES: readonly ColumnName[] = ['flashed', 'discovered', 'seen']

/** The first click on a time sorts from the newest. */
const columnOf = (name: ColumnName): TableColumn => {
  const isTime = TIMES.includes(name)
  const className = isTime ? 'time' : name === 'next' ? 'will' : name
  return { key: isTime ? `-${name}` : name, title: COLUMN_TITLES[name], className }
}

export const MACHINES_PAGES = [pageAt(PATH, show), formAt(PATH, add), ...LIST_CHOICES]

/** What the list shows, of a request. */
type FleetView = Awaited<ReturnType<typeof readView>>

async function readView(context: PageContext) {
  const query = readListQuery(context.query, KEPT, 1000)
  const all = await context.site.machines.list()
  const found = context.site.views.match(all, context.query)
  return {
    query,
    columns: readColumns(context),
    all,
    found,
    page: cutPage(found, context.query),
    isWall: query['view'] === 'wall',
  }
}

async function show(context: PageContext): Promise<HTTPResponse> {
  const view = await readView(context)
  const { query, columns, all, found, isWall } = view
  return await context.show({
    title: PAGES.frame.titles.machines,
    section: PATH,
    count: html`<span
      hx-select-oob="#views:morph,#queue:morph"
      ${refreshOnNews('count', address(PATH, query), 2000)}
      >${found.length === all.length ? all.length : fill(t.countFound, { found: found.length, all: all.length })}</span
    >`,
    updates: address('/events/machines', {
      q: '',
      page: 1,
      ...query,
      view: null,
      columns: isUsual(columns) ? null : renderColumns(columns),
    }),
    actions: html`<button type="button" class="chip" id="arrived" ${arrivedTexts} hidden></button>
      <button type="button" class="scripted-only wide-only" data-open="#keys">
        ${PAGES.machines.keys.title}
      </button>
      <a class="button wide-only" href="${TEMPLATES_PATH}">${PAGES.firstBoot.title}</a>
      <a
        class="button"
        href="${address(PATH, { ...query, page: null, view: isWall ? null : 'wall' })}"
        >${isWall ? t.table : t.wall}</a
      >`,
    messages: html`${context.message()}${done(context.query)}`,
    body: all.length === 0 ? renderFirst(context, view) : renderList(context, view),
  })
}

const arrivedTexts = attributes({ 'data-one': t.arrived.one, 'data-other': t.arrived.other })

/**
 * Renders the page before there is a machine; the table is there for the first one to appear in.
 */
const renderFirst = (context: PageContext, view: FleetView): Html =>
  html`${renderFleet(context, view)} ${teach(context)} ${addForm()} ${keysDialog}`

const renderList = (context: PageContext, view: FleetView): Html =>
  html`${renderTools({
      query: view.query,
      columns: view.columns,
      saved: readSaved(context),
      // The server keeps these answers until a machine changes: 7 filters of 10,000 take 15 ms.
      count: (q) => context.site.views.match(view.all, new URLSearchParams({ q })).length,
    })}
    ${renderQueue(context)}
    ${view.isWall ? renderWall(context, view.page) : renderFleet(context, view)}
    ${view.found.length === 0 ? nothingFound() : null}
    <details>
      <summary>${t.addSummary}</summary>
      ${addForm()}
    </details>
    ${keysDialog}`

function done(query: URLSearchParams): Content {
  const [deleted, missing] = ['deleted', 'missing'].map((name) => {
    const mac = parseMac(query.get(name) ?? '')
    return mac.ok ? mac.value : null
  })
  if (deleted) return banner('done', fill(t.deleted, { mac: deleted }))
  return missing ? banner('failed', fill(t.missing, { mac: missing })) : null
}

/** Where the number of concurrent flashes is limited: how many run, and how many wait. */
function renderQueue(context: PageContext): Content {
  const queue = context.queue()
  if (queue === null) return null
  const { most, flashing, waiting } = queue
  const link = html`<a href="${address(PATH, { q: 'is:waiting' })}">`
  const text =
    waiting === 0
      ? fillHtml(t.queue, { flashing, most })
      : fillHtml(t.queueWaiting, { flashing, most, waiting, link, end: trusted('</a>') })
  return html`<p class="dim" id="queue">${text}</p>`
}

function renderFleet(context: PageContext, { query, page, columns }: FleetView): Html {
  const clock = context.clock()
  return html`<form id="bulk" hx-disinherit="*" ${opensQuestion('/ui/machines/bulk')}>
      ${renderTable({
        caption: t.caption,
        className: columns.length > MAX_BESIDE ? 'fleet many' : 'fleet',
        path: PATH,
        query,
        columns: [pickColumn(t.selectPage), ...columns.map(columnOf)],
        body: { id: 'rows', 'sse-swap': 'machines-update', 'hx-swap': 'morph:innerHTML' },
        rows: page.rows.map((machine) => renderMachineRow(context.view(machine), clock, columns)),
      })}
      ${renderBulkBar(page.total, query)}
    </form>
    ${page.total === 0 ? null : renderPager(PATH, query, page)}`
}

function renderWall(context: PageContext, page: PageOfRows<Machine>): Html {
  const clock = context.clock()
  const { pathname, search } = context.event.url
  return html`<div class="tiles" ${refreshOnNews('wall', `${pathname}${search}`, 1000)}>
    ${page.rows.map((machine) => renderTile(context.view(machine), clock))}
  </div>`
}

const nothingFound = (): Html =>
  html`<div class="if-empty">
    ${emptyState(t.noneFound.title, t.noneFound.text, html`<a class="button" href="${PATH}">${t.noneFound.link}</a>`)}
  </div>`

function teach(context: PageContext): Html {
  const { baseUrl } = context.contact()
  return html`<div class="if-empty">
    ${emptyState(
      t.none.title,
      fillHtml(t.none.text, { address: html`<code>${baseUrl}/pxe-bootstrap.ipxe</code>` }),
      html`<a class="button primary" href="/ui/settings#dhcp-pxe">${t.none.link}</a>`,
    )}
  </div>`
}

const addForm = (): Html =>
  html`<form method="post" action="${PATH}" class="row">
    <input
      name="mac"
      class="mono"
      required
      aria-label="${t.macAddress}"
      placeholder="aa:bb:cc:dd:ee:ff"
      maxlength="17"
      pattern="[0-9a-fA-F]{2}([:\\-][0-9a-fA-F]{2}){5}"
      autocomplete="off"
      spellcheck="false"
    />
    <button>${t.add}</button>
  </form>`

/** Adds a machine that has not booted yet; it boots its own disk until it is configured. */
async function add(context: PageContext, form: URLSearchParams): Promise<unknown> {
  const { site } = context
  const given = (form.get('mac') ?? '').trim()
  const mac = parseMac(given)
  if (!mac.ok) {
    const error = fill(t.notMac, { text: given.slice(0, 40) })
    return context.goBack(PATH, { error })
  }
  if ((await site.machines.find(mac.value)) === null) {
    const added = await site.fleet.upsert(mac.value, {}, context.by(), (before) => before === null)
    if (!added.ok && added.refusal.why === 'fields') {
      return context.goBack(PATH, { error: t.notAdded })
    }
  }
  return seeOther(machinePath(mac.value))
}
