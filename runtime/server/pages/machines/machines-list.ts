/** What the machines pages of both lines share: the live table, the form that adds a machine, and what an empty list says. */
import { parseMac, renderHyphens } from '#kit/net/rules/mac.ts'
import { renderNumber } from '#kit/foundation/text.ts'
import { seeOther, type Answer } from '#kit/web/answers/answers.ts'
import { badge, banner, emptyState } from '#kit/web/ui/elements.ts'
import { fillHtml, html, type Content, type Html, address, attributes } from '#kit/web/ui/html.ts'
import { type ListQuery, renderTable, type TableColumn } from '#kit/web/ui/tables.ts'
import type { PageContext } from '../page-context.ts'
import { listMistakes, type Vocabulary } from '#fleet/machine/rules/query.ts'
import { wordOf } from '#fleet/machine/rules/states.ts'
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

export const MACHINES_PATH = '/ui/machines'

export const machinePath = (mac: string): string => `${MACHINES_PATH}/${mac}`

/** `12`, or `3 of 12` where a search finds fewer. */
export const renderFound = (found: number, all: number): string =>
  found === all ? renderNumber(all) : `${renderNumber(found)} of ${renderNumber(all)}`

interface FleetTable {
  readonly query: ListQuery
  readonly columns: readonly TableColumn[]
  readonly rows: readonly Html[]
  readonly isWide?: boolean
}

export const renderFleetTable = ({ query, columns, rows, isWide = false }: FleetTable): Html =>
  renderTable({
    caption: 'Machines',
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
      'No machines yet',
      fillHtml(
        'Boot one from the network and it appears here. Your DHCP server must point machines to {address}.',
        { address: html`<code>${baseUrl}/pxe-bootstrap.ipxe</code>` },
      ),
      action,
    )}
  </div>`

/** Hidden by the first row. */
export const renderNoneFound = (): Html =>
  html`<div class="if-empty">
    ${emptyState('No matching machines', 'Remove a term or clear the search.', html`<a class="button" href="${MACHINES_PATH}">Show all machines</a>`)}
  </div>`

/** From `deleted` or `missing` in the address. */
export function renderGone(query: URLSearchParams): Content {
  const [deleted, missing] = ['deleted', 'missing'].map((name) => {
    const mac = parseMac(query.get(name) ?? '')
    return mac.ok ? mac.value : null
  })
  if (deleted)
    return banner(
      'done',
      `${deleted} was deleted. It reappears as discovered when it next boots from the network.`,
    )
  return missing ? banner('failed', `${missing} no longer exists.`) : null
}

export const renderAddForm = (command: Content = null): Html =>
  html`<form method="post" action="${MACHINES_PATH}" class="row" id="add">
      <input
        name="mac"
        class="mono"
        required
        aria-label="MAC address"
        placeholder="aa:bb:cc:dd:ee:ff"
        maxlength="17"
        pattern="[0-9a-fA-F]{2}([:\\-][0-9a-fA-F]{2}){5}"
        autocomplete="off"
        spellcheck="false"
      />
      <button>Add machine</button>
    </form>
    ${command}`

export const renderFoldedAddForm = (command: Content = null): Html =>
  html`<details>
    <summary>Add a machine by its MAC address</summary>
    ${renderAddForm(command)}
  </details>`

/** It boots its own disk until it is configured. */
export async function addMachine(context: PageContext, form: URLSearchParams): Promise<Answer> {
  const { site } = context
  const given = (form.get('mac') ?? '').trim()
  const mac = parseMac(given)
  if (!mac.ok) {
    const error = `"${given.slice(0, 40)}" is not a MAC address (six pairs of hexadecimal digits).`
    return context.goBack(MACHINES_PATH, { error })
  }
  if ((await site.machines.find(mac.value)) === null) {
    const added = await site.fleet.upsert(mac.value, {}, context.by(), (before) => before === null)
    if (!added.ok && added.refusal.why === 'fields') {
      return context.goBack(MACHINES_PATH, { error: 'The machine could not be added.' })
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

export const MACHINES_TRAIL = html`<a href="${MACHINES_PATH}">Machines</a>`

const MISTAKES = {
  filter: '{term} is not a filter. The filters are {filters}.',
  filterMeant: '{term} is not a filter. Did you mean {suggestion}?',
  value: '{term} finds nothing: the filter has no such value.',
  valueMeant: '{term} finds nothing. Did you mean {suggestion}?',
  time: '{term} is not a time. Examples: {examples}.',
} as const

/** Such terms were searched for as text. */
export function renderMistakes(query: ListQuery, vocabulary: Vocabulary): Content {
  const filters = [...vocabulary.fields, ...vocabulary.times].join(', ')
  return listMistakes(query['q'] ?? '', vocabulary).map(
    ({ term: text, what, suggestion, corrected }) => {
      const term = html`<code>${text}</code>`
      if (what === 'time') {
        return banner('needs-you', fillHtml(MISTAKES.time, { term, examples: TIMES }))
      }
      if (suggestion === null)
        return banner('needs-you', fillHtml(MISTAKES[what], { term, filters }))
      const href = address(MACHINES_PATH, { ...query, q: corrected })
      const meant = html`<a href="${href}"><code>${suggestion}</code></a>`
      return banner('needs-you', fillHtml(MISTAKES[`${what}Meant`], { term, suggestion: meant }))
    },
  )
}

const TIMES = html`<code>seen:&lt;1h</code>, <code>seen:&gt;7d</code>, <code>seen:never</code>`

export const renderStateBadge = (view: Parameters<typeof wordOf>[0]): Html =>
  badge(view.state, wordOf(view))

const PHASES: Readonly<Record<RunPhase, string>> = {
  started: 'starting',
  write: 'writing',
  verify: 'verifying',
  sync: 'flushing',
  uefi: 'adding boot entry',
  done: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
}
const CAPTURE_PHASES = { ...PHASES, write: 'capturing' }

const phasesOf = ({ mode }: Run) => (mode === 'capture' ? CAPTURE_PHASES : PHASES)

type DiskNames = Pick<RunDisk, 'model' | 'serial' | 'path'>

export const shortDisk = ({ model, serial, path }: DiskNames): string =>
  printable(model?.trim() || serial || path || 'a disk')

export const nameDisk = ({ model, serial, path }: DiskNames): string => {
  const names = [...new Set([model?.trim(), serial, path].filter(Boolean))]
  return printable(names.join(', ') || 'a disk')
}

/** `writing 41%`. */
function renderPhase(run: Run): string {
  const share = shareOf(run)
  const phase = phasesOf(run)[run.phase]
  return share === null ? phase : `${phase} ${renderPercent(share)}`
}

/** `412 MB/s, 0:07 left, 1.80 of 4.00 GB`: most important first, as space is narrow. */
function renderFigures({ phase, step_bytes, step_total, rate, eta_seconds }: Run): string {
  if (phase !== 'write' && phase !== 'verify') return ''
  const bytes = step_total === null ? renderSize(step_bytes) : renderPartOf(step_bytes, step_total)
  return [
    ...(rate === null || rate <= 0 ? [] : [renderRate(rate)]),
    ...(eta_seconds === null ? [] : [`${renderDuration(eta_seconds)} left`]),
    bytes,
  ].join(', ')
}

/** `live.js` replaces the bar by its id as the run continues. */
export function renderBar(run: Run): Html {
  const share = shareOf(run)
  const progress = renderPhase(run)
  const label = run.stalled ? `${progress}, not responding` : progress
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
