/** Runs as a table or a list: image and disk, duration, result, and who armed the machine. */
import type { Machine } from '../../rules/machine.ts'
import { renderRate } from '../../../../core/foundation/rate.ts'
import type { Run, RunDisk } from '../../../../core/machine/run.ts'
import {
  averageRateOf,
  secondsOf,
  stateOf,
  type RunState,
} from '../../../../core/machine/run-view.ts'
import { badge, middle, type Tone } from '../../../../web/ui/elements.ts'
import { html, type Content, type Html } from '../../../../web/ui/html.ts'
import { numberColumn, renderTable } from '../../../../web/ui/tables.ts'
import { renderSpan, renderTime, type Clock } from '../../../../web/ui/times.ts'
import { nameDisk, renderBar, shortDisk } from './run-bar.ts'

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

export const renderRunState = (run: Run): Html => badge(TONES[stateOf(run)], stateOf(run))

/** `token:ci` for a token, else the operator. */
export const renderArmer = ({ armed_by }: Run): Content => {
  if (armed_by === null) return DASH
  const { actor, ip } = armed_by
  return html`<span title="${ip === null ? actor : `${actor}, from ${ip}`}">${actor}</span>`
}

/** Whether what was written was read back and compared. */
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
  const rate = run.reported ? averageRateOf(run) : null
  return rate === null || rate === 0 ? DASH : renderRate(rate)
}

interface RunTable {
  readonly runs: readonly Run[]
  readonly clock: Clock
  /** The name of a machine by its MAC. */
  nameOf(mac: string): Content
}

export const renderRunTable = ({ runs, clock, nameOf }: RunTable): Html =>
  renderTable({
    caption: 'Runs, newest first',
    className: 'runs',
    columns: [
      { title: 'State', className: 'state' },
      { title: 'Machine', className: 'name' },
      { title: 'Image', className: 'image' },
      { title: 'Disk', className: 'disk' },
      numberColumn('Duration'),
      numberColumn('Rate'),
      'Verified',
      'Armed by',
      'Started',
    ],
    rows: runs.map((run) => renderRow(run, nameOf(run.mac), clock)),
  })

const renderRow = (run: Run, name: Content, clock: Clock): Html =>
  html`<tr>
    <td class="state"><a href="${runPath(run)}">${renderRunState(run)}</a></td>
    <th scope="row" class="name"><a href="/ui/machines/${run.mac}">${name}</a></th>
    ${
      run.result === null
        ? html`<td colspan="5" class="will">${renderBar(run)}</td>`
        : html`<td class="image">${renderImage(run)}</td>
            <td class="disk">${renderDisk(run)}</td>
            <td class="number">${renderDuration(run)}</td>
            <td class="number">${renderRateOf(run)}</td>
            <td>${renderVerified(run)}</td>`
    }
    <td>${renderArmer(run)}</td>
    <td class="nowrap small">${renderTime(run.started_at ?? run.updated_at, clock)}</td>
  </tr>`

/** A failed run shows its reason below the image. */
const renderImage = ({ image, reason, result }: Run): Content =>
  html`${image === null ? html`<span class="dim">unknown image</span>` : middle(image.name)}${
    reason === null || result === 'done'
      ? null
      : html`<span class="small reason" title="${reason}">${reason}</span>`
  }`

const renderDisk = ({ disk }: Run): Content =>
  disk === null ? DASH : html`<span title="${nameDisk(disk)}">${shortDisk(disk)}</span>`

/** A short list. `nameOf` null: the page is about one machine, so its name is left out. */
export const renderRunList = (
  runs: readonly Run[],
  clock: Clock,
  nameOf: ((mac: string) => Content) | null = null,
): Html =>
  html`<ul class="rows">
    ${runs.map(
      (run) =>
        html`<li>
          <span class="grow"
            ><a href="${runPath(run)}">${renderRunState(run)}</a>
            ${nameOf === null ? null : html`<a href="/ui/machines/${run.mac}">${nameOf(run.mac)}</a> `}<bdi>${run.image?.name ?? 'unknown image'}</bdi>${renderListed(
              run.disk,
              nameOf === null,
            )}<br /><span class="small dim"
              >${run.result === null ? null : html`${renderDuration(run)}, ${renderRateOf(run)}`}${run.verified === true ? ', verified' : null}${run.reason === null || run.result === 'done' ? null : html`, ${run.reason}`}</span
            ></span
          >
          <span class="when">${renderTime(run.started_at ?? run.updated_at, clock)}</span>
        </li>`,
    )}
  </ul>`

/** On the page of its machine the disk is named in full. */
function renderListed(disk: RunDisk | null, isFull: boolean): Content {
  if (disk === null) return null
  return html` <span class="dim">to ${isFull ? nameDisk(disk) : shortDisk(disk)}</span>`
}

/** Names by MAC; a machine that was deleted has none. */
export const namesOf = (machines: readonly Machine[], nameOf: (machine: Machine) => string) => {
  const names = new Map<string, string>(machines.map((machine) => [machine.mac, nameOf(machine)]))
  return (mac: string): Content => {
    const name = names.get(mac) ?? mac
    return name === mac ? html`<span class="mono">${mac}</span>` : name
  }
}
