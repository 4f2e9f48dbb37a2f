/** /ui/dashboard: the state of the fleet, what needs attention, and whether the server is ready. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { badge, card, emptyState, progress } from '#kit/web/ui/elements.ts'
import { address, html, type Html } from '#kit/web/ui/html.ts'
import { refreshOnNews } from '#kit/web/ui/refresh.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import { isUnassigned } from '#server/current/rules/machine.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import type { BatchView } from '#server/current/batches/batch-keeper.ts'
import { BATCHES_PATH, renderBatchRow } from '../view/batch-view.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { renderEventList } from '../view/event-list.ts'
import { renderMedian } from './median-card.ts'
import { renderTrends } from './trend-card.ts'
import { nameOf, type MachineView } from '../view/machine-view.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import { renderBar } from '#server/pages/machines/run-bar.ts'
import { renderWhat, runPath } from '../view/run-table.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill, fillCount } from '#kit/texts/text.ts'
import { renderSetup, SETUP_POSTS } from './setup-card.ts'
import { renderTiles } from '#server/pages/number-tiles.ts'
import { listTiles, NEEDS_ATTENTION } from './tiles.ts'

const t = PAGES.dashboard

const PATH = '/ui/dashboard'
/** Per list; its link leads to the rest. */
const MAX_ROWS = 8
/** Short, so that what runs is in sight as well. */
const MAX_WAITING = 5

export const DASHBOARD_PAGES = [pageAt(PATH, show), ...SETUP_POSTS]

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
    title: PAGES.frame.titles.dashboard,
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
            title: t.attention.title,
            aside:
              waiting.length > MAX_WAITING
                ? html`<a class="small" href="${WAITING_PATH}"
                    >${fill(t.attention.all, { count: waiting.length })}</a
                  >`
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
          ${running.length === 0 ? null : card({ title: t.running, body: renderRunning(running) })}
          ${flashed.length === 0 ? null : renderSetup(context, readiness, true)}
        </div>
        <div>
          ${renderTrends(context)} ${renderMedian(site.runs)}
          ${card({
            title: t.events.title,
            aside: html`<a class="small" href="/ui/events">${t.events.all}</a>`,
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
    : html`<p class="small"><a href="${WAITING_PATH}">${fillCount(t.attention.more, count)}</a></p>`

const renderBatches = (open: readonly BatchView[]): Html | null =>
  open.length === 0
    ? null
    : card({
        title: PAGES.batches.open,
        aside: html`<a class="small" href="${BATCHES_PATH}">${PAGES.batches.all}</a>`,
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
      >${badge(view.state, view.word)}
      <a href="${machinePath(machine.mac)}"><bdi>${nameOf(machine)}</bdi></a
      >${failed === undefined ? null : html`<br />${renderWhat(failed.run)}`}<br /><span
        class="small dim"
        >${view.is}</span
      >${failed === undefined ? null : html` <a class="small nowrap" href="${runPath(failed.run)}">${t.attention.run}</a>`}</span
    >
    <span class="when"
      >${renderTime(machine.last_seen_at, context.clock(), t.attention.neverSeen)}</span
    >
    <a class="button" href="${machinePath(machine.mac)}#intent"
      >${isUnassigned(machine) ? t.attention.configure : t.attention.open}</a
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
        t.empty.title,
        t.empty.text,
        html`<a class="button" href="/ui/dhcp">${t.empty.action}</a>`,
      )
    : html`<p class="dim">${t.attention.none}</p>`
