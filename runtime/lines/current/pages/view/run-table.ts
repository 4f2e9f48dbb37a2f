/** Runs in a table: what was written to what, how long it took, how it ended, who wanted it. */
import type { Machine } from '../../rules/machine.ts'
import { renderRate } from '../../../../core/foundation/rate.ts'
import type { Run } from '../../../../core/machine/run.ts'
import {
  averageRateOf,
  secondsOf,
  stateOf,
  type RunState,
} from '../../../../core/machine/run-view.ts'
import { badge, middle, type Tone } from '../../../../web/ui/elements.ts'
import { html, type Content, type Html } from '../../../../web/ui/html.ts'
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

export const renderRunState = (run: Run): Html => badge(TONES[stateOf(run)], stateOf(run))

/** `token:ci` of a token, a person without a name otherwise. */
export const renderArmer = ({ armed_by }: Run): Content => {
  if (armed_by === null) return html`<span class="dim">–</span>`
  const { actor, ip } = armed_by
  return html`<span title="${ip === null ? actor : `${actor}, from ${ip}`}">${actor}</span>`
}

/** How it was checked, in a word. */
export function renderVerified({ verified, result }: Run): Content {
  if (verified === true) return 'yes'
  if (verified === false) return html`<span class="warning">no</span>`
  return result === null ? null : html`<span class="dim">–</span>`
}

const renderTook = (run: Run): Content => {
  const seconds = run.result === 'lost' ? null : secondsOf(run)
  return seconds === null ? html`<span class="dim">–</span>` : renderSpan(seconds)
}

export function renderRateOf(run: Run): Content {
  const rate = run.reported ? averageRateOf(run) : null
  return rate === null || rate === 0 ? html`<span class="dim">–</span>` : renderRate(rate)
}

interface RunTable {
  readonly runs: readonly Run[]
  readonly clock: Clock
  /** What people call the machine; null: it is gone. */
  nameOf(mac: string): Content
}

export const renderRunTable = ({ runs, clock, nameOf }: RunTable): Html =>
  html`<div class="table">
    <table class="runs">
      <caption class="spoken">
        Runs, newest first
      </caption>
      <thead>
        <tr>
          <th scope="col" class="state">State</th>
          <th scope="col" class="name">Machine</th>
          <th scope="col" class="image">Image</th>
          <th scope="col" class="disk">Disk</th>
          <th scope="col" class="number">Took</th>
          <th scope="col" class="number">Rate</th>
          <th scope="col">Verified</th>
          <th scope="col">Armed by</th>
          <th scope="col">Began</th>
        </tr>
      </thead>
      <tbody>
        ${runs.map((run) => renderRow(run, nameOf(run.mac), clock))}
      </tbody>
    </table>
  </div>`

const renderRow = (run: Run, name: Content, clock: Clock): Html =>
  html`<tr>
    <td class="state"><a href="${runPath(run)}">${renderRunState(run)}</a></td>
    <th scope="row" class="name"><a href="/ui/machines/${run.mac}">${name}</a></th>
    ${
      run.result === null
        ? html`<td colspan="5" class="will">${renderBar(run)}</td>`
        : html`<td class="image">${renderWhat(run)}</td>
            <td class="disk">${renderWhere(run)}</td>
            <td class="number">${renderTook(run)}</td>
            <td class="number">${renderRateOf(run)}</td>
            <td>${renderVerified(run)}</td>`
    }
    <td>${renderArmer(run)}</td>
    <td class="nowrap small">${renderTime(run.started_at ?? run.updated_at, clock)}</td>
  </tr>`

/** The reason stands in place of what it spoilt. */
const renderWhat = ({ image, reason, result }: Run): Content =>
  html`${image === null ? html`<span class="dim">unknown image</span>` : middle(image.name)}${
    reason === null || result === 'done'
      ? null
      : html`<span class="small reason" title="${reason}">${reason}</span>`
  }`

const renderWhere = ({ disk }: Run): Content =>
  disk === null
    ? html`<span class="dim">–</span>`
    : html`<span title="${nameDisk(disk)}">${shortDisk(disk)}</span>`

/** A few runs in few words. `nameOf` null: the page says of which machine they are. */
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
            ${nameOf === null ? null : html`<a href="/ui/machines/${run.mac}">${nameOf(run.mac)}</a> `}${run.image?.name ?? 'unknown image'}${
              run.disk === null ? null : html` <span class="dim">to ${shortDisk(run.disk)}</span>`
            }<br /><span class="small dim"
              >${run.result === null ? null : html`${renderTook(run)}, ${renderRateOf(run)}`}${
                run.verified === true ? ', verified' : null
              }${run.reason === null || run.result === 'done' ? null : html`, ${run.reason}`}</span
            ></span
          >
          <span class="when">${renderTime(run.started_at ?? run.updated_at, clock)}</span>
        </li>`,
    )}
  </ul>`

/** By MAC, of machines that are still there. */
export const namesOf = (machines: readonly Machine[], nameOf: (machine: Machine) => string) => {
  const names = new Map<string, string>(machines.map((machine) => [machine.mac, nameOf(machine)]))
  return (mac: string): Content => {
    const name = names.get(mac) ?? mac
    return name === mac ? html`<span class="mono">${mac}</span>` : name
  }
}
