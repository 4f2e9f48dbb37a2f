/** The whole screen: header, panes or a dialog, what is marked, the status bar and the keys. Pure. */
import { printable } from '#kit/foundation/printable.ts'
import { clip, spread } from '#kit/terminal/text/clip.ts'
import { wrap } from '#kit/terminal/text/wrap.ts'
import type { Frame, Size } from '#kit/terminal/prompt/painter.ts'
import { ROOT } from '../flow/pane-keys.ts'
import type { Dialog, PanesSetting, DoneSignal, PanesState, Status } from '../flow/state.ts'
import { renderDialog } from './dialogs.ts'
import { BORDER_WIDTH, renderPaneBox, type PaneStyle } from './pane-box.ts'
import { pageRowsOf, renderMarked, renderPanes } from './panes.ts'

/** Header, two lines of status, keys. */
const AROUND = 4
const STATUS_ROWS = 2
/** The rows do not shrink below this while the text changes. */
const MAX_DIALOG = 100
const MIN_DIALOG = 12
/** With fewer rows what is marked is not described in full. */
const MIN_ROWS = 16
const MARKED_ROWS = 3

const hasMarked = ({ dialog }: PanesState, rows: number) => dialog === null && rows >= MIN_ROWS

const panesHeight = (state: PanesState, rows: number) =>
  Math.max(4, rows - AROUND - (hasMarked(state, rows) ? MARKED_ROWS : 0))

export const pageRows = (state: PanesState, { rows }: Size): number =>
  pageRowsOf(panesHeight(state, rows))

/** Lines are shorter than the terminal. `seconds`: since the flash began. */
export function renderScreen(
  state: PanesState,
  size: Size,
  style: PaneStyle,
  seconds: number,
): Frame {
  const { ink } = style
  // The last column stays free: terminals differ in what they do after it.
  const width = size.columns - 1
  const room = { width, height: panesHeight(state, size.rows) }
  const fit = (text: string) => clip(text, width, { cut: 'end', unicode: style.unicode })
  return {
    lines: [
      ink.strong(renderHeader(state.setting, width, style)),
      ...(state.dialog === null
        ? renderPanes(state, room, style)
        : boxDialog(state.dialog, room, style, seconds)),
      ...(hasMarked(state, size.rows) ? renderMarked(state, width, style) : []),
      ...renderStatus(state, width, style),
      ink.faint(fit(` ${keysOf(state)}`)),
    ],
    cursor: null,
  }
}

function renderStatus(state: PanesState, width: number, style: PaneStyle): readonly string[] {
  const lines = [statusOf(state), signalOf(state)].flatMap(({ tone, text }) =>
    (text === '' ? [] : wrap(text, width - 1)).map((line) =>
      dyeStatus(tone, style)(clip(` ${line}`, width, { cut: 'end', unicode: style.unicode })),
    ),
  )
  return [...lines.slice(-STATUS_ROWS), '', ''].slice(0, STATUS_ROWS)
}

function boxDialog(
  dialog: Dialog,
  room: { readonly width: number; readonly height: number },
  style: PaneStyle,
  seconds: number,
): readonly string[] {
  const width = Math.min(MAX_DIALOG, room.width)
  const inner = { width: width - BORDER_WIDTH, height: room.height - 2, seconds }
  const { title, lines } = renderDialog(dialog, inner, style)
  const height = Math.min(room.height, Math.max(MIN_DIALOG, lines.length + 2))
  const margin = ' '.repeat(Math.floor((room.width - width) / 2))
  const above = Math.floor((room.height - height) / 3)
  const framed = renderPaneBox(title, lines, { width, height }, true, style)
  const shown = [...Array.from({ length: above }, () => ''), ...framed.map((line) => margin + line)]
  return Array.from({ length: room.height }, (_, row) => shown[row] ?? '')
}

function renderHeader(
  { version, server, mac, address }: PanesSetting,
  width: number,
  style: PaneStyle,
) {
  const left = printable(` flasher-tui ${version}  ${server ?? 'standalone'}`)
  const right = printable([mac, address].filter((part) => part !== null).join('  '))
  return spread(left, right, width, style.unicode)
}

const dyeStatus = (tone: Status['tone'], { ink }: PaneStyle) =>
  ({ plain: (text: string) => text, good: ink.good, danger: ink.danger })[tone]

function statusOf({ status, setting, dialog }: PanesState): Status {
  if (status !== null) return { ...status, text: printable(status.text) }
  if (dialog !== null) return { tone: 'plain', text: '' }
  return { tone: 'plain', text: setting.isRoot ? START : ROOT }
}

const START = 'Choose an image and a disk, then press f.'

function signalOf({ signal, setting, isLeaving }: PanesState): Status {
  const route = `POST /pxe/${setting.mac}/done`
  switch (signal.kind) {
    case 'off':
      return { tone: 'plain', text: '' }
    case 'sending': {
      const then = isLeaving ? '; then this program ends. q ends it now.' : ' ...'
      return { tone: 'plain', text: `Notifying the server${then}` }
    }
    case 'sent':
      return { tone: 'good', text: 'The server knows that this machine was flashed.' }
    case 'failed':
      return { tone: 'danger', text: describeSignal(route, signal) }
  }
}

const describeSignal = (route: string, { reason }: Extract<DoneSignal, { kind: 'failed' }>) =>
  printable(`Flash done, but ${route} failed: ${reason}. d tries again.`)

const PANE_KEYS = '[Tab] other pane  [f] flash  [/] filter  [r] refresh  [?] help  [q] quit'
const FILTER_KEYS = '[Enter] keep the filter  [Esc] clear it  [Up, Down] choose'

function keysOf({ dialog, isTyping }: PanesState): string {
  if (dialog === null) return isTyping ? FILTER_KEYS : PANE_KEYS
  switch (dialog.kind) {
    case 'help':
      return 'Any key closes the help.'
    case 'checking':
      return '[Esc] back'
    case 'confirm':
      return dialog.checked.reasons.length > 0 ? '[Esc] back' : '[y] ERASE AND FLASH  [n] back'
    case 'flash':
      return { no: '[c] cancel', asked: '[y] cancel the flash  [n] go on', yes: '' }[dialog.cancel]
    case 'ended':
      return '[Enter] close'
  }
}
