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
  factList,
} from '#kit/web/ui/elements.ts'
import { address, html, type Html, attributes, type Content } from '#kit/web/ui/html.ts'
import { renderTime, dayOf, startOfDay } from '#kit/web/ui/times.ts'
import { isUnassigned, type Machine } from '#server/current/machines/rules/machine.ts'
import { pageAt, formAt } from '#server/pages/context-routes.ts'
import type { BatchView } from '#server/current/batches/keeper/batch-keeper.ts'
import { BATCHES_PATH, renderBatchRow } from '#server/current/view/batch-view.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { renderEventList } from '#server/current/view/event-list.ts'
import { nameOf, type MachineView } from '#server/current/view/machine-view.ts'
import { machinePath, renderBar, renderStateBadge } from '#server/pages/machines/machines-list.ts'
import { renderWhat, runPath } from '#server/current/view/run-table.ts'
import { fill, fillCount, renderNumber } from '#kit/foundation/text.ts'
import { renderTiles, type Tile } from '#server/pages/number-tiles.ts'
import { renderDuration } from '#kit/foundation/size.ts'
import { countTrends, type Trends } from '#fleet/run/rules/waterfall.ts'
import { numberColumn, renderTable } from '#kit/web/ui/tables.ts'
import type { RunCondition } from '#fleet/run/run-rows.ts'
import { getCookie } from 'h3'
import type { ReadinessRow } from '#fleet/boot/rules/readiness.ts'
import { postButton } from '#kit/web/ui/fields.ts'
import { PART_TITLES, divideRun, listMedians } from '#fleet/run/rules/waterfall.ts'
import type { Runs } from '#fleet/run/runs.ts'

const NEWEST = 100

/** Nothing before a flash has ended. */
export function renderMedian(runs: Pick<Runs, 'list'>): Content {
  const found = runs
    .list({ result: 'done', limit: NEWEST })
    .flatMap((each) => (each.run.mode === 'capture' ? [] : (divideRun(each.run) ?? [])))
  if (found.length === 0) return null
  return card({
    title: 'Where the time goes',
    body: html`${factList(
        listMedians(found).map(({ part, seconds }) => [
          PART_TITLES[part],
          `${seconds.toFixed(1)} s`,
        ]),
      )}
      <p class="small dim">
        ${fillCount({ one: 'The last flash.', other: 'Medians of the last {count} flashes.' }, found.length)}
      </p>`,
  })
}

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

const renderDismiss = (key: string, label: string): Html =>
  postButton({ action: DISMISS_PATH, label, values: { dismiss: key } })

