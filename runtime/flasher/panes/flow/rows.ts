/** The rows of both panes: which ones the filter leaves, and why some cannot be chosen. Pure. */
import { isStoredRaw } from '#engine/image/rules/format.ts'
import { type SurveyedDisk, isSameDisk } from '#engine/disk/rules/disk.ts'
import { offerDisk, renderDiskCells, summariseParts } from '#flasher/text/rules/disk-offer.ts'
import { renderDevice } from '#flasher/text/rules/flash-text.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderSize } from '#kit/foundation/size.ts'
import {
  type ChosenFlash,
  type PaneImage,
  type PaneName,
  type PanesState,
  REFRESHING,
  type PaneList,
  type Status,
} from './state.ts'

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

// The marked row of each pane: how it moves, and what becomes of it when the lists change. Pure.

export type MarkMove = 'up' | 'down' | 'pageup' | 'pagedown' | 'home' | 'end'

/** Every row can be marked: the reason why it cannot be chosen is shown for the marked one. */
export function moveMark(state: PanesState, move: MarkMove, pageRows: number): PanesState {
  const rows = listRows(state, state.focus)
  const at = rows.findIndex(({ key }) => key === state.marked[state.focus])
  const last = rows.length - 1
  const to = {
    up: at - 1,
    down: at + 1,
    pageup: at - pageRows,
    pagedown: at + pageRows,
    home: 0,
    end: last,
  }[move]
  const row = rows[Math.min(last, Math.max(0, to))]
  return row === undefined ? state : mark(state, state.focus, row.key)
}

export const mark = (state: PanesState, pane: PaneName, key: string | null): PanesState => ({
  ...state,
  marked: { ...state.marked, [pane]: key },
})

/** Where no row is marked, or the filter hides it: the first that can be chosen. */
export function ensureMark(state: PanesState, pane: PaneName): PanesState {
  const rows = listRows(state, pane)
  if (rows.some(({ key }) => key === state.marked[pane])) return state
  const row = rows.find(({ refusal }) => refusal === null) ?? rows[0]
  return mark(state, pane, row?.key ?? null)
}

/** Marks the first that can be chosen where the marked one is gone. */
export function takeImages(state: PanesState, images: PaneList<PaneImage>): PanesState {
  const refreshed = images.trouble === null ? REFRESHED : null
  const status = state.status === REFRESHING ? refreshed : state.status
  return ensureMark({ ...state, images, status }, 'images')
}

const REFRESHED: Status = { tone: 'plain', text: 'Refreshed.' }

/** No other disk replaces a marked one that is gone: the person may be about to press a key. */
export function takeDisks(state: PanesState, disks: PaneList<SurveyedDisk>): PanesState {
  const marked = state.marked.disks
  const find = ({ rows }: PaneList<SurveyedDisk>) => rows?.find(({ path }) => path === marked)
  const [before, now] = [find(state.disks), find(disks)]
  const next = { ...state, disks }
  if (marked === null) return next
  const isSame =
    now !== undefined &&
    (before === undefined || isSameDisk(before.device.identity, now.device.identity))
  if (isSame) return next
  const text = `${marked} is gone, or is another disk now. Choose a disk again.`
  return { ...mark(next, 'disks', null), status: { tone: 'danger', text } }
}
