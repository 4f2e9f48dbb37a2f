/** Runs as a table or a list: image and disk, duration, result, and who armed the machine. */
import type { Machine } from '../../rules/machine.ts'
import { renderRate } from '../../../../core/foundation/rate.ts'
import { printable } from '../../../../core/foundation/printable.ts'
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
import { stemOf } from './next-boot.ts'
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
  /** The name of a machine by its MAC, which a deleted one has instead. */
  nameOf(mac: Run['mac']): string
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
      { title: 'Verified', className: 'verified' },
      { title: 'Armed by', className: 'armer' },
      { title: 'Started', className: 'time' },
    ],
    rows: runs.map((run) => renderRow(run, nameOf(run.mac), clock)),
  })

const renderRow = (run: Run, name: string, clock: Clock): Html =>
  html`<tr>
    <td class="state"><a href="${runPath(run)}">${renderRunState(run)}</a></td>
    <th scope="row" class="name">${renderMachine(run.mac, name)}</th>
    ${
      run.result === null
        ? html`<td colspan="5" class="will">${renderBar(run)}</td>`
        : html`<td class="image" data-label="Image">${renderImage(run)}</td>
            <td class="disk" data-label="Disk">${renderDisk(run)}</td>
            <td class="number" data-label="Duration">${renderDuration(run)}</td>
            <td class="number" data-label="Rate">${renderRateOf(run)}</td>
            <td data-label="Verified">${renderVerified(run)}</td>`
    }
    <td data-label="Armed by">${renderArmer(run)}</td>
    <td class="time" data-label="Started">
      ${renderTime(run.started_at ?? run.updated_at, clock)}
    </td>
  </tr>`

const renderMachine = (mac: string, name: string): Html =>
  name === mac
    ? html`<a href="/ui/machines/${mac}" class="mono">${mac}</a>`
    : html`<a href="/ui/machines/${mac}" title="${name}"><bdi>${name}</bdi></a>
        <div><span class="mono dim">${mac}</span></div>`

/** A failed run shows its reason below the image. */
const renderImage = ({ image, reason, result }: Run): Content =>
  html`${image === null ? html`<span class="dim">unknown image</span>` : middle(stemOf(image.name), image.name)}${
    reason === null || result === 'done'
      ? null
      : html`<span class="small reason" title="${reason}">${reason}</span>`
  }`

/** The model, and the end of the serial number below. */
function renderDisk({ disk }: Run): Content {
  if (disk === null) return DASH
  const model = html`<span class="model" title="${nameDisk(disk)}">${shortDisk(disk)}</span>`
  const serial = printable(disk.serial ?? '')
  return serial === '' || serial === shortDisk(disk)
    ? model
    : html`${model}<span class="serial"><code>${middle(serial)}</code></span>`
}

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
