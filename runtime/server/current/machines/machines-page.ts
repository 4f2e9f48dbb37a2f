/** /ui/machines: the fleet in one live table, with a search and a bar of actions. */
import { parseMac } from '#kit/net/rules/mac.ts'
import { type Answer, json } from '#kit/web/answers/answers.ts'
import type { Reach } from '#kit/web/answers/rules/rights.ts'
import { describeReach } from '#kit/web/ui/who.ts'
import { emptyState, icon, refreshOnNews } from '#kit/web/ui/elements.ts'
import {
  address,
  attributes,
  fillHtml,
  html,
  trusted,
  type Content,
  type Html,
} from '#kit/web/ui/html.ts'
import {
  cutPage,
  pickColumn,
  renderPager,
  type TableColumn,
  readListQuery,
} from '#kit/web/ui/tables.ts'
import { hasPower } from '#server/current/power/power-card.ts'
import { renderBulkBar } from './bulk-question.ts'
import { MACHINE_FILE_PATH } from './file-page.ts'
import { findDhcp } from '#server/current/netboot/dhcp-page.ts'
import { renderNumber } from '#kit/foundation/text.ts'
import { formAt, pageAt } from '#server/pages/context-routes.ts'
import { blank, renderCurlBlock } from '#server/pages/curl-block.ts'
import { type CurrentContext, renderUndo } from '#server/current/view/page-context.ts'
import { opensQuestion } from '#server/pages/question.ts'
import { LIST_CHOICES, readColumns, readSaved, renderTools } from './list-tools.ts'
import {
  COLUMN_TITLES,
  isUsual,
  renderColumns,
  type ColumnName,
  renderMachineRow,
} from '#server/current/view/machine-row.ts'
import {
  addMachine,
  MACHINES_PATH,
  renderAddForm,
  renderFound,
  renderFleetTable,
  renderGone,
  renderNoMachines,
  renderNoneFound,
  renderBar,
} from '#server/pages/machines/machines-list.ts'
import type { Machine } from './rules/machine.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import { etagOf } from '#kit/web/answers/rules/content-coding.ts'
import { wordOf } from '#fleet/machine/rules/states.ts'
import { groupByRack, type Rack, type RackSlot } from '#fleet/machine/rules/label.ts'
import type { StateView } from './rules/state.ts'
import { nameOf } from '#server/current/view/machine-view.ts'

// The wall: every machine as a small tile, rack by rack, on one screen; and the states that keep it up to date.

const STATES_PATH = '/ui/machines/wall'
/** At 1920 by 1080 pixels. */
const MAX_TILES = 1000
/** Unless a density is asked for, more machines than these get small tiles. */
const MAX_LARGE = 100

const WALL_PAGES = [pageAt(STATES_PATH, 'read', sendStates, { reach: 'list' })]

interface WallTile {
  readonly machine: Machine
  readonly labels: readonly string[]
  readonly view: StateView
  readonly run: Run | null
}

/** `shape` changes when tiles come, go or move. */
interface Wall {
  readonly racks: readonly Rack<WallTile>[]
  readonly tiles: readonly WallTile[]
  readonly shape: string
}

/** By name, so that no tile moves when a state changes. */
function findMachines(
  { site, query }: CurrentContext,
  all: readonly Machine[],
): readonly Machine[] {
  const search = new URLSearchParams(query)
  search.set('sort', 'name')
  return site.views.match(all, search)
}

function readWall(context: CurrentContext, found: readonly Machine[]): Wall {
  const tiles = found.map((machine) => {
    const { view, run } = context.view(machine)
    return { machine, labels: machine.labels, view, run }
  })
  const racks = groupByRack(tiles)
  const places = racks.map(({ label, slots }) => [
    label,
    slots.map(({ number, row }) => [number, row?.machine.mac, row?.machine.name]),
  ])
  const shape = etagOf(JSON.stringify(places))
  return { racks, tiles, shape }
}

