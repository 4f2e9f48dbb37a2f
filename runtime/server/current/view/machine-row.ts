/** One machine as a row of the table or a tile of the wall. */
import { flashesAlways } from '#server/current/machines/rules/boot-mode.ts'
import { renderHyphens } from '#kit/net/rules/mac.ts'
import { sortByPlace } from '#fleet/machine/rules/label.ts'
import { printable } from '#kit/foundation/printable.ts'
import { fill } from '#kit/foundation/text.ts'
import { icon, middle, progress, tag } from '#kit/web/ui/elements.ts'
import { address, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import {
  MACHINES_PATH,
  renderNameCell,
  nameDisk,
  renderBar,
  shortDisk,
  renderStateBadge,
} from '#server/pages/machines/machines-list.ts'
import {
  modelOf,
  renderDiskSize,
  nameOf,
  renderChannel,
  willFlash,
  isWaiting,
  type MachineView,
  renderWill,
  stemOf,
} from './machine-view.ts'

/** Lean, for a page has 100: a shortened text has a title only where focus cannot show it. */
export const renderMachineRow = (
  view: MachineView,
  clock: Clock,
  columns: readonly ColumnName[],
): Html =>
  html`<tr id="m-${renderHyphens(view.machine.mac)}">
    <td class="pick">
      <input
        type="checkbox"
        name="macs"
        form="bulk"
        value="${view.machine.mac}"
        aria-label="Select ${nameOf(view.machine)}"
      />
    </td>
    ${columns.map((name) => CELLS[name](view, clock))}
  </tr>`

const COLUMNS = {
  state: 'State',
  name: 'Machine',
  next: 'Now and next',
  image: 'Image',
  disk: 'Disk',
  labels: 'Labels',
  ip: 'Address',
  arch: 'Architecture',
  flashed: 'Flashed',
  discovered: 'Discovered',
  seen: 'Seen',
} as const

const CELLS: Readonly<Record<ColumnName, (view: MachineView, clock: Clock) => Html>> = {
  state: ({ view }) => html`<td class="state">${renderStateBadge(view)}</td>`,
  name: renderName,
  next: (view) => html`<td class="will" data-label="Next boot">${renderDoing(view)}</td>`,
  image: (view) => html`<td class="image" data-label="${COLUMNS.image}">${renderImage(view)}</td>`,
  disk: (view) =>
    html`<td class="disk${willFlash(view) ? ' whole' : ''}" data-label="${COLUMNS.disk}">
      ${renderDisk(view)}
    </td>`,
  labels: ({ machine }) =>
    html`<td class="labels" data-label="${COLUMNS.labels}">${machine.labels.map(labelLink)}</td>`,
  ip: ({ machine }) =>
    html`<td class="ip mono" data-label="${COLUMNS.ip}">${machine.last_seen_ip ?? DASH}</td>`,
  arch: ({ machine }) =>
    html`<td class="arch" data-label="${COLUMNS.arch}">${machine.arch ?? DASH}</td>`,
  flashed: ({ machine }, clock) =>
    timeCell('flashed', renderTime(machine.last_flashed_at, clock, 'never')),
  discovered: ({ machine }, clock) =>
    timeCell('discovered', renderTime(machine.discovered_at, clock)),
  seen: ({ machine }, clock) => timeCell('seen', renderTime(machine.last_seen_at, clock, 'never')),
}

const timeCell = (name: ColumnName, time: Html): Html =>
  html`<td class="time ${name}" data-label="${COLUMNS[name]}">${time}</td>`

export const labelLink = (label: string): Html =>
  html`<a class="tag" href="${address(MACHINES_PATH, { q: `label:"${label}"` })}">${label}</a>`

const DASH = html`<span class="dim">–</span>`

function renderName({ machine }: MachineView): Html {
  const { mac, labels, locked } = machine
  const about = html`${locked ? html`<span title="Locked against flashing">${icon('lock')}</span>` : null}${
    labels.length === 0
      ? null
      : html`<span class="tags" title="${labels.join(', ')}"
          >${sortByPlace(labels).map(labelLink)}</span
        >`
  }`
  return renderNameCell(mac, nameOf(machine), about)
}

/** Image and disk of a flash have their own columns. */
function renderDoing(view: MachineView): Content {
  if (view.run !== null) return renderBar(view.run)
  const { state, is, next } = view.view
  if (state === 'running') return progress(null, null, is)
  const isFlash = state === 'armed' && willFlash(view) && !isWaiting(view)
  const will = isFlash
    ? flashesAlways(view.machine.boot_mode)
      ? 'Flash at every network boot'
      : 'Flash once'
    : renderWill(view)
  return html`<span title="${is} ${next}">${will}</span>`
}

const renderImage = (view: MachineView): Content =>
  html`${renderAssigned(view)}${renderDrift(view)}`

const DRIFT = {
  'other-image': 'on disk: {image}',
  'changed-image': 'changed since the flash',
  'other-disk': 'last flashed: another disk',
} as const

function renderDrift({ drift }: MachineView): Content {
  if (drift === null) return null
  const text = fill(DRIFT[drift.why], { image: stemOf(drift.written.image ?? '–') })
  return html`<span class="small reason" title="${text}">${text}</span>`
}

function renderAssigned({ machine, image, run }: MachineView): Content {
  // An image chosen in the wizard differs from the assigned one.
  if (run !== null && run.image !== null) return renderImageName(run.image.name)
  // The specification's word.
  if (machine.bty_image_ref === null) return tag('discovered')
  if (image !== null) return renderImageName(image.name, renderChannel(machine))
  const short = machine.bty_image_ref.slice(0, 12)
  return html`<span class="warning" title="Not in the catalog">${short} (gone)</span>`
}

/** Two lines at most, cut at the end. */
const renderImageName = (name: string, after: Content = null): Html =>
  html`<span class="cut" title="${name}"><bdi>${stemOf(name)}</bdi>${after}</span>`

/** Model, serial number and size tell disks apart. */
export function renderDisk({ machine, disk, run }: MachineView): Content {
  const written = run?.disk ?? null
  if (written !== null) {
    const own =
      written.serial === null || written.serial === shortDisk(written) ? null : written.serial
    return html`<span class="model" title="${nameDisk(written)}">${shortDisk(written)}</span
      >${own === null ? null : html`<span class="serial"><code>${middle(printable(own))}</code></span>`}`
  }
  const serial = machine.target_disk_serial
  if (serial === null) return DASH
  const code = html`<code>${middle(printable(serial))}</code>`
  if (disk === null) return html`<span class="serial">${code}</span>`
  return html`<span class="model" title="${modelOf(disk)}">${modelOf(disk)}</span
    ><span class="serial">${code} <span class="size">${renderDiskSize(disk)}</span></span>`
}

export const COLUMN_NAMES = [
  'state',
  'name',
  'next',
  'image',
  'disk',
  'labels',
  'ip',
  'arch',
  'flashed',
  'discovered',
  'seen',
] as const

export type ColumnName = (typeof COLUMN_NAMES)[number]

export const COLUMN_TITLES: Readonly<Record<ColumnName, string>> = COLUMNS

const SPARE: ReadonlySet<ColumnName> = new Set(['labels', 'ip', 'arch', 'flashed', 'discovered'])

/** `state.image.disk`, in our order; the name is always shown. Null or empty: the usual columns. */
export function parseColumns(text: string | null): readonly ColumnName[] {
  const given = new Set((text ?? '').slice(0, 200).split('.'))
  const chosen = COLUMN_NAMES.filter((name) => name === 'name' || given.has(name))
  return text === null || text === '' ? COLUMN_NAMES.filter((name) => !SPARE.has(name)) : chosen
}

export const renderColumns = (columns: readonly ColumnName[]): string => columns.join('.')

export const isUsual = (columns: readonly ColumnName[]): boolean =>
  renderColumns(columns) === renderColumns(parseColumns(null))
