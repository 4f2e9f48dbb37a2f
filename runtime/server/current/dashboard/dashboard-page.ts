/** /ui/dashboard: the state of the fleet, what needs attention, and whether the server is ready. */
import { type Answer, seeOther } from '#kit/web/answers/answers.ts'
import {
  badge,
  card,
  emptyState,
  icon,
  progress,
  refreshOnNews,
  type Tone,
} from '#kit/web/ui/elements.ts'
import { address, html, type Html, attributes, type Content } from '#kit/web/ui/html.ts'
import { renderTime, dayOf, startOfDay } from '#kit/web/ui/times.ts'
import { isUnassigned, type Machine } from '#server/current/machines/rules/machine.ts'
import { pageAt, formAt } from '#server/pages/context-routes.ts'
import type { BatchView } from '#server/current/batches/keeper/batch-keeper.ts'
import { BATCHES_PATH, renderBatchRow } from '#server/current/view/batch-view.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { readEventWords, renderEventList } from '#server/current/view/event-list.ts'
import { nameOf, renderWill, type MachineView } from '#server/current/view/machine-view.ts'
import { machinePath, renderBar, renderStateBadge } from '#server/pages/machines/machines-list.ts'
import { fillCount, renderNumber } from '#kit/foundation/text.ts'
import { runPath } from '#server/current/view/run-table.ts'
import { renderTiles, type Tile } from '#server/pages/number-tiles.ts'
import { countTrends, type Trend } from '#fleet/run/rules/waterfall.ts'
import type { RunCondition } from '#fleet/run/run-rows.ts'
import { getCookie } from 'h3'
import type { ReadinessRow } from '#fleet/boot/rules/readiness.ts'
import { postButton } from '#kit/web/ui/fields.ts'

// The checklist of the dashboard: what network boot requires, and what this browser has dismissed of it.

const PATH = '/ui/dashboard'
const DISMISS_PATH = `${PATH}/setup`
const COOKIE = 'flasher-setup'
const YEAR_SECONDS = 365 * 24 * 3600
/** In place of a row's key: the whole card. */
const CARD = 'card'
const MAX_CHARACTERS = 200

/** With its state: a row that becomes worse is shown again. */
const keyOf = ({ id, state }: ReadinessRow): string => `${id}-${state}`

const readDismissed = ({ event }: CurrentContext): readonly string[] =>
  (getCookie(event, COOKIE) ?? '').slice(0, MAX_CHARACTERS).split('.').filter(Boolean)

const SETUP_POSTS = [formAt(DISMISS_PATH, 'admin', dismiss)]

/** A row, the whole card, or shows all again. */
function dismiss(context: CurrentContext, form: URLSearchParams): Answer {
  const given = form.get('dismiss') ?? ''
  const isKey = /^[a-z]{1,20}(-[a-z]{1,20})?$/.test(given)
  const kept = isKey ? [...new Set([...readDismissed(context), given])] : []
  const value = kept.join('.').slice(-MAX_CHARACTERS)
  const age = value === '' ? 0 : YEAR_SECONDS
  return seeOther(PATH, {
    'set-cookie': `${COOKIE}=${value}; Path=${PATH}; Max-Age=${age}; HttpOnly; SameSite=Lax`,
  })
}

/** One menu for all of them. */
const renderDismiss = ({ site, event }: CurrentContext, open: readonly ReadinessRow[]): Content =>
  site.mayOpen(event, DISMISS_PATH, 'POST') &&
  html`<details class="menu" name="menu" id="dismiss">
    <summary class="button">Dismiss</summary>
    <form method="post" action="${DISMISS_PATH}" class="panel links">
      ${[...open.map((row) => [keyOf(row), row.title]), [CARD, 'The whole setup']].map(
        ([key, title]) => html`<button name="dismiss" value="${key}">${title}</button>`,
      )}
    </form>
  </details>`

