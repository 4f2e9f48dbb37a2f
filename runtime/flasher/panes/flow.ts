/** The terminal UI as a state machine: what it holds, and what follows from each key and from each thing found out. Pure. */
import { type SurveyedDisk, isSameDisk } from '#engine/disk/rules/disk.ts'
import type { FlashEvent, FlashFindings, WriteProgress } from '#engine/flash/rules/flash-plan.ts'
import type { FlashOutcome } from '#engine/flash/rules/run-report.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { type Cases, decideCase } from '#kit/foundation/cases.ts'
import { nextProgress, renderDevice } from '#flasher/text/rules/flash-text.ts'
import { isStoredRaw } from '#engine/image/rules/format.ts'
import { offerDisk, renderDiskCells, summariseParts } from '#flasher/text/rules/disk-offer.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderSize } from '#kit/foundation/size.ts'

export interface PaneImage {
  readonly name: string
  /** A path or a URL, as `sources.open` takes it. */
  readonly location: string
  /** Null: none that flasher writes. */
  readonly format: ImageFormat | null
  /** As stored; null: the server does not say. */
  readonly sizeBytes: number | null
}

export type PaneName = 'images' | 'disks'

export interface PaneList<Row> {
  /** Null: still being looked for. */
  readonly rows: readonly Row[] | null
  readonly trouble: string | null
}

export interface ChosenFlash {
  readonly image: PaneImage
  readonly disk: SurveyedDisk
}

export interface Checked {
  /** Null: the image could not be opened. */
  readonly findings: FlashFindings | null
  /** What speaks against the flash. */
  readonly reasons: readonly string[]
  /** With everything that would be lost. */
  readonly disk: SurveyedDisk
}

interface Running {
  readonly phase: string
  readonly progress: WriteProgress | null
  /** Size of the stored image; null: unknown. */
  readonly storedBytes: number | null
}

export type Dialog =
  | { readonly kind: 'help' }
  | { readonly kind: 'checking'; readonly choice: ChosenFlash }
  | { readonly kind: 'confirm'; readonly choice: ChosenFlash; readonly checked: Checked }
  | {
      readonly kind: 'flash'
      readonly choice: ChosenFlash
      readonly running: Running
      /** `asked`: the question is shown. */
      readonly cancel: 'no' | 'asked' | 'yes'
    }
  | { readonly kind: 'ended'; readonly choice: ChosenFlash; readonly outcome: FlashOutcome }

export interface Status {
  readonly tone: 'plain' | 'good' | 'danger'
  readonly text: string
}

/** `off`: none is due. */
export type DoneSignal =
  | { readonly kind: 'off' | 'sending' | 'sent' }
  | { readonly kind: 'failed'; readonly reason: string }

export interface PanesSetting {
  readonly version: string
  /** A folder, or the address of the server's list. */
  readonly source: string
  /** `http://host:port`; null: standalone. */
  readonly server: string | null
  /** Lower case, colons; null: no done signal is sent. */
  readonly mac: string | null
  readonly address: string | null
  readonly isRoot: boolean
}

export interface PanesState {
  readonly setting: PanesSetting
  readonly focus: PaneName
  readonly images: PaneList<PaneImage>
  readonly disks: PaneList<SurveyedDisk>
  /** An image's location, a disk's path; null: none. */
  readonly marked: Readonly<Record<PaneName, string | null>>
  readonly filter: Readonly<Record<PaneName, string>>
  readonly isTyping: boolean
  readonly dialog: Dialog | null
  readonly status: Status | null
  readonly signal: DoneSignal
  /** The program ends once the server was notified. */
  readonly isLeaving: boolean
}

export type Input =
  | { readonly input: 'key'; readonly key: string; readonly pageRows: number }
  | { readonly input: 'images'; readonly listing: PaneList<PaneImage> }
  | { readonly input: 'disks'; readonly listing: PaneList<SurveyedDisk> }
  | { readonly input: 'checked'; readonly checked: Checked }
  | {
      readonly input: 'event'
      readonly event: FlashEvent
      readonly storedBytes: number | null
    }
  | { readonly input: 'ended'; readonly outcome: FlashOutcome }
  /** Null: the server was notified. */
  | { readonly input: 'signalled'; readonly refusal: string | null }

export type Effect =
  | { readonly effect: 'list-images' | 'list-disks' | 'send-done' | 'redraw' | 'quit' }
  | { readonly effect: 'check' | 'flash'; readonly choice: ChosenFlash }
  /** Of running checks, or a running flash. */
  | { readonly effect: 'cancel' }

export interface PaneStep {
  readonly state: PanesState
  readonly effects: readonly Effect[]
}

