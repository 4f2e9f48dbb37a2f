/** The dialogs in the place of the panes: help, the question before the first byte, progress, the end. Pure. */
import { type Cases, decideCase } from '#kit/foundation/cases.ts'
import { renderDevice, renderSource } from '#flasher/text/rules/flash-text.ts'
import { renderReadSoFar, renderSuccess, renderWaiting } from '#flasher/text/rules/progress-text.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDuration } from '#kit/foundation/size.ts'
import { renderBar } from '#flasher/text/progress.ts'
import { layOutLosses } from '#flasher/text/loss-table.ts'
import { fitLines, wrap, wrapColumns } from '#kit/terminal/text/columns.ts'
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'
import type { ChosenFlash, Dialog, PaneImage } from '../flow/state.ts'
import type { ScreenRow, PaneStyle } from './panes.ts'

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
    title: 'Looking at the image and the disk',
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
      ? lines(
          'Cancel the flash? What is half written cannot boot, and the disk has to be flashed again.',
          width,
          'danger',
        )
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
  ['Enter', 'from the images to the disks, then to the question'],
  ['f', 'flash the marked image to the marked disk; asks before it erases anything'],
  ['/', 'filter the pane; Enter keeps the filter, Esc clears it'],
  ['r, F5', 'look for images and disks again'],
  ['d', 'notify the server once more, if it could not be notified after a flash'],
  ['q, F10', 'quit'],
] as const

const SIGNS =
  'The row with > has the keys, * marks the choice of the other pane, and a row with - cannot be chosen; mark it to see why.'

const renderHelp = (width: number): readonly ScreenRow[] => [
  ...wrapColumns(KEYS, width).map((text) => ({ text })),
  BLANK,
  ...lines(SIGNS, width),
]
