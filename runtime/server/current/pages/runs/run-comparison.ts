/** /ui/runs/compare: leads from two selected runs to the page of one, with the facts and the bars of the other beside its own. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { localPath } from '#kit/web/answers/local-path.ts'
import { address, attributes, html, type Html } from '#kit/web/ui/html.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { runPath } from '../view/run-table.ts'
import { listSelected, renderRunValue } from './run-removal.ts'

const t = PAGES.runs.comparison

const PATH = '/ui/runs/compare'

export const RUN_COMPARISON = pageAt(PATH, compare)

/** Changes nothing, so it is for everybody. */
export const renderComparisonButton = (): Html =>
  html`<button
    ${attributes({
      formmethod: 'get',
      formaction: PATH,
      'hx-get': PATH,
      'hx-include': '#bulk',
    })}
  >
    ${t.button}
  </button>`

function compare(context: CurrentContext): Answer {
  const [one, other, ...more] = listSelected(context, context.query)
  const back = localPath(context.query.get('back'), '/ui/runs')
  const refuse = (error: string) => context.goBack(pathOf(back), { error, query: queryOf(back) })
  if (one === undefined || other === undefined || more.length > 0) return refuse(t.two)
  return context.goTo(`${address(runPath(one), { with: renderRunValue(other) })}#compared`)
}

const urlOf = (path: string): URL => new URL(path, 'http://localhost')
const pathOf = (path: string): string => urlOf(path).pathname
const queryOf = (path: string): Readonly<Record<string, string>> =>
  Object.fromEntries([...urlOf(path).searchParams].filter(([name]) => !SAID.has(name)))

/** An earlier refusal is not repeated. */
const SAID: ReadonlySet<string> = new Set(['error', 'notice'])