/** Folded once everything is ready; after the first flash, ready rows always are. */
function renderSetup(
  context: CurrentContext,
  rows: readonly ReadinessRow[],
  hasFlashed: boolean,
): Html {
  const dismissed = new Set(readDismissed(context))
  const isDismissed = (row: ReadinessRow) => !row.ok && dismissed.has(keyOf(row))
  const [ready, hidden] = [rows.filter(({ ok }) => ok), rows.filter(isDismissed)]
  const open = rows
    .filter((row) => !row.ok && !isDismissed(row))
    .toSorted((one, other) => NEEDS[one.state] - NEEDS[other.state])
  const again = hidden.length === 0 && !dismissed.has(CARD) ? null : showAgain
  if (dismissed.has(CARD) && open.every(({ state }) => state !== 'attention')) {
    return html`<div id="readiness">${again}</div>`
  }
  if (open.length === 0) {
    return html`<details class="card" id="readiness">
      <summary>${icon('done')} Ready to boot machines</summary>
      ${renderList([...ready, ...hidden], null)} ${again}
    </details>`
  }
  const isFolded = hasFlashed && ready.length > 0
  return card({
    title: `Setup: ${ready.length} of ${rows.length - hidden.length} done`,
    id: 'readiness',
    aside: renderDismiss(context, open),
    body: html`${renderList(isFolded ? open : [...open, ...ready], open.find(({ state }) => state !== 'optional') ?? null)}
    ${isFolded ? renderFolded(ready) : null} ${again}`,
  })
}

const showAgain = postButton({ action: DISMISS_PATH, label: 'Show the dismissed setup again' })

const renderFolded = (ready: readonly ReadinessRow[]): Html =>
  html`<details>
    <summary>${fillCount({ one: '1 ready', other: '{count} ready' }, ready.length)}</summary>
    ${renderList(ready, null)}
  </details>`

const renderList = (rows: readonly ReadinessRow[], next: ReadinessRow | null): Html =>
  html`<ul class="rows setup">
    ${rows.map((row) => renderRow(row, row === next))}
  </ul>`

/** What nothing works without comes first. */
const NEEDS = { missing: 0, attention: 1, unknown: 2, optional: 3, ready: 4 } as const

const TONES = {
  ready: 'done',
  attention: 'needs-you',
  missing: 'needs-you',
  unknown: 'ready',
  optional: 'ready',
} as const satisfies Record<ReadinessRow['state'], Tone>

const SETUP_STATES = {
  ready: 'ready',
  attention: 'needs attention',
  missing: 'to do',
  unknown: 'not seen yet',
  optional: 'optional',
} as const

function renderRow(row: ReadinessRow, isNext: boolean): Html {
  const { ok, state, title, text, why, href, action } = row
  return html`<li>
    <span class="check-state">${badge(TONES[state], SETUP_STATES[state])}</span>
    <span class="grow"
      ><a href="${href}"><strong>${title}</strong></a> ${text}${
        ok ? null : html`<span class="why dim small">${why}</span>`
      }</span
    >${ok ? null : html`<a class="${isNext ? 'button primary' : 'button'}" href="${href}">${action}</a>`}
  </li>`
}

// The numbers of the dashboard: each is a link.

const NEEDS_ATTENTION = 'state:needs-attention,failed'
const DAY_MS = 86_400_000

interface TileFacts {
  readonly machines: readonly Machine[]
  /** Flashed or captured now. */
  readonly running: number
  readonly waiting: number
  readonly images: number
}

/** Failures are runs. */
function listTiles({ site }: CurrentContext, facts: TileFacts): readonly Tile[] {
  const since = new Date(site.now().getTime() - DAY_MS).toISOString()
  const count = (condition: RunCondition) => site.runs.count({ ...condition, since })
  const unassigned = facts.machines.filter(isUnassigned)
  const countNew = (machines: readonly Machine[]) =>
    machines.filter(({ discovered_at: at }) => at !== null && at >= since).length
  const done = count({ result: 'done' })
  const words = { one: '1 done in 24 hours', other: '{count} done in 24 hours' }
  const failed = address('/ui/runs', { state: 'failed', since })
  const unbooted = address('/ui/runs', { boot: 'failed', since })
  return [
    tile('Machines', facts.machines.length, '/ui/machines', renderMore(countNew(facts.machines))),
    tile('Running', facts.running, '/ui/machines?q=state:running', fillCount(words, done)),
    tile('Failed in 24 hours', count({ result: 'failed' }), failed),
    ...(site.proof?.isEnabled() === true
      ? [tile('Failed to boot in 24 hours', count({ boot: 'failed' }), unbooted)]
      : []),
    tile('Need attention', facts.waiting, WAITING_PATH),
    tile(
      'Discovered',
      unassigned.length,
      '/ui/machines?q=is:discovered',
      renderMore(countNew(unassigned)),
    ),
    tile('Images', facts.images, '/ui/cache'),
  ]
}

const tile = (title: string, count: number, href: string, trend: Tile['trend'] = null): Tile => ({
  title,
  count,
  href,
  trend,
})

const renderMore = (count: number): string | null =>
  count === 0 ? null : `${renderNumber(count)} more in 24 hours`

