/** /ui/dashboard: what is true now, what needs a person, and whether all is ready. */
import type { H3Event, HTTPResponse } from 'h3'
import { badge, card, emptyState, progress } from '../../../../web/ui/elements.ts'
import { address, html, type Html } from '../../../../web/ui/html.ts'
import type { Route } from '../../../../web/http/route.ts'
import { renderTime } from '../../../../web/ui/times.ts'
import { isUnassigned, type Machine } from '../../rules/machine.ts'
import { messageOf, type PageContext } from '../frame/page-context.ts'
import { renderEventList } from '../view/event-list.ts'
import { countDays, renderDays } from './flash-chart.ts'
import { nameOf, type MachineView } from '../view/machine-view.ts'
import { machinePath } from '../view/machine-row.ts'
import { renderReadiness } from './setup-list.ts'
import { renderBar } from '../view/run-bar.ts'
import { namesOf, renderRunList } from '../view/run-table.ts'

const PATH = '/ui/dashboard'
/** Rows of each list; the rest is behind its link. */
const MAX = 8
const NEWEST_FLASHES = 500
const DAY_MS = 86_400_000
const NEEDY = 'state:needs-you,failed'

export const dashboardPage = (context: PageContext): readonly Route[] => [
  { method: 'GET', path: PATH, access: 'page', handle: (event) => show(context, event) },
]

async function show(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const { site } = context
  const machines = await site.machines.list()
  const find = (q: string) => site.views.match(machines, new URLSearchParams({ q, sort: '-seen' }))
  const [needy, running] = [find(NEEDY), find('state:running')]
  const look = (machine: Machine) => context.view(machine, event)
  const [events, flashed, readiness] = await Promise.all([
    site.journal.list({ limit: MAX }),
    site.journal.list({ kind: 'machine.flashed', limit: NEWEST_FLASHES }),
    context.services.netboot.readiness(),
  ])
  const since = new Date(site.now().getTime() - DAY_MS).toISOString()
  const failures = site.runs.list({ result: 'failed', since, limit: MAX })
  const numbers = [
    ['Machines', machines.length, '/ui/machines'],
    ['Running', running.length, '/ui/machines?q=state:running'],
    [
      'Failed in 24 hours',
      site.runs.count({ result: 'failed', since }),
      address('/ui/runs', { state: 'failed', since }),
    ],
    ['Need you', needy.length, `/ui/machines?q=${NEEDY}`],
    [
      'Discovered, unassigned',
      machines.filter(isUnassigned).length,
      '/ui/machines?q=is:discovered',
    ],
    ['Images', context.images().length, '/ui/settings#ramboot'],
  ] as const
  const clock = context.clock()
  return await context.show(event, {
    title: 'Dashboard',
    section: PATH,
    live: address('/events/machines', { q: 'mac:none', bars: 'all' }),
    messages: messageOf(context, event),
    body: html`<div
      id="board"
      class="board"
      hx-get="${PATH}"
      hx-select="#board"
      hx-swap="morph:outerHTML"
      hx-trigger="flasher:news"
      data-every="2000"
    >
      <div class="numbers">
        ${numbers.map(([title, count, href]) => html`<a class="card" href="${href}"><strong>${count}</strong><span class="dim">${title}</span></a>`)}
      </div>
      ${renderReadiness(readiness)}
      <div class="columns">
        <div>
          ${running.length === 0 ? null : card({ title: 'Running now', body: renderRunning(running.slice(0, MAX).map(look)) })}
          ${
            failures.length === 0
              ? null
              : card({
                  title: 'Failed in 24 hours',
                  aside: html`<a class="small" href="/ui/runs?state=failed">All failed runs</a>`,
                  body: renderRunList(
                    failures.map(({ run }) => run),
                    clock,
                    namesOf(machines, nameOf),
                  ),
                })
          }
          ${card({
            title: 'Needs you',
            aside:
              needy.length > MAX
                ? html`<a class="small" href="/ui/machines?q=${NEEDY}">All ${needy.length}</a>`
                : null,
            body:
              needy.length === 0
                ? renderCalm(machines.length)
                : renderNeedy(needy.slice(0, MAX).map(look)),
          })}
        </div>
        <div>
          ${card({ title: 'Flashes of the last 30 days', body: renderDays(countDays(flashed, clock)) })}
          ${card({
            title: 'Newest events',
            aside: html`<a class="small" href="/ui/events">All events</a>`,
            body:
              events.length === 0
                ? html`<p class="dim">Nothing yet.</p>`
                : renderEventList(events, clock),
          })}
        </div>
      </div>
    </div>`,
  })

  function renderNeedy(list: readonly MachineView[]): Html {
    return html`<ul class="rows">
      ${list.map(
        ({ machine, view }) =>
          html`<li>
            <span class="grow"
              >${badge(view.state)} <a href="${machinePath(machine.mac)}">${nameOf(machine)}</a
              ><br /><span class="small dim">${view.is}</span></span
            >
            <span class="when">${renderTime(machine.last_seen_at, clock, 'never seen')}</span>
            <a class="button" href="${machinePath(machine.mac)}#intent"
              >${isUnassigned(machine) ? 'Assign' : 'TerminalStyle'}</a
            >
          </li>`,
      )}
    </ul>`
  }
}

const renderRunning = (list: readonly MachineView[]): Html =>
  html`<ul class="rows">
    ${list
      .slice(0, MAX)
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
        'Boot one from the network: it appears by itself.',
        html`<a class="button primary" href="/ui/settings#dhcp-pxe">Set up DHCP</a>`,
      )
    : html`<p class="dim">Nothing: every machine knows what to do.</p>`