/** Folded once everything is ready; after the first flash, ready rows always are. */
function renderSetup(
  context: CurrentContext,
  rows: readonly ReadinessRow[],
  hasFlashed: boolean,
): Html {
  const dismissed = new Set(readDismissed(context))
  const isDismissed = (row: ReadinessRow) => !row.ok && dismissed.has(keyOf(row))
  const [ready, hidden] = [rows.filter(({ ok }) => ok), rows.filter(isDismissed)]
  const open = rows.filter((row) => !row.ok && !isDismissed(row))
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
    aside: renderDismiss(CARD, 'Dismiss the setup'),
    body: html`${renderList(isFolded ? open : [...open, ...ready], open[0] ?? null)}
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

const TONES = {
  ready: 'done',
  attention: 'needs-you',
  missing: 'needs-you',
  unknown: 'ready',
} as const satisfies Record<ReadinessRow['state'], Tone>

const SETUP_STATES = {
  ready: 'ready',
  attention: 'needs attention',
  missing: 'to do',
  unknown: 'not seen yet',
} as const

function renderRow(row: ReadinessRow, isNext: boolean): Html {
  const { ok, state, title, text, why, href } = row
  return html`<li>
    <span class="check-state">${badge(TONES[state], SETUP_STATES[state])}</span>
    <span class="grow"
      ><a href="${href}"><strong>${title}</strong></a> ${text}${
        ok ? null : html`<span class="why dim small">${why}</span>`
      }</span
    >${ok ? null : renderButtons(row, isNext)}
  </li>`
}

const renderButtons = (row: ReadinessRow, isNext: boolean): Content =>
  html`${renderDismiss(keyOf(row), 'Dismiss')}<a
      class="${isNext ? 'button primary' : 'button'}"
      href="${row.href}"
      >${row.action}</a
    >`

// The numbers of the dashboard: each is a link, and says how it moved since the day before.

const NEEDS_ATTENTION = 'state:needs-attention,failed'
const DAY_MS = 86_400_000

interface TileFacts {
  readonly machines: readonly Machine[]
  /** Flashed or captured now. */
  readonly running: number
  readonly waiting: number
  readonly images: number
}

/** Failures are runs, compared with the 24 hours before. */
function listTiles(context: CurrentContext, facts: TileFacts): readonly Tile[] {
  const { site } = context
  const ago = (days: number) => new Date(site.now().getTime() - days * DAY_MS).toISOString()
  const count = (condition: RunCondition) => site.runs.count(condition)
  const unassigned = facts.machines.filter(isUnassigned)
  const day = { since: ago(1) }
  const dayBefore = { since: ago(2), until: day.since }
  const failed = count({ result: 'failed', ...day })
  const isNew = ({ discovered_at: at }: Machine) => at !== null && at >= day.since
  return [
    {
      title: 'Machines',
      count: facts.machines.length,
      href: '/ui/machines',
      trend: renderMore(facts.machines.filter(isNew).length),
    },
    {
      title: 'Running',
      count: facts.running,
      href: '/ui/machines?q=state:running',
      trend: fillCount(
        { one: '1 done in 24 hours', other: '{count} done in 24 hours' },
        count({ result: 'done', ...day }),
      ),
    },
    {
      title: 'Failed in 24 hours',
      count: failed,
      href: address('/ui/runs', { state: 'failed', ...day }),
      trend: compare(failed, count({ result: 'failed', ...dayBefore })),
    },
    ...listUnbooted(context, day, dayBefore),
    {
      title: 'Need attention',
      count: facts.waiting,
      href: `/ui/machines?q=${NEEDS_ATTENTION}`,
      trend: null,
    },
    {
      title: 'Discovered',
      count: unassigned.length,
      href: '/ui/machines?q=is:discovered',
      trend: renderMore(unassigned.filter(isNew).length),
    },
    { title: 'Images', count: facts.images, href: '/ui/cache', trend: null },
  ]
}

/** Nothing unless first boots are awaited. */
function listUnbooted(
  { site: { proof, runs } }: CurrentContext,
  day: { readonly since: string },
  dayBefore: { readonly since: string; readonly until: string },
): readonly Tile[] {
  if (proof?.isEnabled() !== true) return []
  const count = runs.count({ boot: 'failed', ...day })
  return [
    {
      title: 'Failed to boot in 24 hours',
      count,
      href: address('/ui/runs', { boot: 'failed', ...day }),
      trend: compare(count, runs.count({ boot: 'failed', ...dayBefore })),
    },
  ]
}

const renderMore = (count: number): string | null =>
  count === 0 ? null : `${renderNumber(count)} more in 24 hours`

/** `2 more than the day before`; null where both days had none. */
export function compare(now: number, before: number): string | null {
  if (now === 0 && before === 0) return null
  if (now === before) return 'as on the day before'
  const difference = { count: renderNumber(Math.abs(now - before)) }
  return fill(
    now > before ? '{count} more than the day before' : '{count} fewer than the day before',
    difference,
  )
}

/** The card of the dashboard with the trends of the last two weeks: how many flashes succeeded, and how long they took. */
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
    title: 'Trends of the last 14 days',
    id: 'trends',
    body: html`<h3>Flashes that succeeded</h3>
      ${renderSuccess(trends.days)}
      <h3>How long they took</h3>
      ${renderMedians(trends.days)} ${renderDays(trends.days)}
      ${renderNames('By image', trends.images, 'image')}
      ${renderNames('By model of disk', trends.models, 'q')}`,
  })
}

type Days = Trends['days']

const describe = ({ name, done, failed, medianSeconds }: Days[number]): string =>
  medianSeconds === null
    ? `${name}: ${done} of ${done + failed} succeeded`
    : `${name}: ${done} of ${done + failed} succeeded, median ${renderDuration(medianSeconds)}`

function renderSuccess(days: Days): Html {
  const most = Math.max(1, ...days.map(({ done, failed }) => done + failed))
  const [done, failed] = [sum(days, 'done'), sum(days, 'failed')]
  const unit = HEIGHT / most
  return html`${renderChart(
    `${done} of ${done + failed} succeeded`,
    days.map((day, at) => {
      const [good, bad] = [day.done * unit, day.failed * unit]
      return html`<g>
        <title>${describe(day)}</title>
        ${renderTrendBar(at, HEIGHT - good, good, null)}
        ${renderTrendBar(at, HEIGHT - good - bad, bad, 'failed')}
      </g>`
    }),
  )}
  ${renderAxis(days, `${done} of ${done + failed} succeeded`)}`
}

function renderMedians(days: Days): Html {
  const medians = days.map(({ medianSeconds }) => medianSeconds ?? 0)
  const longest = Math.max(1, ...medians)
  const summary = `medians of each day, at most ${renderDuration(longest)}`
  return html`${renderChart(
    summary,
    days.map((day, at) => {
      const height = (HEIGHT * (day.medianSeconds ?? 0)) / longest
      return html`<g>
        <title>${describe(day)}</title>
        ${renderTrendBar(at, HEIGHT - height, height, null)}
      </g>`
    }),
  )}
  ${renderAxis(days, summary)}`
}

/** The figures of both charts, for those who cannot see them. */
const renderDays = (days: Days): Html =>
  html`<details id="trend-days">
    <summary>As a table</summary>
    ${renderTable({
      caption: 'Trends of the last 14 days',
      columns: [
        'Day',
        numberColumn('Succeeded'),
        numberColumn('Failed'),
        numberColumn('Median duration'),
      ],
      rows: days.toReversed().map(
        ({ name, done, failed, medianSeconds }) =>
          html`<tr>
            <th scope="row">${name}</th>
            <td class="number" data-label="Succeeded">${done}</td>
            <td class="number" data-label="Failed">${failed}</td>
            <td class="number" data-label="Median duration">
              ${medianSeconds === null ? '–' : renderDuration(medianSeconds)}
            </td>
          </tr>`,
      ),
    })}
  </details>`

const sum = (days: Days, name: 'done' | 'failed'): number =>
  days.reduce((total, day) => total + day[name], 0)

const renderChart = (label: string, bars: readonly Html[]): Html =>
  html`<svg
    class="chart"
    viewBox="0 0 ${DAYS * STEP} ${HEIGHT}"
    preserveAspectRatio="none"
    role="img"
    aria-label="${label}"
  >
    ${bars}
  </svg>`

const renderTrendBar = (at: number, y: number, height: number, tone: 'failed' | null): Html =>
  html`<rect
    ${attributes({ class: tone })}
    x="${at * STEP + 2}"
    y="${y.toFixed(1)}"
    width="${STEP - 4}"
    height="${height.toFixed(1)}"
  ></rect>`

const renderAxis = (days: Days, summary: string): Html =>
  html`<p class="axis small dim">
    <span>${days[0]?.name}</span><span>${summary}</span><span>today</span>
  </p>`

const renderNames = (title: string, rows: Trends['images'], by: 'image' | 'q'): Content =>
  rows.length === 0
    ? null
    : html`<h3>${title}</h3>
        <ul class="rows">
          ${rows.map(
            ({ name, done, failed, medianSeconds }) =>
              html`<li>
                <a class="grow" href="${address('/ui/runs', { [by]: name })}"><bdi>${name}</bdi></a>
                <span class="small dim"
                  >${done} of
                  ${done + failed}${
                    medianSeconds === null ? null : html`, ${renderDuration(medianSeconds)}`
                  }</span
                >
              </li>`,
          )}
        </ul>`

/** Per list; its link leads to the rest. */
const MAX_ROWS = 8
/** Short, so that what runs is in sight as well. */
const MAX_WAITING = 5

export const DASHBOARD_PAGES = [pageAt(PATH, 'read', show, { reach: 'list' }), ...SETUP_POSTS]

async function show(context: CurrentContext): Promise<Answer> {
  const { site, services } = context
  const machines = await site.machines.list()
  const find = (q: string, sort: string) =>
    site.views
      .match(machines, new URLSearchParams({ q, sort }))
      .map((machine) => context.view(machine))
  const [waiting, running] = [find(NEEDS_ATTENTION, 'state'), find('state:running', '-seen')]
  const [events, flashed, readiness] = await Promise.all([
    site.journal.list({ limit: MAX_ROWS, folded: true }),
    site.journal.list({ kind: 'machine.flashed', limit: 1 }),
    services.netboot.readiness(),
  ])
  const isReady = readiness.every(({ ok }) => ok)
  // The first image is shown soon after it was added.
  if (context.services.images().length === 0) site.catalog.refresh().catch(() => undefined)
  const clock = context.clock()
  return await context.show({
    title: 'Dashboard',
    section: PATH,
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
              waiting.length > MAX_WAITING
                ? html`<a class="small" href="${WAITING_PATH}">All ${waiting.length}</a>`
                : null,
            body:
              waiting.length === 0
                ? renderCalm(machines.length)
                : html`<ul class="rows">
                      ${waiting.slice(0, MAX_WAITING).map((view) => renderWaiting(context, view))}
                    </ul>
                    ${renderRest(waiting.length - MAX_WAITING)}`,
          })}
          ${renderBatches(services.keeper.listOpen())}
          ${running.length === 0 ? null : card({ title: 'Running now', body: renderRunning(running) })}
          ${flashed.length === 0 ? null : renderSetup(context, readiness, true)}
        </div>
        <div>
          ${renderTrends(context)} ${renderMedian(site.runs)}
          ${card({
            title: 'Latest events',
            aside: html`<a class="small" href="/ui/events">All events</a>`,
            body: renderEventList(events, clock),
          })}
        </div>
      </div>
    </div>`,
  })
}