/** A few bytes a machine: `wall.js` changes the tiles that differ. */
async function sendStates(context: CurrentContext): Promise<Answer> {
  const all = await context.site.machines.list()
  const { rows } = cutPage(findMachines(context, all), context.query, MAX_TILES)
  const { tiles, shape } = readWall(context, rows)
  const states = tiles.map(({ machine, view }) => [machine.mac, view.state, wordOf(view)])
  return json({ shape, states })
}

function renderWall(
  context: CurrentContext,
  all: readonly Machine[],
  { query, isLarge }: Pick<FleetView, 'query' | 'isLarge'>,
): Html {
  const page = cutPage(findMachines(context, all), context.query, MAX_TILES)
  const { racks, shape } = readWall(context, page.rows)
  const { q, filter, page: shown } = query
  return html`${
      page.pages > 1
        ? html`<p>
              ${`The wall shows ${renderNumber(MAX_TILES)} machines at a time, by name. Select a filter, or search for a rack or label, to see fewer.`}
            </p>
            ${renderPager(MACHINES_PATH, query, page)}`
        : null
    }
    <div
      class="wall${isLarge ? ' large' : ''}"
      id="rows"
      ${attributes({
        'data-every': 1000,
        'data-states': address(STATES_PATH, { q, filter, page: shown }),
        'data-shape': shape,
        'data-machine': MACHINES_PATH,
      })}
    >
      ${racks.map((rack) => renderRack(rack, isLarge))}
    </div>`
}

const renderRack = ({ label, slots }: Rack<WallTile>, isLarge: boolean): Html =>
  html`<section class="rack${label === null ? ' none' : ''}${widthOf(slots.length, isLarge)}">
    <h2>
      ${label === null ? 'No rack' : html`<a href="${address(MACHINES_PATH, { q: `label:"${label}"`, view: 'wall' })}">${label}</a>`}
    </h2>
    <div>${slots.map((slot) => renderSlot(slot, isLarge))}</div>
  </section>`

/** Racks of many slots are turned: always, or in narrow windows only. */
function widthOf(slots: number, isLarge: boolean): string {
  const most = isLarge ? 40 : 100
  return slots > most ? ' loose' : slots > most / 2.5 ? ' long' : ''
}

/** The number, else the end of the MAC; a large tile has the name as well. */
function renderSlot({ number, row }: RackSlot<WallTile>, isLarge: boolean): Content {
  if (row === null) return html`<span class="t free" title="Free slot">${number}</span>`
  const { machine, view, run } = row
  const name = nameOf(machine)
  const about = number === null ? name : `${name}, slot ${number}`
  const code = isLarge ? machine.mac.slice(-8) : machine.mac.slice(-5).replace(':', '')
  return html`<label class="t pick ${view.state}"
    ><input
      type="checkbox"
      name="macs"
      value="${machine.mac}"
      aria-label="${about}: ${wordOf(view)}"
    />${icon(view.state)}${number ?? html`<small>${code}</small>`}${
      isLarge && name !== machine.mac ? html`<bdi>${name}</bdi>` : null
    }${run === null ? null : renderBar(run)}</label
  >`
}

const PATH = MACHINES_PATH
const KEPT = ['q', 'filter', 'sort', 'page', 'view', 'screen', 'density', 'columns'] as const

/** Absent before the first machine. */
const ALSO = '#views:morph,#queue:morph'

/** At 1280 pixels. */
const MAX_BESIDE = 7

const TIMES: readonly ColumnName[] = ['flashed', 'discovered', 'seen']

/** Times sort from the newest at first. */
const columnOf = (name: ColumnName): TableColumn => {
  const isTime = TIMES.includes(name)
  const className = isTime ? 'time' : name === 'next' ? 'will' : name
  return { key: isTime ? `-${name}` : name, title: COLUMN_TITLES[name], className }
}

