/** What the machines pages of both lines share: the live table, the form that adds a machine, and what an empty list says. */
import { parseMac, renderHyphens } from '#kit/net/rules/mac.ts'
import { fill, renderNumber } from '#kit/texts/text.ts'
import { seeOther, type Answer } from '#kit/web/answers/answers.ts'
import { banner, emptyState, type Tone } from '#kit/web/ui/elements.ts'
import { fillHtml, html, type Content, type Html, address, attributes } from '#kit/web/ui/html.ts'
import { type ListQuery, renderTable, type TableColumn } from '#kit/web/ui/tables.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { PageContext } from '../page-context.ts'
import { listMistakes, type Vocabulary } from '#fleet/machine/rules/query.ts'
import { printable } from '#kit/foundation/printable.ts'
import {
  renderDuration,
  renderPercent,
  renderRate,
  renderPartOf,
  renderSize,
} from '#kit/foundation/size.ts'
import type { Run, RunDisk, RunPhase } from '#engine/inventory/rules/run.ts'
import { shareOf } from '#fleet/run/rules/run-record.ts'

const t = PAGES.machines.list

export const MACHINES_PATH = '/ui/machines'

export const machinePath = (mac: string): string => `${MACHINES_PATH}/${mac}`

/** `12`, or `3 of 12` where a search finds fewer. */
export const renderFound = (found: number, all: number): string =>
  found === all
    ? renderNumber(all)
    : fill(t.countFound, { found: renderNumber(found), all: renderNumber(all) })

interface FleetTable {
  readonly query: ListQuery
  readonly columns: readonly TableColumn[]
  readonly rows: readonly Html[]
  readonly isWide?: boolean
}

export const renderFleetTable = ({ query, columns, rows, isWide = false }: FleetTable): Html =>
  renderTable({
    caption: t.caption,
    className: isWide ? 'fleet many' : 'fleet',
    path: MACHINES_PATH,
    query,
    columns,
    body: { id: 'rows', 'sse-swap': 'machines-update', 'hx-swap': 'morph:innerHTML' },
    rows,
  })

/** Hidden by the first row. */
export const renderNoMachines = (baseUrl: string, action: Content = null): Html =>
  html`<div class="if-empty">
    ${emptyState(
      t.none.title,
      fillHtml(t.none.text, { address: html`<code>${baseUrl}/pxe-bootstrap.ipxe</code>` }),
      action,
    )}
  </div>`

/** Hidden by the first row. */
export const renderNoneFound = (): Html =>
  html`<div class="if-empty">
    ${emptyState(t.noneFound.title, t.noneFound.text, html`<a class="button" href="${MACHINES_PATH}">${t.noneFound.link}</a>`)}
  </div>`

/** From `deleted` or `missing` in the address. */
export function renderGone(query: URLSearchParams): Content {
  const [deleted, missing] = ['deleted', 'missing'].map((name) => {
    const mac = parseMac(query.get(name) ?? '')
    return mac.ok ? mac.value : null
  })
  if (deleted) return banner('done', fill(t.deleted, { mac: deleted }))
  return missing ? banner('failed', fill(t.missing, { mac: missing })) : null
}

export const renderAddForm = (command: Content = null): Html =>
  html`<form method="post" action="${MACHINES_PATH}" class="row" id="add">
      <input
        name="mac"
        class="mono"
        required
        aria-label="${t.macAddress}"
        placeholder="aa:bb:cc:dd:ee:ff"
        maxlength="17"
        pattern="[0-9a-fA-F]{2}([:\\-][0-9a-fA-F]{2}){5}"
        autocomplete="off"
        spellcheck="false"
      />
      <button>${t.add}</button>
    </form>
    ${command}`

export const renderFoldedAddForm = (command: Content = null): Html =>
  html`<details>
    <summary>${t.addSummary}</summary>
    ${renderAddForm(command)}
  </details>`

/** It boots its own disk until it is configured. */
export async function addMachine(context: PageContext, form: URLSearchParams): Promise<Answer> {
  const { site } = context
  const given = (form.get('mac') ?? '').trim()
  const mac = parseMac(given)
  if (!mac.ok) {
    const error = fill(t.notMac, { text: given.slice(0, 40) })
    return context.goBack(MACHINES_PATH, { error })
  }
  if ((await site.machines.find(mac.value)) === null) {
    const added = await site.fleet.upsert(mac.value, {}, context.by(), (before) => before === null)
    if (!added.ok && added.refusal.why === 'fields') {
      return context.goBack(MACHINES_PATH, { error: t.notAdded })
    }
  }
  return seeOther(machinePath(mac.value))
}