const stay = (state: PanesState): PaneStep => ({ state, effects: [] })

const LOOKING = { rows: null, trouble: null } as const

const REFRESHING: Status = { tone: 'plain', text: 'Looking again ...' }

export const openState = (
  setting: PanesSetting,
  {
    reason,
    unsent,
  }: {
    /** Null: the person asked for it. */
    readonly reason: string | null
    /** Why the server was not notified of an earlier flash; absent: it was, or there was none. */
    readonly unsent?: string | undefined
  },
): PaneStep => ({
  state: {
    setting,
    focus: 'images',
    images: LOOKING,
    disks: LOOKING,
    marked: { images: null, disks: null },
    filter: { images: '', disks: '' },
    isTyping: false,
    dialog: null,
    status: reason === null ? null : { tone: 'danger', text: reason },
    signal: unsent === undefined ? { kind: 'off' } : { kind: 'failed', reason: unsent },
    isLeaving: false,
  },
  effects: [{ effect: 'list-images' }, { effect: 'list-disks' }],
})

// The terminal UI as a state machine: what follows from each key and from each thing found out. Pure.

type PanesInput = Input & { readonly from: PanesState }

const NEXT: Cases<'input', PanesInput, PaneStep> = {
  key: ({ from, key, pageRows }) =>
    from.dialog === null
      ? pressInPanes(from, key, pageRows)
      : pressInDialog(from, from.dialog, key),
  images: ({ from, listing }) => stay(takeImages(from, listing)),
  disks: ({ from, listing }) => stay(takeDisks(from, listing)),
  checked: ({ from, checked }) =>
    stay(
      from.dialog?.kind === 'checking'
        ? { ...from, dialog: { kind: 'confirm', choice: from.dialog.choice, checked } }
        : from,
    ),
  event: ({ from, event, storedBytes }) => stay(takeEvent(from, event, storedBytes)),
  ended: ({ from, outcome }) => {
    if (from.dialog?.kind !== 'flash') return stay(from)
    const state: PanesState = {
      ...from,
      dialog: { kind: 'ended', choice: from.dialog.choice, outcome },
      status: null,
    }
    const after = outcome.kind === 'done' ? signalDone(state) : stay(state)
    return { ...after, effects: [...after.effects, { effect: 'list-disks' }] }
  },
  signalled: ({ from, refusal }) => {
    const isSent = refusal === null
    const state: PanesState = {
      ...from,
      signal: isSent ? { kind: 'sent' } : { kind: 'failed', reason: refusal },
      isLeaving: from.isLeaving && isSent,
    }
    return { state, effects: state.isLeaving ? [{ effect: 'quit' }] : [] }
  },
}

export const next = (from: PanesState, input: Input): PaneStep =>
  decideCase(NEXT, 'input', { ...input, from })

function takeEvent(from: PanesState, event: FlashEvent, storedBytes: number | null): PanesState {
  if (from.dialog?.kind !== 'flash') return from
  const running = { ...nextProgress(event, from.dialog.running), storedBytes }
  return { ...from, dialog: { ...from.dialog, running } }
}

// What each key does while the panes have it. Pure.

const MOVES = [
  'up',
  'down',
  'pageup',
  'pagedown',
  'home',
  'end',
] as const satisfies readonly MarkMove[]

/** The next key removes the message of the one before. */
function pressInPanes(from: PanesState, key: string, pageRows: number): PaneStep {
  const state: PanesState = { ...from, status: null }
  if (state.isTyping) return type(state, key, pageRows)
  const move = MOVES.find((name) => name === key)
  if (move !== undefined) return stay(moveMark(state, move, pageRows))
  const act = KEYS.get(key.toLowerCase())
  return act === undefined ? stay(from) : act(state)
}

const otherPane = ({ focus }: PanesState): PaneName => (focus === 'images' ? 'disks' : 'images')

/** Marks a row only once a person is in the pane, so that no disk is marked by nobody. */
const goTo = (state: PanesState, focus: PaneName): PaneStep =>
  stay(ensureMark({ ...state, focus }, focus))

const quit = (state: PanesState): PaneStep =>
  state.signal.kind === 'sending' && !state.isLeaving
    ? stay({ ...state, isLeaving: true })
    : { state, effects: [{ effect: 'quit' }] }

const refresh = (state: PanesState): PaneStep => ({
  state: { ...state, status: REFRESHING },
  effects: [{ effect: 'list-images' }, { effect: 'list-disks' }],
})

const help = (state: PanesState): PaneStep => stay({ ...state, dialog: { kind: 'help' } })

