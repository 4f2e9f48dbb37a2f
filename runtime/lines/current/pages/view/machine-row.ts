/** One machine as a row of the table or a tile of the wall. */
import { renderHyphens } from '../../../../core/machine/mac.ts'
import { printable } from '../../../../core/foundation/printable.ts'
import { badge, icon, middle, progress, tag } from '../../../../web/ui/elements.ts'
import { attributes, html, type Content, type Html } from '../../../../web/ui/html.ts'
import { renderTime, type Clock } from '../../../../web/ui/times.ts'
import { modelOf } from './disk-text.ts'
import { nameOf, type MachineView } from './machine-view.ts'
import { nameDisk, renderBar, shortDisk } from './run-bar.ts'
import { renderWill } from './next-boot.ts'

export const machinePath = (mac: string): string => `/ui/machines/${mac}`

export function renderMachineRow(view: MachineView, clock: Clock): Html {
  const { machine } = view
  const { mac, labels } = machine
  const name = nameOf(machine)
  return html`<tr id="m-${renderHyphens(machine.mac)}">
    <td class="pick">
      <input
        type="checkbox"
        name="macs"
        form="bulk"
        aria-label="Select ${name}"
        ${attributes({ value: mac })}
      />
    </td>
    <td class="state">${badge(view.view.state)}</td>
    <th scope="row" class="name">
      <div>
        <a href="${machinePath(mac)}"
          >${name === mac ? html`<span class="mono">${mac}</span>` : html`<bdi>${name}</bdi>`}</a
        >
        ${name === mac ? null : html`<span class="mono dim">${mac}</span>`}
        ${labels.map((label) => tag(label))}
        ${machine.locked ? html`<span title="Locked against flashing">${icon('lock')}</span>` : null}
      </div>
    </th>
    <td class="will">${renderDoing(view)}</td>
    <td class="image">${renderImage(view)}</td>
    <td class="disk">${renderDisk(view)}</td>
    <td class="seen">${renderTime(machine.last_seen_at, clock, 'never')}</td>
  </tr>`
}

function renderDoing(view: MachineView): Content {
  if (view.run !== null) return renderBar(view.run)
  return view.view.state === 'running'
    ? progress(null, null, view.view.is)
    : html`<span title="${view.view.is} ${view.view.next}">${renderWill(view)}</span>`
}

function renderImage({ machine, image, run }: MachineView): Content {
  // An image chosen in the wizard differs from the assigned one.
  if (run !== null && run.image !== null) return middle(run.image.name)
  // The specification's word for a machine that nobody has configured.
  if (machine.bty_image_ref === null) return html`<span class="tag">discovered</span>`
  if (image !== null) return middle(image.name)
  const short = machine.bty_image_ref.slice(0, 12)
  return html`<span class="warning" title="Not in the catalog">${short} (gone)</span>`
}

function renderDisk({ machine, disk, run }: MachineView): Content {
  const written = run?.disk ?? null
  if (written !== null) return html`<span title="${nameDisk(written)}">${shortDisk(written)}</span>`
  const serial = machine.target_disk_serial
  if (serial === null) return html`<span class="dim">–</span>`
  if (disk !== null)
    return html`<span title="${modelOf(disk)}, ${printable(serial)}">${modelOf(disk)}</span>`
  return html`<code>${middle(printable(serial))}</code>`
}

/** For a screen above the bench, legible from a distance. */
export const renderTile = ({ machine, view, run }: MachineView, clock: Clock): Html =>
  html`<a
    class="tile ${view.state}"
    id="t-${renderHyphens(machine.mac)}"
    href="${machinePath(machine.mac)}"
  >
    ${badge(view.state)}
    <b><bdi>${nameOf(machine)}</bdi></b>
    <span class="mono">${machine.mac}</span>
    ${
      run === null
        ? html`<span class="dim">seen ${renderTime(machine.last_seen_at, clock, 'never')}</span>`
        : renderBar(run)
    }
  </a>`