const WAITING_PATH = `/ui/machines?q=${NEEDS_ATTENTION}`

const renderRest = (count: number): Html | null =>
  count <= 0
    ? null
    : html`<p class="small">
        <a href="${WAITING_PATH}"
          >${fillCount({ one: 'and {count} more', other: 'and {count} more' }, count)}</a
        >
      </p>`

const renderBatches = (open: readonly BatchView[]): Html | null =>
  open.length === 0
    ? null
    : card({
        title: 'Batches in progress',
        aside: html`<a class="small" href="${BATCHES_PATH}">All batches</a>`,
        body: html`<ul class="rows">
          ${open.slice(0, MAX_ROWS).map(renderBatchRow)}
        </ul>`,
      })

/** A failed machine shows its image and disk, and leads to its run. */
function renderWaiting(context: CurrentContext, { machine, view }: MachineView): Html {
  const [failed] =
    view.state === 'failed'
      ? context.site.runs.list({ mac: machine.mac, result: 'failed', limit: 1 })
      : []
  return html`<li>
    <span class="grow"
      >${renderStateBadge(view)}
      <a href="${machinePath(machine.mac)}"><bdi>${nameOf(machine)}</bdi></a
      >${failed === undefined ? null : html`<br />${renderWhat(failed.run)}`}<br /><span
        class="small dim"
        >${view.is}</span
      >${failed === undefined ? null : html` <a class="small nowrap" href="${runPath(failed.run)}">Show the run</a>`}</span
    >
    <span class="when">${renderTime(machine.last_seen_at, context.clock(), 'never seen')}</span>
    <a class="button" href="${machinePath(machine.mac)}#intent"
      >${isUnassigned(machine) ? 'Configure' : 'Open'}</a
    >
  </li>`
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
