/** What flasher-tui draws: the two panes side by side, and the dialogs over them. Pure. */
import { printable, displayWidth } from '#kit/foundation/printable.ts'
import {
  clip,
  layOut,
  naturalWidth,
  type Column,
  wrap,
  pad,
  fitLines,
  wrapColumns,
} from '#kit/terminal/text/columns.ts'
import {
  findMarked,
  listRows,
  type PaneRow,
  type PaneName,
  type PanesState,
  type ChosenFlash,
  type Dialog,
  type PaneImage,
} from './flow.ts'
import type { Ink } from '#kit/terminal/text/terminal-style.ts'
import { type Cases, decideCase } from '#kit/foundation/cases.ts'
import {
  renderDevice,
  renderSource,
  renderReadSoFar,
  renderSuccess,
  renderWaiting,
} from '#flasher/text/rules/flash-text.ts'
import { renderDuration } from '#kit/foundation/size.ts'
import { renderBar } from '#flasher/text/progress.ts'
import { layOutLosses } from '#flasher/text/loss-table.ts'
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'

/** With fewer columns only the pane that has the keys is shown. */
const MIN_COLUMNS = 64
/** Less than half: disks have more to tell. */
const IMAGES_SHARE = 0.45
/** From this width on a disk pane has all columns. */
const WIDE = 76
/** Of a reason beside a disk, which stands below the panes in full. */
const MAX_REASON = 10
/** Frame and titles of the columns. */
const AROUND = 3
/** The sign in front of a row. */
const LEAD = 2

export const IMAGE_COLUMNS: readonly Column[] = [
  { title: 'Name', least: 24, tells: true },
  { title: 'Format', drops: 1 },
  { title: 'Size', side: 'right' },
]

export const DISK_COLUMNS: readonly Column[] = [
  { title: 'Path' },
  { title: 'Size', side: 'right' },
  { title: 'Model', least: 14, cut: 'middle', drops: 2 },
  { title: 'Serial', least: 10, cut: 'middle', drops: 1, tells: true },
  { title: 'Bus', drops: 3 },
  { title: 'On it now', least: 20 },
]

/** With little room a reason takes the place of the model. */
const FEW_DISK_COLUMNS: readonly Column[] = [
  { title: 'Path', least: 10, cut: 'middle' },
  { title: 'Size', side: 'right', drops: 0 },
  { title: 'Model', least: 10 },
]

export const pageRowsOf = (height: number): number => Math.max(1, height - AROUND)

export function renderPanes(state: PanesState, { width, height }: PaneRoom, style: PaneStyle) {
  if (width < MIN_COLUMNS) return renderPane(state, state.focus, { width, height }, style)
  const left = decideLeft(state, width)
  const images = renderPane(state, 'images', { width: left, height }, style)
  const disks = renderPane(state, 'disks', { width: width - left, height }, style)
  return images.map((line, row) => line + (disks[row] ?? ''))
}

/** Each side gets its share, and what the other leaves free; the disks' columns come first. */
function decideLeft(state: PanesState, width: number): number {
  const share = Math.floor(width * IMAGES_SHARE)
  const images = needOf(state, 'images', IMAGE_COLUMNS)
  const whole = Math.max(needOf(state, 'disks', DISK_COLUMNS), WIDE + BORDER_WIDTH + LEAD)
  const disks = images + whole <= width ? whole : needOf(state, 'disks', FEW_DISK_COLUMNS)
  if (images > share) return Math.max(share, Math.min(images, width - disks))
  return disks > width - share ? Math.max(images, Math.min(share, width - disks)) : share
}

/** A pane without rows has a sentence, and needs its share. */
function needOf(state: PanesState, pane: PaneName, columns: readonly Column[]): number {
  const rows = listRows(state, pane)
  if (rows.length === 0) return Infinity
  const cells = rows.map((row) =>
    columns === FEW_DISK_COLUMNS
      ? shorten(row).map((cell) => cell.slice(0, MAX_REASON))
      : row.cells,
  )
  return naturalWidth(columns, cells) + BORDER_WIDTH + LEAD
}

function renderPane(
  state: PanesState,
  pane: PaneName,
  room: PaneRoom,
  style: PaneStyle,
): readonly string[] {
  const isActive = state.focus === pane && state.dialog === null
  return renderPaneBox(
    titleOf(state, pane),
    listLines(state, pane, room, style),
    room,
    isActive,
    style,
  )
}

