/** Describes the next network boot of a machine: a phrase for a row, a sentence for a page. */
import { type BootRule, flashesAlways } from '#server/current/rules/boot-mode.ts'
import { IMAGE_ENDINGS } from '#appliance/disk-images.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { printable } from '#kit/foundation/printable.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import { PAGES } from '#server/texts/texts.ts'
import { renderBytes, shorten } from '#kit/web/ui/elements.ts'
import { fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'

import type { MachineState } from '#server/current/rules/state.ts'
import { aboutDisk, modelOf } from './disk-text.ts'
import { isWaiting, renderChannel, willFlash, type MachineView } from './machine-view.ts'
import { nameDisk } from '#server/pages/machines/run-bar.ts'

const t = PAGES.view.nextBoot

const LONGEST_NAME = 26

/** "flash *debian-13* to *S5GXNX0T123456*" and the like; the disk is never shortened. */
export function renderWill(view: MachineView): Content {
  const { state, is } = view.view
  if (isWaiting(view)) return is
  if (state === 'failed') return renderFailure(view)
  if (SHOWN.has(state)) return is
  if (view.boot.rule === 'capture') return renderCaptureOf(view.machine) ?? is
  if (willFlash(view)) return renderFlash(view)
  return WILL[view.boot.rule] ?? is
}

const renderFlash = ({ machine, image }: MachineView): Content =>
  fillHtml(t.flash, {
    image: html`<em><bdi>${shorten(stemOf(image?.name ?? ''), LONGEST_NAME)}</bdi></em>`,
    disk: html`<em class="target">${printable(machine.target_disk_serial ?? '')}</em>`,
  })

/** A badge beside it says that it failed, so a row has the reason alone. */
const renderFailure = ({ machine: { cycle }, view }: MachineView): string =>
  printable(cycle.failure?.reason ?? view.is)

/** States shown in place of what comes next. */
const SHOWN: ReadonlySet<MachineState> = new Set(['needs-you', 'running'])

function renderCaptureOf({ capture }: MachineView['machine']): Content {
  if (capture === null) return null
  return fillHtml(t.capture, {
    image: html`<em><bdi>${shorten(stemOf(capture.name), LONGEST_NAME)}</bdi></em>`,
    disk: html`<em>${printable(capture.disk_serial)}</em>`,
  })
}

/** Rules that need no attention; otherwise the row says what is wrong. */
const WILL: Partial<Readonly<Record<BootRule, string>>> = {
  'ipxe-exit': t.bootDisk,
  wizard: t.wizard,
  'disks-wanted': t.listDisks,
  'disks-stale': t.listDisks,
  'disks-known': t.bootDisk,
  flashed: t.bootDisk,
  'disk-after-flash': t.diskThenFlash,
}

/** `debian-13` of `debian-13.img.zst`. */
export const stemOf = (name: string): string => name.replace(ENDING, '') || name

const ENDING = new RegExp(
  `(\\.img\\.\\w+|\\.raw|${IMAGE_ENDINGS.join('|').replaceAll('.', String.raw`\.`)})$`,
  'i',
)

/** With the disk that will be erased. */
export function renderSentence(view: MachineView): Html {
  if (view.run !== null) return renderRunning(view.run, view.view.is, view.view.next)
  const state = html`<p class="sentence">${view.view.is} ${view.view.next}</p>`
  if (!willFlash(view) || view.image === null) return state
  if (isWaiting(view)) return html`${state} ${renderSubjects(view.image.name, renderTarget(view))}`
  const isAlways = flashesAlways(view.machine.boot_mode)
  const sentence = fillHtml(isAlways ? t.flashesAlways : t.flashesOnce, {
    disk: renderTarget(view),
    image: fillHtml(t.image, {
      name: html`<strong><bdi>${view.image.name}</bdi></strong
        >${renderChannel(view.machine)}`,
      about: aboutImage(view.image),
    }),
  })
  return html`<p class="sentence">${sentence}</p>`
}

function renderTarget({ machine, disk }: MachineView): Html {
  const serial = printable(machine.target_disk_serial ?? '')
  if (disk === null) return fillHtml(t.unlistedDisk, { serial: html`<strong>${serial}</strong>` })
  return fillHtml(t.disk, {
    model: html`<strong><bdi>${modelOf(disk)}</bdi></strong>`,
    serial: html`<code>${serial}</code>`,
    about: aboutDisk(disk),
  })
}

const renderSubjects = (image: string, disk: Content): Html =>
  html`<p class="subjects">
    ${fillHtml(t.subjectImage, { image: html`<strong><bdi>${image}</bdi></strong>` })}<br />
    ${fillHtml(t.subjectDisk, { disk })}
  </p>`

function renderRunning({ image, disk, stalled, mode }: Run, is: string, next: string): Html {
  if (image === null) return html`<p class="sentence">${is} ${next}</p>`
  if (stalled && mode !== 'capture') {
    return html`<p class="sentence">${is} ${next}</p>
      ${renderSubjects(image.name, disk === null ? t.subjectUnknown : nameDisk(disk))}`
  }
  const name = html`<strong><bdi>${image.name}</bdi></strong>`
  const [alone, both] =
    mode === 'capture' ? [t.capturing, t.capturingFrom] : [t.flashing, t.flashingTo]
  const sentence =
    disk === null
      ? fillHtml(alone, { image: name })
      : fillHtml(both, { image: name, disk: html`<strong>${nameDisk(disk)}</strong>` })
  return html`<p class="sentence">${stalled ? is : sentence} ${next}</p>`
}

/** `a1b2c3d4e5f6, 412 MB`. */
export const aboutImage = ({ sha256, sizeBytes }: CatalogEntry): Content =>
  fillHtml(PAGES.view.image.about, {
    checksum: html`<code>${sha256?.slice(0, 12) ?? PAGES.view.image.noChecksum}</code>`,
    size: renderBytes(sizeBytes, PAGES.view.image.unknownSize),
  })