/** How many flashes succeeded in the last two weeks. */
const DAYS = 14
/** In units of the drawings, which scale to their place. */
const [STEP, HEIGHT] = [20, 60]

/** Nothing before a flash has ended in these days. */
function renderTrends(context: CurrentContext): Content {
  const clock = context.clock()
  const days = Array.from({ length: DAYS }, (_, at) => dayOf(clock, at - DAYS + 1))
  const since = startOfDay(days[0] ?? '', clock.zone)
  const flashes = since === null ? [] : context.site.runs.listEndedFlashes(since)
  if (flashes.length === 0) return null
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: clock.zone, dateStyle: 'short' })
  const trends = countTrends(flashes, days, (iso) => format.format(new Date(iso)))
  return card({
    title: 'Flashes of the last 14 days',
    id: 'trends',
    aside: html`<a class="small" href="/ui/runs">All runs</a>`,
    body: renderSuccess(trends),
  })
}

const describe = ({ name, done, failed }: Trend): string =>
  `${name}: ${done} of ${done + failed} succeeded`

function renderSuccess(days: readonly Trend[]): Html {
  const most = Math.max(1, ...days.map(({ done, failed }) => done + failed))
  const [done, failed] = [sum(days, 'done'), sum(days, 'failed')]
  const unit = HEIGHT / most
  const summary = `${done} of ${done + failed} succeeded`
  return html`<svg
      class="chart"
      viewBox="0 0 ${DAYS * STEP} ${HEIGHT}"
      preserveAspectRatio="none"
      role="img"
      aria-label="${summary}"
    >
      ${days.map((day, at) => {
        const [good, bad] = [day.done * unit, day.failed * unit]
        return html`<g>
          <title>${describe(day)}</title>
          ${renderTrendBar(at, HEIGHT - good, good, null)}
          ${renderTrendBar(at, HEIGHT - good - bad, bad, 'failed')}
        </g>`
      })}
    </svg>
    <p class="axis small dim">
      <span>${days[0]?.name}</span><span>${summary}</span><span>today</span>
    </p>`
}

const sum = (days: readonly Trend[], name: 'done' | 'failed'): number =>
  days.reduce((total, day) => total + day[name], 0)

const renderTrendBar = (at: number, y: number, height: number, tone: 'failed' | null): Html =>
  html`<rect
    ${attributes({ class: tone })}
    x="${at * STEP + 2}"
    y="${y.toFixed(1)}"
    width="${STEP - 4}"
    height="${height.toFixed(1)}"
  ></rect>`

/** Per list; its link leads to the rest. */
const MAX_ROWS = 8
/** Short, so that what runs is in sight as well. */
const MAX_WAITING = 3
const MAX_BATCHES = 2

export const DASHBOARD_PAGES = [pageAt(PATH, 'read', show, { reach: 'list' }), ...SETUP_POSTS]

async function show(context: CurrentContext): Promise<Answer> {
  const { site, services } = context
  const machines = await site.machines.list()
  const find = (q: string, sort: string) =>
    site.views
      .match(machines, new URLSearchParams({ q, sort }))
      .map((machine) => context.view(machine))
  const [waiting, running] = [find(NEEDS_ATTENTION, 'state'), find('state:running', '-seen')]
  const groups = [...Map.groupBy(waiting, keyOfTrouble).values()]
  const [events, flashed, readiness] = await Promise.all([
    site.journal.list({ limit: MAX_ROWS, folded: true, withoutRoutine: true }),
    site.journal.list({ kind: 'machine.flashed', limit: 1 }),
    services.netboot.readiness(),
  ])
  const isReady = readiness.every(({ ok }) => ok)
  // The first image is shown soon after it was added.
  if (context.services.images().length === 0) site.catalog.refresh().catch(() => undefined)
  const clock = context.clock()
  return await context.show({
    title: 'Dashboard',
    updates: address('/events/machines', { q: 'mac:none', bars: 'all' }),
    messages: context.message(),
    body: html`<div class="board" ${refreshOnNews('board', PATH, 2000, isReady ? null : 5)}>
      ${renderTiles(
        listTiles(context, {
          machines,
          running: running.length,
          waiting: waiting.length,
          images: services.images().length,
        }),
      )}
      ${flashed.length === 0 ? renderSetup(context, readiness, false) : null}
      <div class="columns">
        <div>
          ${card({
            title: 'Needs attention',
            aside:
              waiting.length > groups.length || groups.length > MAX_WAITING
                ? html`<a class="small" href="${WAITING_PATH}">All ${waiting.length}</a>`
                : null,
            body:
              waiting.length === 0
                ? renderCalm(machines.length)
                : html`<ul class="rows">
                    ${groups.slice(0, MAX_WAITING).map((group) => renderWaiting(context, group))}
                  </ul>`,
          })}
          ${renderBatches(services.keeper.listOpen())}
          ${running.length === 0 ? null : card({ title: 'Running now', body: renderRunning(running) })}
          ${flashed.length === 0 ? null : renderSetup(context, readiness, true)}
        </div>
        <div>
          ${card({
            title: 'Latest events',
            aside: html`<a class="small" href="/ui/events">All events</a>`,
            body: renderEventList(events, clock, readEventWords(context).findName),
          })}
          ${renderTrends(context)}
        </div>
      </div>
    </div>`,
  })
}

