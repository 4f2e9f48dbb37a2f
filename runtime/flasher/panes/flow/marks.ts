/** The marked row of each pane: how it moves, and what becomes of it when the lists change. Pure. */
import { isSameDisk } from '#engine/disk/rules/disk.ts'
import { listRows } from './rows.ts'
import {
  REFRESHING,
  type PaneList,
  type PaneImage,
  type PaneName,
  type PanesState,
  type Status,
} from './state.ts'
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'

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