export const MACHINES_PAGES = [
  pageAt(PATH, 'read', show, { reach: 'list' }),
  formAt(PATH, 'machines', addMachine, { reach: 'list' }),
  ...LIST_CHOICES,
  ...WALL_PAGES,
]

type FleetView = Awaited<ReturnType<typeof readView>>

async function readView(context: CurrentContext) {
  const query = readListQuery(context.query, KEPT, 1000)
  const all = await context.site.machines.list()
  const sort = query['sort'] ?? (hasFailed(context, all) ? 'state' : null)
  const search = new URLSearchParams(context.query)
  if (sort !== null) search.set('sort', sort)
  const found = context.site.views.match(all, search)
  return {
    query,
    sort,
    columns: readColumns(context),
    all,
    found,
    page: cutPage(found, context.query),
    isWall: query['view'] === 'wall',
    isLarge: (query['density'] ?? (found.length > MAX_LARGE ? 'compact' : 'large')) === 'large',
    isWhole: query['screen'] === 'whole',
  }
}

/** Default: by state if something failed. */
const hasFailed = ({ site }: CurrentContext, all: readonly Machine[]): boolean =>
  site.views.match(all, new URLSearchParams({ q: 'state:failed' })).length > 0

/** Null: all machines. */
const reachOfView = ({ site }: CurrentContext): Reach => site.bounds?.reach ?? null

async function show(context: CurrentContext): Promise<Answer> {
  const view = await readView(context)
  const { query, sort, columns, all, found, isWall } = view
  return await context.show({
    title: 'Machines',
    learn: 'server.html#the-machines-list',
    count: html`<span
      ${attributes({ 'hx-select-oob': all.length === 0 ? null : ALSO })}
      ${refreshOnNews('count', address(PATH, query), 2000)}
      >${renderFound(found.length, all.length)}</span
    >`,
    updates: address('/events/machines', {
      q: '',
      page: 1,
      ...query,
      // The wall fetches its own tiles, so the stream sends no rows.
      ...(isWall ? { q: 'mac:none', bars: 'all' } : {}),
      sort,
      view: null,
      screen: null,
      density: null,
      columns: isUsual(columns) ? null : renderColumns(columns),
    }),
    actions: html`<button type="button" class="chip" id="arrived" ${arrivedTexts} hidden></button>
      <a
        class="button"
        href="${address(PATH, { ...query, page: null, view: isWall ? null : 'wall', screen: null, density: null })}"
        >${isWall ? 'Table' : 'Wall'}</a
      >${all.length === 0 ? null : renderMore(context, view)}`,
    messages: html`${context.message()}${renderGone(context.query)}${renderUndoDeletion(context)}`,
    body: all.length === 0 ? renderFirst(context, view) : renderList(context, view),
  })
}

const arrivedTexts = attributes({
  'data-one': '{count} more machine',
  'data-other': '{count} more machines',
})

/** The first machine appears in the empty table. */
const renderFirst = (context: CurrentContext, view: FleetView): Html => {
  const reach = reachOfView(context)
  const text = `You see ${describeReach(reach)}. An administrator of this server gives machines their labels.`
  return html`${renderFleet(context, view)}
  ${
    reach === null
      ? html`${renderNoMachines(findDhcp(context).base, setUpDhcp)}
        ${renderAddForm(renderAddCommand(context))}`
      : emptyState('No machine is in your scope', text)
  }`
}

const renderAddCommand = (context: CurrentContext): Content =>
  renderCurlBlock(context, [
    {
      method: 'PUT',
      path: `/machines/${blank('mac')}`,
      body: {},
      scope: 'machines',
    },
  ])

const setUpDhcp = html`<a class="button primary" href="/ui/dhcp">Set up DHCP</a>`