function flash(state: PanesState): PaneStep {
  const choice = decideChoice(state)
  const refusal = typeof choice === 'string' ? choice : null
  const text = state.setting.isRoot ? refusal : ROOT
  if (typeof choice === 'string' || text !== null) {
    return stay({ ...state, status: { tone: 'danger', text: text ?? '' } })
  }
  return {
    state: { ...state, dialog: { kind: 'checking', choice } },
    effects: [{ effect: 'check', choice }],
  }
}

export const ROOT = 'Writing to a disk needs root. Start flasher-tui with sudo.'

function enter(state: PanesState): PaneStep {
  if (state.focus === 'disks') return flash(state)
  const refusal = refuseMarkedImage(state)
  return refusal === null
    ? goTo(state, 'disks')
    : stay({ ...state, status: { tone: 'danger', text: refusal } })
}

const KEYS: ReadonlyMap<string, (state: PanesState) => PaneStep> = new Map([
  ['tab', (state) => goTo(state, otherPane(state))],
  ['left', (state) => goTo(state, 'images')],
  ['right', (state) => goTo(state, 'disks')],
  ['return', enter],
  ['f', flash],
  ['r', refresh],
  ['f5', refresh],
  ['/', (state) => stay({ ...state, isTyping: true })],
  ['escape', (state) => stay(filterBy(state, ''))],
  ['d', (state) => (state.signal.kind === 'failed' ? signalDone(state) : stay(state))],
  ['?', help],
  ['f1', help],
  ['q', quit],
  ['f10', quit],
  ['ctrl-c', quit],
  ['ctrl-d', quit],
  ['ctrl-l', (state) => ({ state, effects: [{ effect: 'redraw' }] })],
])

const MAX_FILTER = 60

function type(state: PanesState, key: string, pageRows: number): PaneStep {
  const filter = state.filter[state.focus]
  const move = MOVES.find((name) => name === key)
  if (move !== undefined) return stay(moveMark(state, move, pageRows))
  if (key === 'ctrl-c') return quit(state)
  if (key === 'escape') return stay(filterBy({ ...state, isTyping: false }, ''))
  if (key === 'return') return stay({ ...state, isTyping: false })
  if (key === 'tab') return goTo({ ...state, isTyping: false }, otherPane(state))
  if (key === 'backspace') return stay(filterBy(state, [...filter].slice(0, -1).join('')))
  const isText = [...key].length === 1 && filter.length < MAX_FILTER
  return stay(isText ? filterBy(state, filter + key) : state)
}

/** A mark that the filter hides goes to the first row that is left. */
function filterBy(state: PanesState, text: string): PanesState {
  const { focus, filter } = state
  const filtered = { ...state, filter: { ...filter, [focus]: text } }
  return findMarked(filtered, focus) === null ? ensureMark(filtered, focus) : filtered
}

// What each key does while a dialog has it. Pure.

const close = (state: PanesState): PaneStep => stay({ ...state, dialog: null })

const LEAVE: ReadonlySet<string> = new Set(['escape', 'return', 'n', 'N', 'q', 'ctrl-c'])
const BREAK_OFF: ReadonlySet<string> = new Set(['escape', 'c', 'q', 'ctrl-c'])
/** A second Ctrl-C means yes. */
const CANCEL: ReadonlySet<string> = new Set(['y', 'Y', 'ctrl-c'])

interface Press {
  readonly from: PanesState
  readonly key: string
}

const PRESS: Cases<'kind', Dialog & Press, PaneStep> = {
  help: ({ from }) => close(from),
  checking: ({ from, key }) =>
    BREAK_OFF.has(key)
      ? { state: { ...from, dialog: null }, effects: [{ effect: 'cancel' }] }
      : stay(from),
  confirm: (dialog) => pressInConfirm(dialog),
  flash: (dialog) => pressInFlash(dialog),
  ended: ({ from, key, outcome }) => {
    if (key === 'd' && from.signal.kind === 'failed') return signalDone(from)
    if (!LEAVE.has(key) && key !== ' ') return stay(from)
    const status =
      outcome.kind === 'done' ? ({ tone: 'good', text: 'Flash completed.' } as const) : null
    return stay({ ...from, dialog: null, status })
  },
}

const pressInDialog = (from: PanesState, dialog: Dialog, key: string): PaneStep =>
  key === 'ctrl-l'
    ? { state: from, effects: [{ effect: 'redraw' }] }
    : decideCase(PRESS, 'kind', { ...dialog, from, key })

const BEGIN: Running = { phase: 'opening the image ...', progress: null, storedBytes: null }

