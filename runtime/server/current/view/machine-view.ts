/** A machine as pages show it: its record, the decisions of the rules, its image and its disk. */
import {
  type BootRule,
  RULES,
  isFlashMode,
  flashesAlways,
} from '#server/current/machines/rules/boot-mode.ts'
import type { MachineState } from '#fleet/machine/rules/states.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import {
  findPicked,
  type InventoryDisk,
  countTwins,
  nameAmong,
  pickDisk,
} from '#engine/inventory/rules/machine.ts'
import { decideDrift, type Drift, type LastWritten } from '#fleet/run/rules/waterfall.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import { decideBoot, type BootRuling } from '#server/current/machines/rules/boot.ts'
import { html, type Content, fillHtml, type Html } from '#kit/web/ui/html.ts'
import { channelOf, targetOf, type Machine } from '#server/current/machines/rules/machine.ts'
import { decidePlan, type PlanRuling } from '#server/current/machines/rules/plan.ts'
import { decideState, type StateView } from '#server/current/machines/rules/state.ts'
import type { Surroundings } from '#server/current/machines/rules/surroundings.ts'
import { IMAGE_ENDINGS } from '#appliance/disk-images.ts'
import { printable } from '#kit/foundation/printable.ts'
import { upperFirst } from '#kit/foundation/text.ts'
import { renderBytes, renderDiskBytes } from '#kit/web/ui/elements.ts'
import { nameDisk } from '#server/pages/machines/machines-list.ts'
import { findDiskMismatch } from '#server/current/machines/rules/target.ts'

const UNITS = 'BKMGTPE'

/** Null: unknown. lsblk's `465.8G` is in binary units. */
export function bytesOf({ size, size_bytes }: InventoryDisk): number | null {
  if (size_bytes != null) return size_bytes
  const parts = /^(\d+(?:\.\d+)?)([BKMGTPE])?$/.exec(size ?? '')
  if (parts === null) return null
  return Math.round(Number(parts[1]) * 1024 ** UNITS.indexOf(parts[2] ?? 'B'))
}

/** Binary units on hover; the machine's own text if that is no size. */
export function renderDiskSize(disk: InventoryDisk): Content {
  const bytes = bytesOf(disk)
  return bytes === null ? (disk.size ?? 'size unknown') : renderDiskBytes(bytes)
}

/** `Samsung SSD 980`, else the path. */
export const modelOf = ({ vendor, model, path }: InventoryDisk): string =>
  [vendor, model]
    .map((text) => text?.trim() ?? '')
    .filter((text, at, all) => text !== '' && !(at === 0 && all[1]?.startsWith(text)))
    .join(' ') || printable(path)

const TRANSPORTS: Readonly<Record<string, string>> = {
  nvme: 'NVMe',
  sata: 'SATA',
  usb: 'USB',
  sas: 'SAS',
  mmc: 'eMMC or SD',
  virtio: 'virtio',
}

const transportOf = ({ tran }: InventoryDisk): string =>
  tran === null ? 'unknown transport' : (TRANSPORTS[tran] ?? tran)

/** `500 GB, NVMe`. */
export const aboutDisk = (disk: InventoryDisk): Content =>
  html`${renderDiskSize(disk)}, ${transportOf(disk)}`

interface DiskWarning {
  readonly text: string
  readonly isHard: boolean
}

/** `all`: the machine's disks; `image` null: none is assigned. */
export function warnOf(
  disk: InventoryDisk,
  all: readonly InventoryDisk[],
  image: CatalogEntry | null,
): readonly DiskWarning[] {
  const id = nameAmong(disk, all)
  const twins = countTwins(disk, all)
  const warnings: readonly (DiskWarning | false)[] = [
    id === null &&
      twins < 2 && { text: 'No serial number, so it cannot be identified safely.', isHard: true },
    disk.readonly && { text: 'Read-only.', isHard: true },
    twins > 1 && {
      text: `${twins} disks of this machine have this serial number.`,
      isHard: id === null,
    },
    isTooSmall(disk, id, image) && { text: 'Too small for the image.', isHard: true },
    disk.removable && { text: 'Removable, perhaps a USB stick or memory card.', isHard: false },
  ]
  return warnings.filter((warning) => warning !== false)
}

