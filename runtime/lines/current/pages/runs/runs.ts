/** /ui/runs: every flash that was, newest first, found by words and taken along as a file. */
import type { H3Event, HTTPResponse } from 'h3'
import { emptyState, icon } from '../../../../web/ui/elements.ts'
import { hidden } from '../../../../web/ui/fields.ts'
import { address, attributes, html, type Html } from '../../../../web/ui/html.ts'
import type { Route } from '../../../../web/http/route.ts'
import { parseRunFilter, readRunPage } from '../../../../web/fleet/runs.ts'
import type { PageContext } from '../frame/page-context.ts'
import { nameOf } from '../view/machine-view.ts'
import { runPage } from './run.ts'
import { namesOf, renderRunTable } from '../view/run-table.ts'

const PATH = '/ui/runs'
const ROWS = 100
const KEPT = ['q', 'state', 'mac', 'image', 'serial', 'since', 'until'] as const

type Kept = Readonly<Record<string, string>>

const VIEWS = [
  ['All', ''],
  ['Running', 'running'],
  ['Stalled', 'stalled'],
  ['Done', 'done'],
  ['Failed', 'failed'],
  ['Lost', 'lost'],
] as const

export const runPages = (context: PageContext): readonly Route[] => [
  { method: 'GET', path: PATH, access: 'page', handle: (event) => show(context, event) },
  runPage(context),
]

async function show(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const { site } = context
  const { searchParams } = event.url
  const filter = { ...parseRunFilter(searchParams), limit: ROWS }
  const { before } = filter
  const { shown, next, total } = readRunPage(site.runs, filter)
  const kept = keptOf(searchParams)
  const names = namesOf(await site.machines.list(), nameOf)
  return await context.show(event, {
    title: 'Runs',
    section: PATH,
    count: String(total),
    live: address('/events/machines', { q: 'mac:none', bars: 'all' }),
    actions: html`<a class="button" href="${address('/runs.csv', kept)}">Save as CSV</a
      ><a class="button" href="${address('/runs.json', kept)}">Save as JSON</a>`,
    body: html`${renderTools(kept)}
      <div
        id="runs"
        hx-get="${address(PATH, { ...kept, before })}"
        hx-select="#runs"
        hx-swap="morph:outerHTML"
        hx-trigger="flasher:news"
        data-every="2000"
      >
        ${
          shown.length === 0
            ? renderNothing(kept)
            : renderRunTable({
                runs: shown.map(({ run }) => run),
                clock: context.clock(),
                nameOf: names,
              })
        }
      </div>
      <nav class="pager" aria-label="Pages">
        <span>${shown.length} shown</span>
        ${before === undefined ? null : html`<a href="${address(PATH, kept)}">Newest</a>`}
        ${next === null ? null : html`<a href="${address(PATH, { ...kept, before: next })}" rel="next">Older</a>`}
      </nav>`,
  })
}

const keptOf = (query: URLSearchParams): Kept =>
  Object.fromEntries(
    KEPT.flatMap((name) => {
      const value = query.get(name)
      return value ? [[name, value.slice(0, 300)]] : []
    }),
  )

const renderTools = (kept: Kept): Html =>
  html`<div class="tools">
    <form class="search" role="search" action="${PATH}">
      <input
        type="search"
        name="q"
        value="${kept['q'] ?? ''}"
        aria-label="Search runs"
        placeholder="MAC, image, model, serial, who armed it"
        autocomplete="off"
        spellcheck="false"
      />
      ${hidden({ ...kept, q: null })}
      <button>${icon('search')}Search</button>
    </form>
    <nav class="views" aria-label="Views">
      ${VIEWS.map(([title, state]) => {
        const isHere = (kept['state'] ?? '') === state
        return html`<a
          href="${address(PATH, { ...kept, state })}"
          ${attributes({ 'aria-current': isHere ? 'true' : null })}
          >${title}</a
        >`
      })}
    </nav>
  </div>`

const renderNothing = (kept: Kept): Html =>
  Object.keys(kept).length === 0
    ? emptyState(
        'No runs yet',
        'Each flash stands here: what was written to which disk, how long it took, how it ended.',
        html`<a class="button primary" href="/ui/machines">Machines</a>`,
      )
    : emptyState(
        'No run matches',
        'Take a word out of the search, or begin with all of them.',
        html`<a class="button" href="${PATH}">Show all runs</a>`,
      )
