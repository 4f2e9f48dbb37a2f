/** One machine as a row of the table: the same on the page and in what it is sent. */
import { printable } from '#kit/foundation/printable.ts'
import { renderHyphens } from '#kit/net/rules/mac.ts'
import { badge, middle, progress, tag } from '#kit/web/ui/elements.ts'
import { html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import { renderNameCell } from '#server/pages/machines/machines-list.ts'
import { renderBar } from '#server/pages/machines/run-bar.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { Machine } from '../rules/machine.ts'
import { nameOf, type StatedMachine } from './machine-view.ts'

const t = PAGES.earlier.machines
const { columns: titles, row } = PAGES.view

/** The first click on a time sorts from the newest. */
export const COLUMNS = [
  { title: titles.state, className: 'state', key: 'state' },
  { title: titles.name, className: 'name', key: 'name' },
  { title: titles.next, className: 'will', key: 'next' },
  { title: titles.image, className: 'image', key: 'image' },
  { title: titles.flashed, className: 'time flashed', key: '-flashed' },
  { title: titles.seen, className: 'time seen', key: '-seen' },
] as const

export const renderMachineRow = ({ machine, view, run }: StatedMachine, clock: Clock): Html =>
  html`<tr id="row-${renderHyphens(machine.mac)}">
    <td class="state">${badge(view.state, view.word)}</td>
    ${renderNameCell(machine.mac, printable(nameOf(machine)))}
    <td class="will" data-label="${row.nextBoot}">${renderDoing({ machine, view, run })}</td>
    <td class="image" data-label="${titles.image}">
      ${machine.image === null ? tag(row.discovered) : middle(printable(machine.image))}
      ${renderProvisioning(machine)}
    </td>
    <td class="time flashed" data-label="${titles.flashed}">
      ${renderTime(machine.last_flashed_at, clock, row.never)}
    </td>
    <td class="time seen" data-label="${titles.seen}">
      ${renderTime(machine.last_seen_at, clock, row.never)}
    </td>
  </tr>`

function renderProvisioning({ provisioning_mode: mode, last_workflow_status }: Machine): Content {
  const status = last_workflow_status === null ? null : tag(last_workflow_status)
  return mode === 'none' && status === null
    ? null
    : html`<span class="small dim">${mode} ${status}</span>`
}

function renderDoing({ machine, view: { state, is, next }, run }: StatedMachine): Content {
  if (run !== null) return renderBar(run)
  if (state === 'running') return progress(null, null, is)
  const isTrouble = state === 'failed' || state === 'needs-you'
  return html`<span title="${is} ${next}"
    >${isTrouble ? is : t.policies[machine.boot_policy]}</span
  >`
}