/** `about` is shown below. */
export const renderNameCell = (mac: string, name: string, about: Content = null): Html =>
  name === mac
    ? html`<th scope="row" class="name">
        <a href="${machinePath(mac)}" class="mono">${mac}</a>
        <div>${about}</div>
      </th>`
    : html`<th scope="row" class="name">
        <a href="${machinePath(mac)}" title="${name}"><bdi>${name}</bdi></a>
        <div><span class="mono dim">${mac}</span>${about}</div>
      </th>`

export const MACHINES_TRAIL = html`<a href="${MACHINES_PATH}">${PAGES.frame.titles.machines}</a>`

/** Such terms were searched for as text. */
export function renderMistakes(query: ListQuery, vocabulary: Vocabulary): Content {
  const filters = [...vocabulary.fields, ...vocabulary.times].join(', ')
  return listMistakes(query['q'] ?? '', vocabulary).map(
    ({ term: text, what, suggestion, corrected }) => {
      const term = html`<code>${text}</code>`
      if (what === 'time') {
        return banner(
          'needs-you',
          fillHtml(PAGES.machines.search.mistakes.time, { term, examples: TIMES }),
        )
      }
      if (suggestion === null)
        return banner(
          'needs-you',
          fillHtml(PAGES.machines.search.mistakes[what], { term, filters }),
        )
      const href = address(MACHINES_PATH, { ...query, q: corrected })
      const meant = html`<a href="${href}"><code>${suggestion}</code></a>`
      return banner(
        'needs-you',
        fillHtml(PAGES.machines.search.mistakes[`${what}Meant`], { term, suggestion: meant }),
      )
    },
  )
}

const TIMES = html`<code>seen:&lt;1h</code>, <code>seen:&gt;7d</code>, <code>seen:never</code>`

// How the search of the machines pages of both lines names and sorts the states of machines.

const NEEDS_ATTENTION = 'needs-attention'

/** Sorted by need: failures, then what needs attention. */
export const URGENCY = {
  failed: 0,
  'needs-you': 1,
  running: 2,
  capture: 3,
  armed: 4,
  done: 5,
  ready: 6,
} as const satisfies Record<Tone, number>

export const STATE_VALUES: readonly string[] = [...Object.keys(URGENCY), NEEDS_ATTENTION]

export const listStateNames = (state: Tone): readonly string[] =>
  state === 'needs-you' ? [state, NEEDS_ATTENTION] : [state]

// The progress of a run: a bar for rows, the machine's page and the dashboard.

const PHASES: Readonly<Record<RunPhase, string>> = PAGES.view.run.phases
const CAPTURE_PHASES = { ...PHASES, ...PAGES.view.run.capturePhases }

const phasesOf = ({ mode }: Run) => (mode === 'capture' ? CAPTURE_PHASES : PHASES)

/** Its model, else its serial number or path. */
export const shortDisk = ({ model, serial, path }: RunDisk): string =>
  printable(model?.trim() || serial || path || PAGES.view.run.someDisk)

export const nameDisk = (disk: RunDisk): string => {
  const { model, serial, path } = disk
  const names = [...new Set([model?.trim(), serial, path].filter(Boolean))]
  return printable(names.join(', ') || PAGES.view.run.someDisk)
}

/** `writing 41%`. */
function renderPhase(run: Run): string {
  const share = shareOf(run)
  const phase = phasesOf(run)[run.phase]
  return share === null
    ? phase
    : fill(PAGES.view.run.progress, { phase, percent: renderPercent(share) })
}

/** `412 MB/s, 0:07 left, 1.80 of 4.00 GB`: most important first, as space is narrow. */
function renderFigures({ phase, step_bytes, step_total, rate, eta_seconds }: Run): string {
  if (phase !== 'write' && phase !== 'verify') return ''
  const bytes = step_total === null ? renderSize(step_bytes) : renderPartOf(step_bytes, step_total)
  return [
    ...(rate === null || rate <= 0 ? [] : [renderRate(rate)]),
    ...(eta_seconds === null
      ? []
      : [fill(PAGES.view.run.timeLeft, { time: renderDuration(eta_seconds) })]),
    bytes,
  ].join(', ')
}

/** `live.js` replaces the bar by its id as the run continues. */
export function renderBar(run: Run): Html {
  const share = shareOf(run)
  const progress = renderPhase(run)
  const label = run.stalled ? fill(PAGES.view.run.stalled, { progress }) : progress
  const figures = run.stalled ? '' : renderFigures(run)
  const bar = {
    max: share === null ? null : 1,
    value: share === null ? null : share.toFixed(4),
    'aria-label': label,
  }
  return html`<span
    id="b-${renderHyphens(run.mac)}"
    class="bar run${run.stalled ? ' stalled' : ''}"
    title="${figures === '' ? label : `${label}, ${figures}`}"
    ><progress ${attributes(bar)}></progress
    ><span><b>${label}</b> <span class="figures">${figures}</span></span></span
  >`
}