/** A filter replaces the address: it must be seen whole while it is typed. */
function titleOf({ setting, filter, isTyping, focus }: PanesState, pane: PaneName): string {
  const name = pane === 'images' ? 'Images' : 'Disks'
  const isOpen = isTyping && focus === pane
  if (filter[pane] !== '' || isOpen)
    return printable(`${name} /${filter[pane]}${isOpen ? '_' : ''}`)
  return pane === 'images' ? printable(`${name} @ ${setting.source}`) : name
}

function listLines(
  state: PanesState,
  pane: PaneName,
  { width, height }: PaneRoom,
  { unicode }: PaneStyle,
): readonly ScreenRow[] {
  const inner = width - BORDER_WIDTH - LEAD
  const rows = listRows(state, pane)
  if (rows.length === 0) return explainEmpty(state, pane, width - BORDER_WIDTH)
  const isWide = pane === 'disks' && inner >= WIDE
  const columns = pane === 'images' ? IMAGE_COLUMNS : isWide ? DISK_COLUMNS : FEW_DISK_COLUMNS
  const cells = rows.map((row) => (pane === 'images' || isWide ? row.cells : shorten(row)))
  const { head, lines } = layOut(columns, cells, inner, unicode)
  const at = Math.max(
    0,
    rows.findIndex(({ key }) => key === state.marked[pane]),
  )
  const room = pageRowsOf(height)
  const isPaged = rows.length > room
  const size = isPaged ? Math.max(1, room - 1) : room
  // Whole pages, not a moving window: most moves then change only two lines.
  const first = Math.floor(at / size) * size
  const page = rows.slice(first, first + size).map((row, index): ScreenRow => {
    const isMarked = row.key === state.marked[pane]
    const text = `${signOf(row, isMarked, state.focus === pane)} ${lines[first + index] ?? ''}`
    return { text, ...inkOf(row, isMarked) }
  })
  const last = Math.min(rows.length, first + size)
  return [
    { text: `${' '.repeat(LEAD)}${head}`, ink: 'faint' },
    ...page,
    ...(isPaged
      ? [{ text: `  ${first + 1} to ${last} of ${rows.length}`, ink: 'faint' as const }]
      : []),
  ]
}

const shorten = ({ cells, refusal, words }: PaneRow): readonly string[] => [
  cells[0] ?? '',
  cells[1] ?? '',
  (refusal === null ? cells[2] : words[1]) ?? '',
]

/** `>` where the keys go, `*` for what the other pane has marked, `-` for what cannot be chosen. */
function signOf({ refusal }: PaneRow, isMarked: boolean, hasFocus: boolean): string {
  if (isMarked) return hasFocus ? '>' : '*'
  return refusal === null ? ' ' : '-'
}

function inkOf({ refusal }: PaneRow, isMarked: boolean): Pick<ScreenRow, 'ink'> {
  if (isMarked) return { ink: refusal === null ? 'here' : 'strong' }
  return refusal === null ? {} : { ink: 'faint' }
}

function explainEmpty(state: PanesState, pane: PaneName, width: number): readonly ScreenRow[] {
  const { rows, trouble } = state[pane]
  const { source } = state.setting
  if (trouble !== null) return fold(trouble, width).map((text) => ({ text, ink: 'danger' }))
  if (rows === null) return [{ text: 'looking ...', ink: 'faint' }]
  if (rows.length > 0)
    return wrap('Nothing matches the filter; Esc clears it.', width).map((text) => ({ text }))
  const text = pane === 'images' ? `No images at ${source}.` : 'No disks were found.'
  return [...fold(text, width), 'Press r to look again.'].map((line) => ({ text: line }))
}

/** At blanks; an address, which has none, at any character. */
const fold = (text: string, width: number): readonly string[] =>
  wrap(printable(text), width).flatMap((line) =>
    Array.from({ length: Math.max(1, Math.ceil(line.length / width)) }, (_, at) =>
      line.slice(at * width, (at + 1) * width),
    ),
  )

