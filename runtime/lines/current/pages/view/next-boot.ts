/** Describes the next network boot of a machine: a phrase for a row, a sentence for a page. */
import type { CatalogEntry } from '../../../../core/catalog/catalog.ts'
import { printable } from '../../../../core/foundation/printable.ts'
import type { Run } from '../../../../core/machine/run.ts'
import { renderBytes, shorten } from '../../../../web/ui/elements.ts'
import { html, type Content, type Html } from '../../../../web/ui/html.ts'
import type { BootRule } from '../../rules/boot.ts'
import { aboutDisk, modelOf } from './disk-text.ts'
import { isWaiting, willFlash, type MachineView } from './machine-view.ts'
import { nameDisk } from './run-bar.ts'

const LONGEST_NAME = 26

/** "flash *debian-13* to *S5GXNX0T123456*", or what else it does; the disk is never shortened. */
export function renderWill(view: MachineView): Content {
  const { state, is } = view.view
  if (isWaiting(view)) return is
  if (state === 'failed' || state === 'needs-you' || state === 'running') return is
  if (willFlash(view)) {
    const serial = printable(view.machine.target_disk_serial ?? '')
    const image = shorten(stemOf(view.image?.name ?? ''), LONGEST_NAME)
    return html`flash <em><bdi>${image}</bdi></em> to <em class="target">${serial}</em>`
  }
  return WILL[view.boot.rule] ?? is
}

/** Rules that need no attention; for others the row says what is wrong. */
const WILL: Partial<Readonly<Record<BootRule, string>>> = {
  'ipxe-exit': 'boot its disk',
  wizard: 'open the wizard',
  'disks-wanted': 'list its disks, then boot its disk',
  'disks-stale': 'list its disks, then boot its disk',
  'disks-known': 'boot its disk',
  flashed: 'boot its disk',
  'disk-after-flash': 'boot its disk once, then flash again',
}

/** `debian-13` of `debian-13.img.zst`. */
export const stemOf = (name: string): string =>
  name.replace(/\.(img(\.\w+)?|qcow2|raw)$/i, '') || name

/** The first sentence of a machine's page; the disk that will be lost is part of it. */
export function renderSentence(view: MachineView): Html {
  if (view.run !== null) return renderRunning(view.run, view.view.is, view.view.next)
  const state = html`<p class="sentence">${view.view.is} ${view.view.next}</p>`
  if (!willFlash(view) || view.image === null) return state
  if (isWaiting(view)) return html`${state} ${renderSubjects(view.image.name, renderTarget(view))}`
  const target = renderTarget(view)
  const image = html`<strong><bdi>${view.image.name}</bdi></strong> (${aboutImage(view.image)})`
  return view.machine.boot_mode === 'flasher-flash-always'
    ? html`<p class="sentence">
        At every network boot, this machine erases ${target} and flashes ${image}.
      </p>`
    : html`<p class="sentence">
        At its next network boot, this machine erases ${target}, flashes ${image} and then boots
        from it.
      </p>`
}

/** In full: model, serial number, size. */
function renderTarget({ machine, disk }: MachineView): Html {
  const serial = printable(machine.target_disk_serial ?? '')
  return disk === null
    ? html`the disk <strong>${serial}</strong>`
    : html`<strong><bdi>${modelOf(disk)}</bdi></strong> (<code>${serial}</code>, ${aboutDisk(disk)})`
}

const renderSubjects = (image: string, disk: Content): Html =>
  html`<p class="subjects">
    Image: <strong><bdi>${image}</bdi></strong
    ><br />
    Disk to erase: ${disk}
  </p>`

/** What is being flashed, as reported by the machine. */
function renderRunning({ image, disk, stalled }: Run, is: string, next: string): Html {
  if (image === null) return html`<p class="sentence">${is} ${next}</p>`
  if (stalled) {
    return html`<p class="sentence">${is} ${next}</p>
      ${renderSubjects(image.name, disk === null ? 'unknown' : nameDisk(disk))}`
  }
  return html`<p class="sentence">
    This machine is flashing <strong><bdi>${image.name}</bdi></strong
    >${disk === null ? null : html` to <strong>${nameDisk(disk)}</strong>`}. ${next}
  </p>`
}

/** "a1b2c3d4e5f6, 412 MB". */
export const aboutImage = ({ sha256, sizeBytes }: CatalogEntry): Content =>
  html`<code>${sha256?.slice(0, 12) ?? 'no checksum'}</code>,
    ${renderBytes(sizeBytes, 'size unknown')}`