function isTooSmall(disk: InventoryDisk, id: string | null, image: CatalogEntry | null): boolean {
  const sized = { ...disk, size_bytes: bytesOf(disk) }
  const pick = pickDisk(id, null, [sized])
  if (pick === null || image === null) return false
  return findDiskMismatch([sized], pick, image)?.why === 'disk-too-small'
}

export interface MachineView {
  readonly machine: Machine
  readonly boot: BootRuling
  readonly plan: PlanRuling
  readonly view: StateView
  /** Null: none assigned, or no longer in the catalog. */
  readonly image: CatalogEntry | null
  /** Null: none selected, or not exactly one of that name. */
  readonly disk: InventoryDisk | null
  readonly run: Run | null
  /** Between disk and assignment; null: none, or unknown. */
  readonly drift: Drift | null
}

/** By the rules of script and plan. `run`: under way; `written`: by the last flash; null: none. */
export function viewMachine(
  machine: Machine,
  surroundings: Surroundings,
  run: Run | null,
  written: LastWritten | null = null,
): MachineView {
  const boot = decideBoot(machine, surroundings)
  const plan = decidePlan(machine, surroundings, ALL_FEATURES)
  const { bty_image_ref: ref } = machine
  const target = targetOf(machine)
  const disk = target === null ? null : findPicked(machine.known_disks ?? [], target)
  const image = ref === null ? null : surroundings.findImage(ref)
  const serial = disk?.ok === true ? disk.value.serial : null
  return {
    machine,
    boot,
    plan,
    view: decideState(machine, { boot, plan }, run),
    image,
    disk: disk?.ok === true ? disk.value : null,
    run,
    // The former content is being overwritten.
    drift: run === null ? decideDrift({ ref, image, serial }, written) : null,
  }
}

const ALL_FEATURES = { firstBoot: true, capture: true, diskId: true }

/** The given name, else host name, else MAC. */
export const nameOf = ({
  name,
  hostname,
  mac,
}: Pick<Machine, 'name' | 'hostname' | 'mac'>): string => name ?? hostname ?? mac

/** At once or after its turn in the queue. */
export const willFlash = ({ boot, plan }: MachineView): boolean =>
  RULES[boot.rule].flashes && plan.plan.mode === 'flash'

export const isWaiting = ({ machine, boot }: MachineView): boolean =>
  boot.rule === 'queued' && machine.cycle.queued_at !== null

/** What the stored mode does now, where its own text would say something else; null: it says so. */
export function describeStanding(view: MachineView): string | null {
  const { boot, plan } = view
  const isSaid = AS_CHOSEN.has(boot.rule) || willFlash(view) || plan.mismatch !== null
  return isSaid ? null : `${view.view.is} ${view.view.next}`
}

/** As the mode says, at the latest with the image and the disk that are selected beside it. */
const AS_CHOSEN: ReadonlySet<BootRule> = new Set([
  'ipxe-exit',
  'wizard',
  'disks-wanted',
  'disks-stale',
  'disks-known',
  'no-image',
  'unknown-image',
  'not-an-image',
  'no-target',
])

/** Until an operator acts, because the disk may be half written. */
export const isHeldBack = ({ boot: { rule }, run }: MachineView): boolean =>
  HELD_BACK.has(rule) && (run === null || run.stalled)

const HELD_BACK: ReadonlySet<BootRule> = new Set(['half-written', 'loop-to-person', 'held-back'])

/** Flashes once obstacles are gone, such as a missing live system. Operators confirm this. */
export const isArmed = ({
  boot_mode,
  bty_image_ref,
  target_disk_serial,
  locked,
  cycle,
}: Machine): boolean =>
  isFlashMode(boot_mode) &&
  bty_image_ref !== null &&
  target_disk_serial !== null &&
  !locked &&
  cycle.disarmed_at === null

/** ` (stable)`, after the image's name. */
export function renderChannel(machine: Machine): Content {
  const channel = channelOf(machine)
  return channel === null ? null : html` <span class="dim nowrap">(${channel})</span>`
}

// Describes the next network boot of a machine: a phrase for a row, a sentence for a page.