export function renderMarked(state: PanesState, width: number, { ink, unicode }: PaneStyle) {
  const image = findMarked(state, 'images')
  const disk = findMarked(state, 'disks')
  const fit = (text: string) => clip(text, width, { cut: 'end', unicode })
  const labels = [
    ['Image', image === null ? 'none chosen' : (image.words[0] ?? '')],
    ['Disk', disk === null ? 'none chosen' : (disk.words[0] ?? '')],
  ] as const
  const isRefused = [image, disk].some((row) => row !== null && row.refusal !== null)
  const last = image?.words[1] ?? disk?.words[1] ?? ''
  return [
    ...labels.map(([label, text]) => fit(` ${label.padEnd(6)} ${text}`)),
    (isRefused ? ink.danger : ink.faint)(fit(`        ${last}`)),
  ]
}

interface ScreenRow {
  /** Printable; cut at its end where it is too long. */
  readonly text: string
  readonly ink?: keyof Ink
}

export interface PaneStyle {
  readonly ink: Ink
  readonly unicode: boolean
}

interface PaneRoom {
  readonly width: number
  /** The frame included. */
  readonly height: number
}

/** Left and right together. */
export const BORDER_WIDTH = 4

/** Brackets mark the pane that has the keys, as colours may be off. */
export function renderPaneBox(
  title: string,
  lines: readonly ScreenRow[],
  { width, height }: PaneRoom,
  isActive: boolean,
  { ink, unicode }: PaneStyle,
): readonly string[] {
  const [corner, across, down] = unicode ? ['┌┐└┘', '─', '│'] : ['++++', '-', '|']
  const [topLeft, topRight, bottomLeft, bottomRight] = corner
  const dye = isActive ? ink.here : ink.faint
  const inner = Math.max(1, width - BORDER_WIDTH)
  const name = clip(title, inner - 2, { cut: 'middle', unicode })
  const shown = isActive ? `[ ${name} ]` : `${across} ${name} ${across}`
  const rest = across.repeat(Math.max(0, width - 2 - displayWidth(shown)))
  const rows = Array.from({ length: Math.max(0, height - 2) }, (_, row) => lines[row])
  return [
    dye(`${topLeft}${shown}${rest}${topRight}`),
    ...rows.map((line) => {
      const text = pad(clip(line?.text ?? '', inner, { cut: 'end', unicode }), inner)
      const dyed = line?.ink === undefined ? text : ink[line.ink](text)
      return `${dye(down)} ${dyed} ${dye(down)}`
    }),
    dye(`${bottomLeft}${across.repeat(width - 2)}${bottomRight}`),
  ]
}

interface DialogRoom {
  /** Columns within the frame. */
  readonly width: number
  readonly height: number
  /** Since the flash began. */
  readonly seconds: number
}

interface DialogView {
  readonly title: string
  readonly lines: readonly ScreenRow[]
}

type Drawn = Dialog & { readonly room: DialogRoom; readonly style: PaneStyle }

const VIEWS: Cases<'kind', Drawn, DialogView> = {
  help: ({ room }) => ({ title: 'Help', lines: renderHelp(room.width) }),
  checking: ({ choice, room }) => ({
    title: 'Checking the image and the disk',
    lines: [...renderChoice(choice, room.width), BLANK, { text: 'checking ...', ink: 'faint' }],
  }),
  confirm: (dialog) => renderConfirm(dialog),
  flash: (dialog) => renderFlash(dialog),
  ended: (dialog) => renderEnd(dialog),
}

export const renderDialog = (dialog: Dialog, room: DialogRoom, style: PaneStyle): DialogView =>
  decideCase(VIEWS, 'kind', { ...dialog, room, style })

const BLANK: ScreenRow = { text: '' }

const lines = (text: string, width: number, ink?: ScreenRow['ink']): readonly ScreenRow[] =>
  wrap(printable(text), width).map((line) => ({
    text: line,
    ...(ink === undefined ? {} : { ink }),
  }))

function field(name: string, texts: readonly string[], width: number): readonly ScreenRow[] {
  const wrapped = texts.flatMap((text) => wrap(printable(text), Math.max(10, width - 8)))
  return wrapped.map((text, index) => ({ text: `${(index === 0 ? name : '').padEnd(8)}${text}` }))
}

const renderChoice = ({ image, disk }: ChosenFlash, width: number): readonly ScreenRow[] => [
  ...field('Image', [image.name], width),
  ...field('Disk', [`${disk.path}: ${renderDevice(disk.device)}`], width),
]

