/** The card of a run that sets its facts beside those of another one. */
import type { Run } from '#engine/inventory/rules/run.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import { secondsOf } from '#fleet/run/rules/run-view.ts'
import { fill } from '#kit/texts/text.ts'
import { card } from '#kit/web/ui/elements.ts'
import { address, attributes, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderSpan, renderTime } from '#kit/web/ui/times.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { renderRunState, runPath } from '../view/run-table.ts'
import { listPlace, listWritten, type RunRows } from './run-facts.ts'

const t = PAGES.runs.run.waterfall
const titles = PAGES.view.runTable
const { target, compared } = PAGES.runs.run

/** Different in every run, so not worth showing. */
const OWN: ReadonlySet<string> = new Set([target.run, target.armed, titles.started])

export function renderCompared(context: CurrentContext, run: Run, other: Run | null): Content {
  if (other === null) return null
  const [one, two] = [run, other].map((each) => new Map(listFacts(context, each)))
  if (one === undefined || two === undefined) return null
  const names = [...new Set([...one.keys(), ...two.keys()])]
  const rows = names
    .map((name) => ({ name, mine: one.get(name), others: two.get(name) }))
    .filter(({ mine, others }) => !isEmpty(mine) || !isEmpty(others))
    .map((row) => ({ ...row, differs: !OWN.has(row.name) && !isSame(row.mine, row.others) }))
  const differing = rows.filter(({ differs }) => differs).map(({ name }) => name)
  return card({
    title: compared.title,
    id: 'compared',
    aside: html`<a class="small" href="${runPath(run)}">${compared.end}</a>`,
    body: html`<p>
        ${differing.length === 0 ? compared.same : fill(compared.differ, { facts: differing.join(', ') })}
      </p>
      <table class="compared">
        <caption class="spoken">
          ${compared.title}
        </caption>
        <thead>
          <tr>
            <th scope="col">${compared.fact}</th>
            <th scope="col">${compared.mine}</th>
            <th scope="col">
              <a href="${swapped(run, other)}">${nameOther(context, run, other)}</a>
            </th>
          </tr>
        </thead>
        <tbody>
          ${rows.map(renderRow)}
        </tbody>
      </table>`,
  })
}

interface ComparedRow {
  readonly name: string
  readonly mine: Content
  readonly others: Content
  readonly differs: boolean
}

const renderRow = ({ name, mine, others, differs }: ComparedRow): Html =>
  html`<tr${attributes({ class: differs ? 'differs' : null })}>
    <th scope="row">${name}</th>
    <td>${isEmpty(mine) ? '–' : mine}</td>
    <td>${isEmpty(others) ? '–' : others}</td>
  </tr>`

const swapped = (run: Run, other: Run): string =>
  `${address(runPath(other), { with: `${run.mac}/${run.id}` })}#compared`

const listFacts = (context: CurrentContext, run: Run): RunRows => {
  const seconds = secondsOf(run)
  return [
    [titles.state, renderRunState(run)],
    [compared.reason, run.result === 'done' ? null : run.reason],
    [titles.started, renderTime(run.started_at ?? run.updated_at, context.clock())],
    [titles.duration, seconds === null ? null : renderSpan(seconds)],
    ...listWritten(run),
    ...listPlace(run, context.clock()),
  ]
}

const isEmpty = (value: Content): boolean => value === null || value === undefined || value === ''

const isSame = (one: Content, other: Content): boolean =>
  html`${one}`.toString() === html`${other}`.toString()

/** The run's id, with the MAC before it for another machine; null: no such run. */
export function findOther({ site, query }: CurrentContext, run: Run): Run | null {
  const [id = '', text] = (query.get('with') ?? '').split('/').toReversed()
  const mac = text === undefined ? null : parseMac(text)
  if (mac?.ok === false) return null
  return id === '' ? null : site.runs.find(mac === null ? run.mac : mac.value, id)
}

/** By time, and by machine if that is another. */
export function nameOther(context: CurrentContext, run: Run, other: Run): Content {
  const time = renderTime(other.started_at, context.clock())
  return other.mac === run.mac
    ? fillHtml(t.other, { time })
    : fillHtml(t.otherMachine, { time, machine: html`<bdi>${context.nameOf(other.mac)}</bdi>` })
}