const WAITING_PATH = `/ui/machines?q=${NEEDS_ATTENTION}`

const renderBatches = (open: readonly BatchView[]): Html | null =>
  open.length === 0
    ? null
    : card({
        title: 'Batches in progress',
        aside: html`<a class="small" href="${BATCHES_PATH}">All batches</a>`,
        body: html`<ul class="rows">
          ${open.slice(0, MAX_BATCHES).map(renderBatchRow)}
        </ul>`,
      })

/** Same image and same reason: one line. */
const keyOfTrouble = ({ machine, view }: MachineView): string =>
  JSON.stringify([view.state, view.is, machine.bty_image_ref])

const MAX_NAMED = 4

/** `group`: machines with the same trouble. */
function renderWaiting(context: CurrentContext, group: readonly MachineView[]): Content {
  const [first] = group
  if (first === undefined) return null
  const { view, image } = first
  const more = group.length - MAX_NAMED
  const seen = group.map((each) => each.machine.last_seen_at ?? '').toSorted()
  return html`<li>
    <span class="grow"
      >${renderStateBadge(view)}
      ${group
        .slice(0, MAX_NAMED)
        .map((each, at) => html`${at === 0 ? null : ', '}${renderLink(each)}`)}${
        more > 0 ? ` and ${more} more` : null
      }<br /><span class="small"
        >${renderTrouble(context, group)}
        ${image === null ? null : html`<bdi class="dim">${image.name}</bdi>`}</span
      ></span
    >
    <span class="when">${renderTime(seen.at(-1) || null, context.clock(), 'never seen')}</span>
    ${renderWay(group)}
  </li>`
}

const renderLink = ({ machine }: MachineView): Html =>
  html`<a href="${machinePath(machine.mac)}"><bdi>${nameOf(machine)}</bdi></a>`

/** What one machine needs otherwise is on its page, to which its name leads. */
function renderWay([first, ...others]: readonly MachineView[]): Content {
  if (first === undefined || (others.length === 0 && !isUnassigned(first.machine))) return null
  const [href, words] =
    others.length === 0
      ? [`${machinePath(first.machine.mac)}#intent`, 'Configure']
      : [address('/ui/machines', { q: searchOf(first) }), `Show all ${others.length + 1}`]
  return html`<a class="button" href="${href}">${words}</a>`
}

/** Finds the machines of a group, perhaps with others. */
function searchOf({ machine, view, image }: MachineView): string {
  if (isUnassigned(machine)) return 'is:discovered'
  const state = view.state === 'failed' ? 'state:failed' : 'state:needs-attention'
  return image === null ? state : `${state} image:"${image.name}"`
}

/** The reason of one failed machine leads to its run, where the log is. */
function renderTrouble({ site }: CurrentContext, group: readonly MachineView[]): Content {
  const [first, ...others] = group
  if (first?.view.state !== 'failed') return first?.view.is
  const reason = renderWill(first)
  const { mac } = first.machine
  const [failed] = others.length > 0 ? [] : site.runs.list({ mac, result: 'failed', limit: 1 })
  return failed === undefined ? reason : html`<a href="${runPath(failed.run)}">${reason}</a>`
}

const renderRunning = (views: readonly MachineView[]): Html =>
  html`<ul class="rows">
    ${views
      .slice(0, MAX_ROWS)
      .map(
        ({ machine, view, run }) =>
          html`<li>
            <a class="grow" href="${machinePath(machine.mac)}">${nameOf(machine)}</a
            >${run === null ? progress(null, null, view.is) : renderBar(run)}
          </li>`,
      )}
  </ul>`

const renderCalm = (machines: number): Html =>
  machines === 0
    ? emptyState(
        'No machines yet',
        'Boot one from the network and it appears here.',
        html`<a class="button" href="/ui/dhcp">Set up DHCP</a>`,
      )
    : html`<p class="dim">Nothing needs attention.</p>`