/** One key alone erases a disk, and only after every check has passed. */
function pressInConfirm({
  from,
  key,
  choice,
  checked,
}: Extract<Dialog, { kind: 'confirm' }> & Press): PaneStep {
  if ((key === 'y' || key === 'Y') && checked.reasons.length === 0) {
    return {
      state: {
        ...from,
        dialog: { kind: 'flash', choice, running: BEGIN, cancel: 'no' },
        signal: { kind: 'off' },
      },
      effects: [{ effect: 'flash', choice }],
    }
  }
  return LEAVE.has(key) ? close(from) : stay(from)
}

function pressInFlash({
  from,
  key,
  ...dialog
}: Extract<Dialog, { kind: 'flash' }> & Press): PaneStep {
  const set = (cancel: typeof dialog.cancel): PanesState => ({
    ...from,
    dialog: { ...dialog, cancel },
  })
  if (dialog.cancel === 'no') return stay(BREAK_OFF.has(key) ? set('asked') : from)
  if (dialog.cancel === 'yes') return stay(from)
  return CANCEL.has(key) ? { state: set('yes'), effects: [{ effect: 'cancel' }] } : stay(set('no'))
}

const signalDone = (state: PanesState): PaneStep =>
  state.setting.server === null || state.setting.mac === null
    ? stay(state)
    : { state: { ...state, signal: { kind: 'sending' } }, effects: [{ effect: 'send-done' }] }

// The rows of both panes: which ones the filter leaves, and why some cannot be chosen. Pure.

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
    const refusal = refuseImage(image)
    const why = refusal === null ? [] : [`Cannot be chosen: ${refusal}.`]
    return {
      key: location,
      cells: [name, format ?? '?', size].map(printable),
      refusal,
      words: [`${name}: ${facts}`, ...why].map(printable),
    }
  })

function refuseImage({ format, sizeBytes }: PaneImage): string | null {
  if (format === null) return 'flasher cannot write this format'
  return sizeBytes === 0 ? 'the file is empty' : null
}

const diskRows = (state: PanesState): readonly PaneRow[] =>
  (state.disks.rows ?? []).map((disk) => renderDisk(disk, findImage(state)))

function renderDisk(disk: SurveyedDisk, image: PaneImage | null): PaneRow {
  const { path, device, parts } = disk
  const offer = offerDisk(disk, image === null ? null : factsOf(image))
  const why =
    offer.refusal === null
      ? `On it now: ${summariseParts(parts)}`
      : device.uses.length > 0
        ? `In use: ${offer.refusal}.`
        : `${offer.refusal.charAt(0).toUpperCase()}${offer.refusal.slice(1)}.`
  const words = [`${path}: ${renderDevice(device)}`, why]
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
function refuseMarkedImage(state: PanesState): string | null {
  const [image, row] = [findImage(state), findMarked(state, 'images')]
  return image === null || row === null || row.refusal === null
    ? null
    : `${printable(image.name)} cannot be chosen: ${row.refusal}.`
}

/** A sentence where nothing is decided yet, or cannot be. */
export function decideChoice(state: PanesState): ChosenFlash | string {
  const [image, disk] = [findImage(state), findDisk(state)]
  const rows = [findMarked(state, 'images'), findMarked(state, 'disks')] as const
  if (image === null || rows[0] === null) return 'Choose an image first.'
  if (disk === null || rows[1] === null) return 'Choose a disk first. Tab goes to the disks.'
  const refusal = refuseMarkedImage(state)
  if (refusal !== null) return refusal
  if (rows[1].refusal !== null) return `${disk.path} cannot be chosen: ${rows[1].refusal}.`
  return { image, disk }
}

type MarkMove = 'up' | 'down' | 'pageup' | 'pagedown' | 'home' | 'end'

/** Every row can be marked: the reason why it cannot be chosen is shown for the marked one. */
function moveMark(state: PanesState, move: MarkMove, pageRows: number): PanesState {
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
function ensureMark(state: PanesState, pane: PaneName): PanesState {
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

const REFRESHED: Status = { tone: 'plain', text: 'Lists refreshed.' }

/** No other disk replaces a marked one that is gone: the person may be about to press a key. */
export function takeDisks(state: PanesState, disks: PaneList<SurveyedDisk>): PanesState {
  const marked = state.marked.disks
  const find = ({ rows }: PaneList<SurveyedDisk>) => rows?.find(({ path }) => path === marked)
  const [before, now] = [find(state.disks), find(disks)]
  const listed = { ...state, disks }
  if (marked === null) return listed
  const isSame =
    now !== undefined &&
    (before === undefined || isSameDisk(before.device.identity, now.device.identity))
  if (isSame) return listed
  const text = `${marked} was removed or replaced. Choose a disk again.`
  return { ...mark(listed, 'disks', null), status: { tone: 'danger', text } }
}
