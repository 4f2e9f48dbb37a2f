/** /ui/runs: every flash, newest first or sorted by a column, with a search, exports and removal. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { parseRunColumn, RUN_KEYS } from '#fleet/run/rules/run-record.ts'
import { sortRows } from '#fleet/machine/rules/query.ts'
import type { RunFilter, Runs } from '#fleet/run/runs.ts'
import {
  DAY_NAMES,
  readDayRange,
  renderDayFields,
  renderDayProblem,
  type DayRange,
} from '#server/pages/day-range.ts'
import { emptyState, refreshOnNews } from '#kit/web/ui/elements.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import {
  cutPage,
  PAGE_ROWS,
  renderDownloads,
  renderPager,
  readListQuery,
  renderOlder,
  renderSearch,
  type ListQuery,
} from '#kit/web/ui/tables.ts'
import { address, html, type Html, attributes } from '#kit/web/ui/html.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import { parseRunFilter, readRunPage } from '#server/routes/runs.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { opensQuestion } from '#server/pages/question.ts'
import { nameKeyOf } from '#server/current/machines/fleet-query.ts'
import { RUN_PAGE } from './run-page.ts'
import {
  renderRemoved,
  renderRunValue,
  RUN_REMOVAL,
  RUN_REMOVAL_PATH,
  listSelected,
} from './run-removal.ts'
import { renderRunTable, runPath } from '#server/current/view/run-table.ts'
import { localPath } from '#kit/web/answers/checked.ts'

// /ui/runs/compare: leads from two selected runs to the page of one, with the facts and the bars of the other beside its own.

const COMPARE_PATH = '/ui/runs/compare'

const RUN_COMPARISON = pageAt(COMPARE_PATH, 'read', compare, { reach: 'list' })

/** Changes nothing, so it is for everybody. */
const renderComparisonButton = (): Html =>
  html`<button
    ${attributes({
      formmethod: 'get',
      formaction: COMPARE_PATH,
      'hx-get': COMPARE_PATH,
      'hx-include': '#bulk',
    })}
  >
    Compare two
  </button>`

function compare(context: CurrentContext): Answer {
  const [one, other, ...more] = listSelected(context, context.query)
  const back = localPath(context.query.get('back'), '/ui/runs')
  const refuse = (error: string) => context.goBack(pathOf(back), { error, query: queryOf(back) })
  if (one === undefined || other === undefined || more.length > 0)
    return refuse('Select exactly two runs to compare them.')
  return context.goTo(`${address(runPath(one), { with: renderRunValue(other) })}#compared`)
}

const urlOf = (path: string): URL => new URL(path, 'http://localhost')
const pathOf = (path: string): string => urlOf(path).pathname
const queryOf = (path: string): Readonly<Record<string, string>> =>
  Object.fromEntries([...urlOf(path).searchParams].filter(([name]) => !SAID.has(name)))

/** An earlier refusal is not repeated. */
const SAID: ReadonlySet<string> = new Set(['error', 'notice'])

const PATH = '/ui/runs'
const KEPT = [
  'q',
  'state',
  'boot',
  'mac',
  'image',
  'serial',
  'since',
  'until',
  ...DAY_NAMES,
  'sort',
] as const

export const RUN_PAGES = [
  pageAt(PATH, 'read', show, { reach: 'list' }),
  RUN_PAGE,
  RUN_COMPARISON,
  RUN_REMOVAL,
]

const FILTERS = {
  '': 'All',
  running: 'Running',
  stalled: 'Stalled',
  done: 'Done',
  failed: 'Failed',
  lost: 'Lost',
} as const