const renderList = (context: CurrentContext, view: FleetView): Html =>
  html`${renderTools({
    query: view.query,
    columns: view.columns,
    saved: readSaved(context),
    // Cached until a machine changes: 7 filters of 10,000 take 15 ms.
    count: (q) => context.site.views.match(view.all, new URLSearchParams({ q })).length,
  })}
  ${renderQueue(context)}
  ${view.isWall ? renderWallForm(context, view) : renderFleet(context, view)}
  ${view.found.length === 0 ? renderNoneFound() : null}`

/** Only where concurrent flashes are limited. */
function renderQueue(context: CurrentContext): Content {
  const queue = context.services.queue()
  if (queue === null) return null
  const { most, flashing, waiting } = queue
  const link = html`<a href="${address(PATH, { q: 'is:waiting' })}">`
  const text =
    waiting === 0
      ? html`${flashing} of at most ${most} machines flashing, none waiting.`
      : fillHtml('{flashing} of at most {most} machines flashing, {link}{waiting} waiting{end}.', {
          flashing,
          most,
          waiting,
          link,
          end: trusted('</a>'),
        })
  return html`<p class="dim" id="queue">${text}</p>`
}

function renderFleet(context: CurrentContext, { query, sort, page, columns }: FleetView): Html {
  const clock = context.clock()
  return html`<form id="bulk" hx-disinherit="*" ${opensQuestion('/ui/machines/bulk')}>
      ${renderFleetTable({
        query: sort === null ? query : { ...query, sort },
        columns: [pickColumn('Select all on this page'), ...columns.map(columnOf)],
        isWide: columns.length > MAX_BESIDE,
        rows: page.rows.map((machine) => renderMachineRow(context.view(machine), clock, columns)),
      })}
      ${renderBulkBar(page.total, query, hasPower(context))}
    </form>
    ${page.total === 0 ? null : renderPager(PATH, query, page)}`
}

/** Full-screen, the wall has no navigation. */
function renderWallForm(context: CurrentContext, view: FleetView): Html {
  const { query, all, found, isWhole, isLarge } = view
  const screen = isWhole ? null : 'whole'
  const density = isLarge ? 'compact' : 'large'
  return html`<form id="bulk" hx-disinherit="*" ${opensQuestion('/ui/machines/bulk')}>
    <p class="row ${isWhole ? 'whole-screen' : ''}">
      <span class="small dim"
        >Select machines with a click or Space; Enter or a double click opens one.</span
      >
      <a class="button" href="${address(PATH, { ...query, density })}"
        >${isLarge ? 'Small tiles' : 'Large tiles'}</a
      >
      <a class="button" href="${address(PATH, { ...query, screen })}"
        >${isWhole ? 'Show the navigation' : 'Whole screen'}</a
      >
    </p>
    ${renderWall(context, all, view)} ${renderBulkBar(found.length, query, hasPower(context))}
  </form>`
}

function renderMore(context: CurrentContext, { query }: FleetView): Html {
  const { site, event } = context
  const { q, filter, sort } = query
  const mayAdd = reachOfView(context) === null && site.mayOpen(event, PATH, 'POST')
  return html`<details class="menu" name="menu">
    <summary class="button">More</summary>
    <div class="panel">
      <ul class="links">
        <li><a href="${address(`${PATH}/labels`, { q, filter, sort })}">Print labels</a></li>
        <li><a href="${address('/machines.csv', { q, filter, sort })}">Download as CSV</a></li>
        ${
          site.mayOpen(event, MACHINE_FILE_PATH)
            ? html`<li><a href="${MACHINE_FILE_PATH}">Import CSV</a></li>`
            : null
        }
      </ul>
      ${
        mayAdd
          ? html`<p><strong>Add a machine by its MAC address</strong></p>
              ${renderAddForm(renderAddCommand(context))}`
          : null
      }
    </div>
  </details>`
}

function renderUndoDeletion(context: CurrentContext): Content {
  const mac = parseMac(context.query.get('deleted') ?? '')
  const button = mac.ok ? renderUndo(context, mac.value) : null
  return button === null ? null : html`<p>${button}</p>`
}