/** "Flash *debian-13* to *S5GXNX0T123456*" and the like. */
export function renderWill(view: MachineView): Content {
  const { state, is } = view.view
  if (isWaiting(view)) return is
  if (state === 'failed') return renderFailure(view)
  if (SHOWN.has(state)) return is
  if (view.boot.rule === 'capture') return renderCaptureOf(view.machine) ?? is
  if (willFlash(view)) return renderFlash(view)
  const { will = is }: { readonly will?: string } = RULES[view.boot.rule]
  return will
}

const renderFlash = ({ machine, image }: MachineView): Content =>
  fillHtml('Flash {image} to {disk}', {
    image: html`<em><bdi>${stemOf(image?.name ?? '')}</bdi></em>`,
    disk: html`<em class="target">${printable(machine.target_disk_serial ?? '')}</em>`,
  })

/** A badge beside it says that it failed, so a row has the reason alone. */
const renderFailure = ({ machine: { cycle }, view }: MachineView): string =>
  upperFirst(printable(cycle.failure?.reason ?? view.is))

/** States shown in place of what comes next. */
const SHOWN: ReadonlySet<MachineState> = new Set(['needs-you', 'running'])

function renderCaptureOf({ capture }: MachineView['machine']): Content {
  if (capture === null) return null
  return fillHtml('Capture {disk} as {image}', {
    image: html`<em><bdi>${stemOf(capture.name)}</bdi></em>`,
    disk: html`<em>${printable(capture.disk_serial)}</em>`,
  })
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
  if (view.boot.rule === 'queued')
    return html`${state} ${renderSubjects(view.image.name, renderTarget(view))}`
  const isAlways = flashesAlways(view.machine.boot_mode)
  const sentence = fillHtml(
    isAlways
      ? 'At every network boot, this machine erases {disk} and flashes {image}.'
      : 'At its next network boot, this machine erases {disk}, flashes {image} and then boots from it.',
    {
      disk: renderTarget(view),
      image: html`<strong><bdi>${view.image.name}</bdi></strong
        >${renderChannel(view.machine)} (${aboutImage(view.image)})`,
    },
  )
  return html`<p class="sentence">${sentence}</p>`
}

function renderTarget({ machine, disk }: MachineView): Html {
  const serial = printable(machine.target_disk_serial ?? '')
  if (disk === null) return html`the disk <strong>${serial}</strong>`
  return fillHtml('{model} ({serial}, {about})', {
    model: html`<strong><bdi>${modelOf(disk)}</bdi></strong>`,
    serial: html`<code>${serial}</code>`,
    about: aboutDisk(disk),
  })
}

const renderSubjects = (image: string, disk: Content): Html =>
  html`<p class="subjects">
    ${fillHtml('Image: {image}', { image: html`<strong><bdi>${image}</bdi></strong>` })}<br />
    Disk to erase: ${disk}
  </p>`

function renderRunning({ image, disk, stalled, mode }: Run, is: string, next: string): Html {
  if (image === null) return html`<p class="sentence">${is} ${next}</p>`
  if (stalled && mode !== 'capture') {
    return html`<p class="sentence">${is} ${next}</p>
      ${renderSubjects(image.name, disk === null ? 'unknown' : nameDisk(disk))}`
  }
  const name = html`<strong><bdi>${image.name}</bdi></strong>`
  const [alone, both] =
    mode === 'capture'
      ? [
          'This machine is being captured as {image}.',
          '{disk} of this machine is being captured as {image}.',
        ]
      : ['This machine is flashing {image}.', 'This machine is flashing {image} to {disk}.']
  const sentence =
    disk === null
      ? fillHtml(alone, { image: name })
      : fillHtml(both, { image: name, disk: html`<strong>${nameDisk(disk)}</strong>` })
  return html`<p class="sentence">${stalled ? is : sentence} ${next}</p>`
}

export const NO_IMAGES: Html = html`<p class="hint">
  No images yet. <a href="/ui/cache#add">Add an image</a> by its address or as a file.
</p>`

/** `a1b2c3d4e5f6, 412 MB`. */
export const aboutImage = ({ sha256, sizeBytes }: CatalogEntry): Content =>
  fillHtml('{checksum}, {size}', {
    checksum: html`<code>${sha256?.slice(0, 12) ?? 'no checksum'}</code>`,
    size: renderBytes(sizeBytes, 'size unknown'),
  })
