/** The rows of both panes: which ones the filter leaves, and why some cannot be chosen. Pure. */
import { isStoredRaw } from '#engine/image/rules/format.ts'
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'
import { offerDisk, renderDiskCells, summariseParts } from '#flasher/text/rules/disk-offer.ts'
import { renderDevice } from '#flasher/text/rules/flash-text.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderSize } from '#kit/foundation/size.ts'
import type { ChosenFlash, PaneImage, PaneName, PanesState } from './state.ts'

export interface PaneRow {
  readonly key: string
  /** Printable, one for each column. */
  readonly cells: readonly string[]
  /** Null: it can be chosen. */
  readonly refusal: string | null
  /** Printable; the row in one line, then what is on a disk. */
  readonly words: readonly string[]
}

export function listRows(state: PanesState, pane: PaneName): readonly PaneRow[] {
  const rows = pane === 'images' ? imageRows(state) : diskRows(state)
  const wanted = state.filter[pane].toLowerCase().split(' ').filter(Boolean)
  return rows.filter(({ cells, words }) => {
    const text = [...cells, ...words].join(' ').toLowerCase()
    return wanted.every((word) => text.includes(word))
  })
}

/** Null: none is marked, or the filter hides it. */
export const findMarked = (state: PanesState, pane: PaneName): PaneRow | null =>
  listRows(state, pane).find(({ key }) => key === state.marked[pane]) ?? null

const imageRows = ({ images }: PanesState): readonly PaneRow[] =>
  (images.rows ?? []).map((image) => {
    const { name, location, format, sizeBytes } = image
    const size = sizeBytes === null ? '' : renderSize(sizeBytes)
    const facts = [format ?? 'unknown format', size].filter(Boolean).join(', ')
    return {
      key: location,
      cells: [name, format ?? '?', size].map(printable),
      refusal: refuseImage(image),
      words: [printable(`${name}: ${facts}`)],
    }
  })

function refuseImage({ format, sizeBytes }: PaneImage): string | null {
  if (format === null) return 'not a format that flasher writes'
  return sizeBytes === 0 ? 'the file is empty' : null
}

const diskRows = (state: PanesState): readonly PaneRow[] =>
  (state.disks.rows ?? []).map((disk) => renderDisk(disk, findImage(state)))

function renderDisk(disk: SurveyedDisk, image: PaneImage | null): PaneRow {
  const { path, device, parts } = disk
  const offer = offerDisk(disk, image === null ? null : factsOf(image))
  const words = [`${path}: ${renderDevice(device)}`, `on it now: ${summariseParts(parts)}`]
  const cells = renderDiskCells(offer)
  return { key: path, cells, refusal: offer.refusal, words: words.map(printable) }
}

/** Only a raw image has a known size before it is opened. */
const factsOf = ({ format, sizeBytes }: PaneImage) => ({
  format,
  virtual:
    isStoredRaw(format) && sizeBytes !== null
      ? ({ kind: 'exact', bytes: sizeBytes } as const)
      : ({ kind: 'unknown' } as const),
})

const findImage = ({ images, marked }: PanesState): PaneImage | null =>
  images.rows?.find(({ location }) => location === marked.images) ?? null

const findDisk = ({ disks, marked }: PanesState): SurveyedDisk | null =>
  disks.rows?.find(({ path }) => path === marked.disks) ?? null

/** A sentence; null: it can be written, or none is marked. */
export function refuseMarkedImage(state: PanesState): string | null {
  const [image, row] = [findImage(state), findMarked(state, 'images')]
  return image === null || row === null || row.refusal === null
    ? null
    : `${printable(image.name)} cannot be written: ${row.refusal}.`
}

/** A sentence where nothing is decided yet, or cannot be. */
export function decideChoice(state: PanesState): ChosenFlash | string {
  const [image, disk] = [findImage(state), findDisk(state)]
  const rows = [findMarked(state, 'images'), findMarked(state, 'disks')] as const
  if (image === null || rows[0] === null) return 'Choose an image first.'
  if (disk === null || rows[1] === null) return 'Choose a disk first: Tab goes to the disks.'
  const refusal = refuseMarkedImage(state)
  if (refusal !== null) return refusal
  if (rows[1].refusal !== null) return `${disk.path} cannot be chosen: ${rows[1].refusal}.`
  return { image, disk }
}