function renderConfirm({
  choice: { image, disk },
  checked,
  room: { width, height },
  style,
}: Extract<Drawn, { kind: 'confirm' }>): DialogView {
  const { findings, reasons } = checked
  const head = [
    ...field('Image', renderSource(image, findings), width),
    BLANK,
    ...field('Disk', [`${disk.path}: ${renderDevice(disk.device)}`], width).map(
      (line): ScreenRow => ({
        ...line,
        ink: 'strong',
      }),
    ),
    BLANK,
  ]
  if (reasons.length > 0) {
    const rejected = reasons.flatMap((reason) => lines(reason, width, 'danger'))
    return { title: 'This cannot be flashed', lines: [...head, ...rejected] }
  }
  if (height < SHORT) return { title: `Erase ${disk.path}?`, lines: renderShort(image, disk) }
  const losses = layOutLosses(checked.disk.parts, width - 2, style.unicode)
  const warning: ScreenRow = {
    text: printable(`Everything on ${disk.path} will be lost:`),
    ink: 'danger',
  }
  // Drops blank lines first, then the last of the losses; never the disk.
  const spare = height - head.length - 1
  const shown = spare >= Math.min(3, losses.length) ? head : head.filter((line) => line !== BLANK)
  const rest = fitLines(losses, Math.max(1, height - shown.length - 1))
  return {
    title: 'Erase this disk and write the image?',
    lines: [
      ...shown,
      warning,
      ...rest.map((text): ScreenRow => ({ text: `  ${text}`, ink: 'strong' })),
    ],
  }
}

/** With fewer rows, image, disk and losses do not fit at once. */
const SHORT = 6

/** Two rows; the path first, whole. */
const renderShort = (image: PaneImage, { path, device }: SurveyedDisk): readonly ScreenRow[] => [
  { text: printable(`all on ${path} (${renderDevice(device)})`), ink: 'danger' },
  { text: printable(`for ${image.name}`) },
]

function renderFlash({
  choice,
  running: { phase, progress, storedBytes },
  cancel,
  room: { width, seconds },
  style: { unicode },
}: Extract<Drawn, { kind: 'flash' }>): DialogView {
  const bar =
    progress === null
      ? ''
      : renderBar(progress, { columns: width, unicode, storedBytes }).trimStart()
  const now = cancel === 'yes' ? 'cancelling ...' : renderWaiting(phase, progress)
  const question: readonly ScreenRow[] =
    cancel === 'asked'
      ? lines('Cancel the flash? The disk will not boot until you flash it again.', width, 'danger')
      : []
  return {
    title: 'Flashing',
    lines: [
      ...renderChoice(choice, width),
      BLANK,
      { text: bar, ink: 'strong' },
      BLANK,
      { text: printable(now) },
      { text: renderReadSoFar(progress, storedBytes, renderDuration(seconds)), ink: 'faint' },
      BLANK,
      ...question,
    ],
  }
}

function renderEnd({
  choice,
  outcome,
  room: { width },
}: Extract<Drawn, { kind: 'ended' }>): DialogView {
  const head = [...renderChoice(choice, width), BLANK]
  if (outcome.kind === 'done') {
    return {
      title: 'The disk is ready',
      lines: [...head, ...lines(renderSuccess(outcome), width, 'good')],
    }
  }
  const { kind, reason, hint, leaves } = outcome
  const isCancelled = kind === 'cancelled'
  return {
    title: isCancelled ? 'Cancelled' : 'The flash failed',
    lines: [
      ...head,
      ...(isCancelled ? [] : lines(reason, width, 'danger')),
      ...(hint === null ? [] : lines(hint, width)),
      BLANK,
      ...lines(leaves, width, 'strong'),
    ],
  }
}

const KEYS = [
  ['Tab, left, right', 'the other pane'],
  ['Up, Down, PgUp, PgDn', 'mark another row'],
  ['Enter', 'go to the disks, then to the confirmation'],
  ['f', 'flash the marked image to the marked disk, after a confirmation'],
  ['/', 'filter the pane; Enter keeps the filter, Esc clears it'],
  ['r, F5', 'refresh images and disks'],
  ['d', 'notify the server again, if that failed after a flash'],
  ['q, F10', 'quit'],
] as const

const SIGNS =
  '> marks the current row, and * the choice in the other pane. A row with - cannot be chosen; go to it to see why.'

const renderHelp = (width: number): readonly ScreenRow[] => [
  ...wrapColumns(KEYS, width).map((text) => ({ text })),
  BLANK,
  ...lines(SIGNS, width),
]
