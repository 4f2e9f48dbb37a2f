/** One machine as a row of the table: the same on the page and in what it is sent. */
import type { Run } from '../../../engine/inventory/rules/run.ts'
import { printable } from '../../../kit/foundation/printable.ts'
import { renderHyphens } from '../../../kit/net/rules/mac.ts'
import { badge, middle, tag, type Tone } from '../../../kit/web/ui/elements.ts'
import { html, type Content, type Html } from '../../../kit/web/ui/html.ts'
import { renderTime, type Clock } from '../../../kit/web/ui/times.ts'
import { renderNameCell } from '../../pages/machines/machines-list.ts'
import { renderBar } from '../../pages/machines/run-bar.ts'
import { PAGES } from '../../texts/texts.ts'
import { isArmed, type Machine } from '../rules/machine.ts'

const t = PAGES.earlier.machines

export const COLUMNS = [
  { title: t.columns.boot, className: 'state' },
  { title: t.columns.machine, className: 'name', key: 'name' },
  { title: t.columns.provisioning, className: 'will' },
  { title: t.columns.image, className: 'image', key: 'image' },
  { title: t.columns.flashed, className: 'disk', key: 'flashed' },
  { title: t.columns.seen, className: 'seen', key: 'seen' },
] as const

/** Renders a row of the machines table. `run` is the machine's run that is under way; null: none is. */
export const renderMachineRow = (machine: Machine, run: Run | null, clock: Clock): Html =>
  html`<tr id="row-${renderHyphens(machine.mac)}">
    <td class="state">${renderPolicy(machine, run)}</td>
    ${renderNameCell(machine.mac, printable(machine.hostname ?? machine.mac))}
    <td class="will">${run === null ? renderProvisioning(machine) : renderBar(run)}</td>
    <td class="image">
      ${machine.image === null ? tag(t.discovered) : middle(printable(machine.image))}
    </td>
    <td class="disk">${renderTime(machine.last_flashed_at, clock, t.never)}</td>
    <td class="seen">${renderTime(machine.last_seen_at, clock, t.never)}</td>
  </tr>`

const renderPolicy = (machine: Machine, run: Run | null): Html => {
  const tone: Tone =
    run !== null
      ? 'running'
      : machine.failure !== null
        ? 'failed'
        : isArmed(machine)
          ? 'armed'
          : 'ready'
  return badge(tone, run === null ? t.policies[machine.boot_policy] : t.flashing)
}

const renderProvisioning = ({ provisioning_mode, last_workflow_status }: Machine): Content =>
  html`${provisioning_mode}${last_workflow_status === null ? null : html` ${tag(last_workflow_status)}`}`
