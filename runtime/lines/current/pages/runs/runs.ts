/** /ui/runs: every flash, newest first, with a search and exports. */
import type { H3Event, HTTPResponse } from 'h3'
import { PAGES } from '../../../../core/texts/pages/texts.ts'
import { emptyState } from '../../../../web/ui/elements.ts'
import { address, html, type Html } from '../../../../web/ui/html.ts'
import { refreshOnNews } from '../../../../web/ui/refresh.ts'
import {
  readListQuery,
  renderOlder,
  renderSearch,
  type ListQuery,
} from '../../../../web/ui/search.ts'
import type { Run } from '../../../../core/machine/run.ts'
import type { Route } from '../../../../web/http/route.ts'
import { parseRunFilter, readRunPage } from '../../../../web/fleet/runs.ts'
import type { PageContext } from '../frame/page-context.ts'
import { pageRoute } from '../frame/page-routes.ts'
import { nameOf } from '../view/machine-view.ts'
import { runPage } from './run.ts'
import { renderRunTable } from '../view/run-table.ts'

const t = PAGES.runs.list

const PATH = '/ui/runs'
const ROWS = 100
const KEPT = ['q', 'state', 'mac', 'image', 'serial', 'since', 'until'] as const

const VIEWS = [
  [t.filters.all, ''],
  [t.filters.running, 'running'],
  [t.filters.stalled, 'stalled'],
  [t.filters.done, 'done'],
  [t.filters.failed, 'failed'],
  [t.filters.lost, 'lost'],
] as const

export const runPages = (context: PageContext): readonly Route[] => [
  pageRoute(PATH, (event) => show(context, event)),
  runPage(context),
]

async function show(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const { site } = context
  const { searchParams } = event.url
  const filter = { ...parseRunFilter(searchParams), limit: ROWS }
  const { before } = filter
  const { shown, next, total } = readRunPage(site.runs, filter)
  const query = readListQuery(searchParams, KEPT, 300)
  const nameOfMac = (mac: Run['mac']) => {
    const machine = site.machines.peek(mac)
    return machine === null ? mac : nameOf(machine)
  }
  return await context.show(event, {
    title: t.title,
    section: PATH,
    count: String(total),
    live: address('/events/machines', { q: 'mac:none', bars: 'all' }),
    actions: html`<a class="button" href="${address('/runs.csv', query)}">${t.csv}</a
      ><a class="button" href="${address('/runs.json', query)}">${t.json}</a>`,
    body: html`${renderSearch({
        path: PATH,
        query,
        name: 'q',
        label: t.search,
        placeholder: t.placeholder,
        views: VIEWS.map(([title, state]) => [
          title,
          { ...query, state },
          countRuns(site.runs, { ...query, state }),
        ]),
      })}
      <div ${refreshOnNews('runs', address(PATH, { ...query, before }), 2000)}>
        ${
          shown.length === 0
            ? renderNothing(query)
            : renderRunTable({
                runs: shown.map(({ run }) => run),
                clock: context.clock(),
                nameOf: nameOfMac,
              })
        }
      </div>
      ${renderOlder({
        path: PATH,
        query,
        shown: shown.length,
        isNewest: before === undefined,
        next: next === null ? null : { before: next },
      })}`,
  })
}

/** An index of the database counts them; of a search, it reads the history, which is limited. */
function countRuns(runs: PageContext['site']['runs'], query: ListQuery): number {
  const {
    limit: _limit,
    before: _before,
    ...condition
  } = parseRunFilter(new URLSearchParams(query))
  return runs.count(condition)
}

const renderNothing = (query: ListQuery): Html =>
  Object.keys(query).length === 0
    ? emptyState(
        t.none.title,
        t.none.text,
        html`<a class="button primary" href="/ui/machines">${t.none.link}</a>`,
      )
    : emptyState(
        t.noneFound.title,
        t.noneFound.text,
        html`<a class="button" href="${PATH}">${t.noneFound.link}</a>`,
      )
