/** Runs as a table or a list: image and disk, duration, result, and who armed the machine. */
import { renderRate } from '#kit/foundation/size.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderHyphens } from '#kit/net/rules/mac.ts'
import {
  type RunColumn,
  averageRateOf,
  secondsOf,
  stateOf,
  type RunState,
} from '#fleet/run/rules/run-record.ts'
import type { Proof, ProofState, Run } from '#engine/inventory/rules/run.ts'
import { badge, type Tone } from '#kit/web/ui/elements.ts'
import { attributes, DIM, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import {
  type ListQuery,
  numberColumn,
  pickColumn,
  renderTable,
  type TableColumn,
} from '#kit/web/ui/tables.ts'
import { renderExact, renderMinute, renderSpan, renderTime, type Clock } from '#kit/web/ui/times.ts'
import { nameActor } from './actor-name.ts'
import { stemOf } from './machine-view.ts'
import { nameDisk, renderBar, shortDisk } from '#server/pages/machines/machines-list.ts'

export const runPath = ({ mac, id }: Pick<Run, 'mac' | 'id'>): string =>
  `/ui/machines/${mac}/runs/${id}`

const TONES: Readonly<Record<RunState, Tone>> = {
  running: 'running',
  stalled: 'needs-you',
  done: 'done',
  failed: 'failed',
  cancelled: 'ready',
  lost: 'needs-you',
}

const DASH = html`<span class="dim">–</span>`

const RUN_STATES = {
  running: 'running',
  stalled: 'stalled',
  done: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
  lost: 'lost',
} as const

export const renderRunState = (run: Run): Html => {
  const state = badge(TONES[stateOf(run)], RUN_STATES[stateOf(run)])
  return run.proof === null ? state : html`${state} ${renderProofState(run.proof)}`
}

const PROOFS = {
  watching: 'waiting for its boot',
  booted: 'booted',
  seen: 'seen on the network',
  'not-seen': 'flashed, not seen',
  failed: 'failed to boot',
} as const

const renderProofState = ({ state }: Proof): Html => badge(PROOF_TONES[state], PROOFS[state])

const PROOF_TONES: Readonly<Record<ProofState, Tone>> = {
  watching: 'running',
  booted: 'done',
  seen: 'ready',
  'not-seen': 'needs-you',
  failed: 'failed',
}

export const renderArmer = ({ armed_by }: Run): Content => {
  if (armed_by === null) return DASH
  const { actor, ip } = armed_by
  const name = nameActor(actor)
  return html`<span title="${ip === null ? name : `${name}, from ${ip}`}">${name}</span>`
}

/** Nothing while a verification may follow, a dash if it cannot. */
export function renderVerified({ verified, result }: Run): Content {
  if (verified === true) return 'yes'
  if (verified === false) return html`<span class="warning">no</span>`
  return result === null ? null : DASH
}

const renderDuration = (run: Run): Content => {
  const seconds = run.result === 'lost' ? null : secondsOf(run)
  return seconds === null ? DASH : renderSpan(seconds)
}

export function renderRateOf(run: Run): Content {
  const rate = readRate(run)
  return rate === null ? DASH : renderRate(rate)
}

const readRate = (run: Run): number | null => (run.reported && averageRateOf(run)) || null

interface RunTable {
  readonly runs: readonly Run[]
  readonly clock: Clock
  /** Its address has the order. */
  readonly path: string
  readonly query: ListQuery
  valueOf(run: Run): string
  /** Of a deleted machine: its MAC. */
  nameOf(mac: Run['mac']): string
}

/** First the longest, the fastest, the newest. */
const COLUMNS: readonly (TableColumn & { readonly key: `${'' | '-'}${RunColumn}` })[] = [
  { key: 'state', title: 'State', className: 'state' },
  { key: 'machine', title: 'Machine', className: 'name' },
  { key: 'image', title: 'Image', className: 'image' },
  { key: 'disk', title: 'Disk', className: 'disk' },
  { ...numberColumn('Duration'), key: '-duration' },
  { key: '-started', title: 'Started', className: 'time' },
]

export const renderRunTable = ({ runs, clock, path, query, ...row }: RunTable): Html =>
  renderTable({
    caption: 'Runs, newest first',
    className: 'runs',
    path,
    query,
    columns: [pickColumn('Select all on this page'), ...COLUMNS],
    body: { id: 'rows' },
    rows: runs.map((run) => renderRow(run, row, clock)),
  })

const renderPick = (run: Run, name: string, value: string, clock: Clock): Html => {
  const time = renderExact(new Date(run.started_at ?? run.updated_at), clock.zone)
  return html`<td class="pick">
    <input
      type="checkbox"
      name="runs"
      form="bulk"
      value="${value}"
      aria-label="Select the run of ${name}, ${time}"
      ${attributes(run.result === null ? { disabled: true, title: 'A run that is still running cannot be removed.' } : {})}
    />
  </td>`
}

const renderRow = (run: Run, row: Pick<RunTable, 'nameOf' | 'valueOf'>, clock: Clock): Html => {
  const name = row.nameOf(run.mac)
  const began = run.started_at ?? run.updated_at
  return html`<tr id="r-${renderHyphens(run.mac)}-${run.id}">
      ${renderPick(run, name, row.valueOf(run), clock)}
      <td class="state"><a href="${runPath(run)}">${renderRunState(run)}</a></td>
      <th scope="row" class="name">${renderMachine(run.mac, name)}</th>
      <td class="image" data-label="Image">
        <bdi>${stemOf(run.image?.name ?? 'unknown image')}</bdi>
        ${run.result === null ? renderBar(run) : html`<div class="small dim">${join([...listFigures(run), ...listArmer(run)])}</div>`}
      </td>
      <td class="disk" data-label="Disk">${renderDisk(run)}</td>
      <td class="number" data-label="Duration">${renderDuration(run)}</td>
      <td class="time" data-label="Started">
        ${renderTime(began, clock)}
        <div class="small dim">${renderMinute(began, clock)}</div>
      </td>
    </tr>
    ${renderWhy(run)}`
}

/** In a row of its own: no column is wide enough. */
const renderWhy = ({ mac, id, reason, result }: Run): Content =>
  reason === null || result === 'done'
    ? null
    : html`<tr class="why" id="w-${renderHyphens(mac)}-${id}">
        <td colspan="${COLUMNS.length + 1}"><span class="small reason">${reason}</span></td>
      </tr>`

const renderMachine = (mac: string, name: string): Html =>
  name === mac
    ? html`<a href="/ui/machines/${mac}" class="mono">${mac}</a>`
    : html`<a href="/ui/machines/${mac}"><bdi>${name}</bdi></a>
        <div><span class="mono dim">${mac}</span></div>`

function renderDisk({ disk }: Run): Content {
  if (disk === null) return DASH
  const model = html`<span class="model">${shortDisk(disk)}</span>`
  const serial = printable(disk.serial ?? '')
  return serial === '' || serial === shortDisk(disk)
    ? model
    : html`${model}<span class="serial"><code>${serial}</code></span>`
}

export const renderRunList = (runs: readonly Run[], clock: Clock): Html =>
  html`<ul class="rows">
    ${runs.map(
      (run) =>
        html`<li>
          <span class="grow"
            ><a href="${runPath(run)}">${renderRunState(run)}</a>
            ${renderWhat(run, true)}<br /><span class="small dim">${renderHow(run)}</span></span
          >
          <span class="when">${renderTime(run.started_at ?? run.updated_at, clock)}</span>
        </li>`,
    )}
  </ul>`

/** `isFull`: with everything that identifies the disk. */
export function renderWhat({ image, disk, mode }: Run, isFull = false): Content {
  const name = html`<bdi>${image?.name ?? 'unknown image'}</bdi>`
  if (disk === null) return name
  const named = isFull ? nameDisk(disk) : shortDisk(disk)
  const words = mode === 'capture' ? '{image} {dim}from {disk}{end}' : '{image} {dim}to {disk}{end}'
  return fillHtml(words, { image: name, disk: named, ...DIM })
}

function renderHow(run: Run): Content {
  const { result, reason } = run
  return join([
    ...(result === null ? [] : [renderDuration(run)]),
    ...listFigures(run),
    ...(reason === null || result === 'done' ? [] : [reason]),
  ])
}

/** How fast it was, and whether it was verified. */
function listFigures(run: Run): readonly Content[] {
  const rate = run.result === null ? null : readRate(run)
  return [
    ...(rate === null ? [] : [renderRate(rate)]),
    ...(run.verified === true ? ['verified'] : []),
    ...(run.verified === false ? [html`<span class="warning">not verified</span>`] : []),
  ]
}

const listArmer = (run: Run): readonly Content[] =>
  run.armed_by === null ? [] : [html`armed by ${renderArmer(run)}`]

const join = (facts: readonly Content[]): Content =>
  facts.map((fact, at) => (at === 0 ? fact : html`, ${fact}`))