async function show(context: CurrentContext): Promise<Answer> {
  const { site } = context
  const query = readListQuery(context.query, KEPT, 300)
  const { range, exported, problem } = readDayRange(query, context.clock().zone)
  const found = readShown(context, query, range)
  return await context.show({
    title: 'Runs',
    learn: 'server.html#runs',
    count: String(found.total),
    updates: address('/events/machines', { q: 'mac:none', bars: 'all' }),
    messages: html`${context.message()}${renderRemoved(context.query)}`,
    actions: renderDownloads('/runs', exported),
    body: html`${renderSearch({
      path: PATH,
      query,
      name: 'q',
      label: 'Search runs',
      placeholder: 'MAC, image, model, serial number, who armed it',
      more: { fields: renderDayFields(query, problem), names: DAY_NAMES },
      views: Object.entries(FILTERS).map(([state, title]) => [
        title,
        { ...query, state },
        countRuns(site.runs, { ...exported, state }),
      ]),
    })}
    ${renderDayProblem(problem)}
    ${found.runs.length === 0 ? renderNothing(query) : renderRuns(context, query, found)}`,
  })
}

function renderRuns(context: CurrentContext, query: ListQuery, { runs, pager }: ShownRuns): Html {
  const { pathname, search, searchParams } = context.event.url
  const [page, before] = [searchParams.get('page'), searchParams.get('before')]
  const here = address(PATH, { ...query, page, before })
  return html`<form id="bulk" hx-disinherit="*" ${opensQuestion(RUN_REMOVAL_PATH)}>
    <div ${refreshOnNews('runs', here, 2000)}>
      ${renderRunTable({
        runs,
        clock: context.clock(),
        path: PATH,
        query,
        nameOf: context.nameOf,
        valueOf: renderRunValue,
      })}
      ${pager}
    </div>
    <div class="bulk" role="group" aria-label="Selected runs">
      <output data-text="{count} selected">${0} selected</output>
      ${hidden({ confirm: 'ask', back: `${pathname}${search}` })} ${renderComparisonButton()}
      <button class="danger">Remove…</button>
      <button type="reset">Clear</button>
    </div>
  </form>`
}

interface ShownRuns {
  readonly runs: readonly Run[]
  readonly total: number
  readonly pager: Html
}

/** By number, so that new runs move no page; in the order of a column, page by page. */
function readShown(context: CurrentContext, query: ListQuery, range: DayRange['range']): ShownRuns {
  const { runs } = context.site
  const filter = { ...parseRunFilter(context.query), ...range, limit: PAGE_ROWS }
  const column = parseRunColumn(query['sort'])
  if (column === null) return readNewest(runs, filter, query)
  const surroundings = {
    nameKeyOf: (mac: Run['mac']) => nameKeyOf(mac, context.nameOf(mac)),
    isStalled: (mac: Run['mac']) => runs.findRunning(mac)?.stalled === true,
  }
  const rows = runs
    .listSortRows(conditionOf(filter), column)
    .map((row) => ({ n: row.n, key: RUN_KEYS[column](row, surroundings) }))
  const page = cutPage(
    sortRows(rows, query['sort'] ?? '', ({ key }) => key),
    context.query,
  )
  return {
    runs: runs.read(page.rows.map(({ n }) => n)).map(({ run }) => run),
    total: page.total,
    pager: renderPager(PATH, query, page),
  }
}

function readNewest(runs: Runs, filter: RunFilter, query: ListQuery): ShownRuns {
  const { shown, next, total } = readRunPage(runs, filter)
  return {
    runs: shown.map(({ run }) => run),
    total,
    pager: renderOlder({
      path: PATH,
      query,
      shown: shown.length,
      isNewest: filter.before === undefined,
      next: next === null ? null : { before: next },
    }),
  }
}

/** By an index; for a search, by reading the limited history. */
const countRuns = (runs: Runs, query: ListQuery): number =>
  runs.count(conditionOf(parseRunFilter(new URLSearchParams(query))))

const conditionOf = ({ limit: _limit, before: _before, ...condition }: RunFilter) => condition

const renderNothing = (query: ListQuery): Html =>
  Object.keys(query).every((name) => name === 'sort')
    ? emptyState(
        'No runs yet',
        'Every flash is listed here: which image, which disk, how long it took and how it ended.',
        html`<a class="button primary" href="/ui/machines">Machines</a>`,
      )
    : emptyState(
        'No matching runs',
        'Remove a term or clear the search.',
        html`<a class="button" href="${PATH}">Show all runs</a>`,
      )
