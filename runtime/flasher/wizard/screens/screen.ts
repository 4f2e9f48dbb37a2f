/** What every screen of the wizard is made of: header, list and prompt, help, and how its question is asked. */
import {
  renderChoices,
  type Choices,
  pageRowsOf,
  renderMenu,
  type Menu,
  type MenuKey,
} from '#kit/terminal/prompt/menu.ts'
import {
  type FramedChoices,
  type Question,
  stillSubject,
  type Asked,
  type Subject,
  type AskDependencies,
  HELP_KEY,
} from '#kit/terminal/prompt/question.ts'
import { clip, pad, spread, wrap } from '#kit/terminal/text/columns.ts'
import type { Frame, Size } from '#kit/terminal/prompt/painter.ts'
import { type WizardState, type WizardStep, SCREENS, stepsOf, isCapture } from '../flow/flow.ts'
import type { LoadedCatalog, CatalogRefusal } from '#engine/catalog/rules/catalog-source.ts'
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'
import type { ImageRow } from '#engine/image/rules/image.ts'
import type { Result } from '#kit/foundation/result.ts'
import type { Flasher } from '#engine/flash/flasher.ts'
import type { Environment } from '#kit/host/shell.ts'
import type { RemoteDependencies } from '#flasher/order/remote-hooks.ts'
import type { Hooks, DiskChoice, MachineIdentity } from '#flasher/order/rules/flash-choice.ts'
import { displayWidth, printable } from '#kit/foundation/printable.ts'
import type { Ink, TerminalStyle } from '#kit/terminal/text/terminal-style.ts'
import { renderDestination } from '#engine/capture/rules/capture.ts'

export interface ScreenView {
  readonly menu: Menu
  /** Between header and list; cut to the width, and to `room` rows. */
  intro(size: Size, room: number): readonly string[]
}

/** The prompt and the blank line before it. */
const FOOT_ROWS = 4
const rowsBelow = (above: readonly string[], { rows }: Size) =>
  Math.max(1, rows - above.length - FOOT_ROWS)

/** For a longer list the introduction is cut short. */
const MIN_ROWS = 4

export function createQuestion(state: WizardState, view: ScreenView, drawing: Drawing): Question {
  const { menu } = view
  const top = (size: Size) => {
    const header = renderHeader(state, drawing, size)
    const least = menu.rows.length === 0 ? 0 : MIN_ROWS
    const room = Math.max(0, size.rows - header.length - FOOT_ROWS - least)
    return [...header, ...view.intro(size, room).slice(0, room)]
  }
  return {
    menu,
    help: (size) => renderHelp(state, { kind: kindOf(menu), keys: menu.keys }, drawing, size),
    pageRows: (size) => pageRowsOf(rowsBelow(top(size), size)),
    frame(menuState, size) {
      const above = top(size)
      const room = { ...drawing, columns: size.columns, rows: rowsBelow(above, size) }
      return appendCode(renderMenu(above, menu, menuState, room), drawing, size)
    },
  }
}

/** What is asked comes first: the code takes what is left. */
function appendCode(frame: Frame, { code, tty }: Drawing, size: Size): Frame {
  if (code === undefined || !tty) return frame
  const rows = size.rows - frame.lines.length
  return { ...frame, lines: [...frame.lines, ...code({ ...size, rows })] }
}

function kindOf({ rows, takesText, takesSeveral }: Menu): HelpKind {
  if (takesText === true) return 'text'
  if (rows.length === 0) return 'letters'
  return takesSeveral === true ? 'several' : 'list'
}

export interface NextChoice {
  readonly key: string
  readonly words: readonly string[]
  /** The first one begins with the key in brackets, if it can be chosen. */
  readonly cells: readonly string[]
  readonly refusal: string | null
}

export const nextChoice = (
  key: string,
  words: readonly string[],
  [does = '', ...more]: readonly string[],
): NextChoice => ({ key, words, cells: [`[${key}] ${does}`, ...more], refusal: null })

/** Beside the choices: message, titles, a blank line, what is wrong, keys. */
const CHOICE_ROWS = 5

interface ChoiceView extends Pick<Choices<string>, 'message' | 'columns'> {
  /** For terminals that cannot redraw. */
  readonly prompt: string
  readonly choices: readonly NextChoice[]
  intro(size: Size): readonly string[]
}

function createChoice(state: WizardState, view: ChoiceView, drawing: Drawing): Question {
  const { message, columns, prompt, intro } = view
  const free = view.choices.filter(({ refusal }) => refusal === null)
  const menu: Menu = {
    prompt,
    columns,
    rows: view.choices.map(({ cells, refusal }) => ({
      cells: refusal === null ? cells : [cells[0] ?? '', `(${refusal})`],
      refusal,
    })),
    keys: free.map(({ key, words }) => ({ key, words, does: null })),
    enter: free[0]?.key ?? null,
  }
  const list = createQuestion(
    state,
    { menu, intro: (size) => [...intro(size), message, ''] },
    drawing,
  )
  const above = (size: Size) => {
    const header = renderHeader(state, drawing, size)
    const room = size.rows - header.length - view.choices.length - CHOICE_ROWS
    return [...header, ...intro(size).slice(0, Math.max(0, room))]
  }
  const choices = view.choices.map(({ key, cells, refusal }) => ({ value: key, cells, refusal }))
  const framed = { message, columns, choices, hasHelp: true } as const
  return {
    ...list,
    help: (size) => renderHelp(state, { kind: 'choices', keys: [] }, drawing, size),
    choices: layOutChoices(framed, above, drawing),
  }
}

const layOutChoices = (
  choices: Choices<string>,
  above: (size: Size) => readonly string[],
  drawing: Drawing,
): FramedChoices => ({
  ...choices,
  above,
  frame(size) {
    const lines = above(size)
    const cursor = { row: lines.length, column: 0 }
    return { lines: [...lines, ...renderChoices(choices, size.columns, drawing)], cursor }
  },
})

export function layOutScreen(
  state: WizardState,
  body: readonly string[],
  drawing: Drawing,
  size: Size,
): Frame {
  const header = renderHeader(state, drawing, size)
  const room = size.rows - header.length
  // The newest is at the end.
  const shown = body.length <= room ? body : body.filter((line) => line !== '').slice(-room)
  return { lines: [...header, ...shown], cursor: null }
}

type ScreenCode = (state: WizardState, body: readonly string[], size: Size) => readonly string[]

/** Loads the way to the machine's page while the screen is shown; `onReady` draws again. */
export function openScreenCode(drawing: Drawing, onReady: () => void): ScreenCode {
  let render: MachineCode | null = null
  async function load() {
    render = await loadMachineCode(drawing)
    if (render !== null) onReady()
  }
  void load()
  return (state, body, size) => {
    if (render === null) return body
    const rows = size.rows - renderHeader(state, drawing, size).length - body.length
    return [...body, ...render({ ...size, rows })]
  }
}

/** Null: no server or MAC is known, or the terminal cannot redraw. */
export async function loadMachineCode(drawing: Drawing): Promise<MachineCode | null> {
  const { server, mac } = drawing.setting.identity
  if (!drawing.tty || server === null || mac === null) return null
  try {
    const { createMachineCode, findMachineAddress } = await import('./machine-code.ts')
    const address = findMachineAddress({ server, mac })
    return address === null ? null : createMachineCode(address, drawing)
  } catch {
    // The screen still says what matters.
    return null
  }
}

export const fitted = (
  lines: readonly string[],
  { columns }: Size,
  { unicode }: Pick<Drawing, 'unicode'>,
): readonly string[] => lines.map((line) => clip(line, columns - 1, { cut: 'end', unicode }))

/** A long text goes on in the next line, up to three. */
export const inFull = (texts: readonly string[], { columns }: Size): readonly string[] =>
  texts.flatMap((text) => renderNotice(text, columns - 1))

// Asks the question of a screen, also while its choices are still loading; the letters that mean the same everywhere.

export const backKey = (does: string): MenuKey => ({ key: 'b', words: ['back'], does })
/** `b` also answers a question that `y` affirms. */
export const NO_KEY: MenuKey = { key: 'b', words: ['back', 'n', 'no'], does: 'back' }
export const REFRESH_KEY: MenuKey = { key: 'r', words: ['refresh'], does: 'refresh' }
export const QUIT_KEY: MenuKey = { key: 'q', words: ['quit', 'exit'], does: 'quit' }

const KEY_STEPS: Readonly<Record<string, 'back' | 'capture' | 'refresh'>> = {
  b: 'back',
  m: 'capture',
  r: 'refresh',
}

/** Anything but a letter ends the wizard. */
export const stepOf = (asked: Asked): WizardStep => ({
  step: asked.kind === 'key' ? (KEY_STEPS[asked.key] ?? 'quit') : 'quit',
})

export const askStill = (
  state: WizardState,
  view: ScreenView,
  context: WizardContext,
): Promise<Asked> => context.ask(stillSubject(createQuestion(state, view, context.drawing)))

/** Null: the person left. */
export async function askChoice(
  state: WizardState,
  view: ChoiceView,
  context: WizardContext,
): Promise<string | null> {
  const asked = await context.ask(stillSubject(createChoice(state, view, context.drawing)))
  if (asked.kind === 'row') return view.choices[asked.index]?.key ?? null
  return asked.kind === 'key' ? asked.key : null
}

/** `work` calls `changed` when there is more to show, and never rejects. */
export async function askMeanwhile(
  state: WizardState,
  view: () => ScreenView,
  context: WizardContext,
  work: (changed: () => void, signal: AbortSignal) => Promise<unknown>,
): Promise<Asked> {
  const leaving = new AbortController()
  const signal = AbortSignal.any([context.signal, leaving.signal])
  const build = () => createQuestion(state, view(), context.drawing)
  try {
    return await context.ask(createSubject(build, (changed) => work(changed, signal)))
  } finally {
    leaving.abort()
  }
}

/** `start` begins when the question is shown, and never rejects. */
export function createSubject(
  build: () => Question,
  start: (changed: () => void) => Promise<unknown>,
): Subject {
  const listeners = new Set<() => void>()
  let now: Question | null = null
  let settled: Promise<void> | null = null
  const change = () => {
    now = null
    // Listeners come and go while they are called.
    Array.from(listeners).forEach((listener) => listener())
  }
  return {
    now: () => (now ??= build()),
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    settle: () => (settled ??= start(change).then(() => {})),
  }
}

/** The context that every screen of the wizard gets. */
export interface WizardContext extends AskDependencies {
  readonly drawing: Drawing
  /** Aborted when the program is asked to end. */
  readonly signal: AbortSignal
  readonly isRoot: boolean
  readonly env: Environment
  /** Seconds on a steady clock. */
  readonly now: () => number
  /** The catalog of `[d] default`; null: not offered. */
  readonly defaultCatalog: string | null
  /** Refused in words; null: the machine was not booted to be flashed. */
  readonly reboot: (() => Promise<Result<null, string>>) | null
  ask(subject: Subject): Promise<Asked>
  listLocal(): Promise<readonly ImageRow[]>
  loadCatalog(source: string, signal: AbortSignal): Promise<Result<LoadedCatalog, CatalogRefusal>>
  loadHooks(): Promise<Hooks>
  loadRemote(): Promise<RemoteDependencies>
  surveyDisks(): Promise<readonly SurveyedDisk[]>
  /** Where the survey does not know what lies on the partitions. */
  fillContents(disk: SurveyedDisk): Promise<SurveyedDisk>
  /** Once, when an image or a disk is first looked at. */
  loadFlasher(): Promise<Flasher>
}

// The top of every screen: the program, this machine, the step, and what is chosen so far. Pure.

const STEPS = {
  catalog: 'Catalog',
  image: 'Image',
  disk: 'Disk',
  flash: 'Flash',
  capture: 'Capture',
  reboot: 'Reboot',
} as const

const LABELS = {
  imageRoot: 'Images in:',
  catalog: 'Catalog:',
  image: 'Image:',
  disk: 'Disk:',
} as const

interface WizardSetting {
  readonly version: string
  readonly identity: MachineIdentity
  readonly imageRoot: string
  readonly reboots: boolean
}

export interface Drawing extends Pick<TerminalStyle, 'unicode' | 'tty'> {
  readonly setting: WizardSetting
  readonly ink: Ink
  /** Below what is asked; absent: no server is known. */
  readonly code?: MachineCode
}

/** The way to the machine's page on a phone, in the rows that are left; empty: no room. */
type MachineCode = (left: Size) => readonly string[]

/** With fewer rows there is only the step. */
const MIN_HEADER_ROWS = 16

/** The log has the whole notice. */
const NOTICE_LINES = 3

function renderHeader(
  state: WizardState,
  { setting, ink, unicode }: Drawing,
  { columns, rows }: Size,
): readonly string[] {
  const { version, identity, imageRoot, reboots } = setting
  const width = columns - 1
  const fit = (text: string) => clip(printable(text), width, { cut: 'middle', unicode })
  const { mac, server, address } = identity
  const right = [mac, address].filter((part) => part !== null).join('  ')
  const left = `flasher ${version}  ${server ?? 'standalone'}`
  const all = stepsOf(state.screen)
  const steps = reboots ? all : all.slice(0, -1)
  const step = steps.indexOf(SCREENS[state.screen].step)
  const titles = steps.map((name) => STEPS[name])
  const title = titles.at(step) ?? ''
  const at = step === -1 ? steps.length : step + 1
  const count = ` ${at} of ${steps.length}`
  const trail = titles.map((name) => (name === title ? `[${name}]` : name)).join(' > ')
  const where = [
    ink.strong(spread(fit(left), printable(right), width, unicode)),
    ink.here(title) + ink.faint(spread(count, trail, width - title.length, unicode)),
  ]
  const notice = state.notice === null ? [] : renderNotice(state.notice, width).map(ink.danger)
  if (rows < MIN_HEADER_ROWS) return [...where, ...notice]
  return [
    ...where,
    fit(labelled('imageRoot', imageRoot)),
    ...listChosen(state).map(fit),
    ...notice,
    '',
  ]
}

function listChosen(state: WizardState): readonly string[] {
  const { source, image, disks, capture } = state
  const disk = disks.length === 0 ? [] : [labelled('disk', disksInWords(disks))]
  if (capture !== null) {
    const { destination } = capture
    return [
      ...disk,
      ...(destination === null ? [] : [labelled('image', renderDestination(destination))]),
    ]
  }
  const chosen = image === null ? [] : [labelled('image', image.name)]
  const skips = state.skipsCatalog && state.screen === 'image'
  const catalog =
    source === null
      ? skips
        ? 'skipped, as this machine has images; [b] opens it'
        : 'none, only images of this machine'
      : `${source}${skips ? ' (given: step 1 is skipped)' : ''}`
  return [labelled('catalog', catalog), ...chosen, ...disk]
}

const labelled = (label: keyof typeof LABELS, value: string) =>
  `${pad(LABELS[label], Math.max(...Object.values(LABELS).map(displayWidth)))} ${value}`

function disksInWords(disks: readonly DiskChoice[]): string {
  const [first, ...more] = disks
  if (first === undefined) return ''
  if (more.length === 0) return first.words === '' ? first.path : `${first.path}, ${first.words}`
  const paths = disks.map(({ path }) => path).join(', ')
  return `${disks.length}: ${paths}`
}

function renderNotice(notice: string, width: number): readonly string[] {
  return wrap(printable(notice), width)
    .slice(0, NOTICE_LINES)
    .map((line) => clip(line, width, { cut: 'end', unicode: false }))
}

const ASKS = {
  catalog:
    'Choose where the images come from: the default catalog, another one, or only this machine. You can also make an image of a disk.',
  source:
    'Type the location of a catalog: a file, an http(s) address, or an oras reference. Enter alone means no catalog.',
  image:
    'Choose the image to write. Images of this machine come first, then those of the catalog. A row that begins with - cannot be chosen; the reason is in brackets.',
  disk: 'Choose the disk to write to. Everything on it will be lost. Tick several to write the image to all of them. A row that begins with - cannot be chosen; the reason is in brackets. Tell equal disks apart by their serial numbers.',
  confirm:
    'Check the image and the disk, and what will be lost. Nothing has been written yet: only y starts the flash.',
  flash:
    'The image is being written, then verified. No input is needed. If you cancel, the disk does not boot.',
  failed:
    'The flash failed; the screen says why, and what is on the disk now. Choose what to do next.',
  done: 'The disk is ready. Choose what to do next.',
  'capture-disk':
    'Choose the disk to make an image of. Nothing is written to it, and it must not be in use. A row that begins with - cannot be chosen; the reason is in brackets.',
  'capture-destination':
    'Type where the image goes: a name for the image folder, a path of a file or folder, or the address of an image cache. .img.zst is added to the name if it is missing.',
  'capture-token': 'Type the one-time token for the upload to the image cache. It is not shown.',
  'capture-confirm':
    'Check the disk, where the image goes, and what is read. Nothing has been written yet: only y starts the capture.',
  'capture-failed':
    'The capture failed or was cancelled; the screen says why. Choose what to do next.',
  'capture-done': 'The image is complete. Choose what to do next.',
} as const

const LETTERS = {
  b: 'back to the step before',
  m: 'capture a disk of this machine',
  r: 'refresh files, catalog or disks',
  y: 'erase the disk and flash it now',
  t: 'turn the first-boot template on or off',
  q: 'quit; nothing more is written',
} as const

const CHOOSE_NUMBER = 'chooses that row; Enter after each input'
const CHOOSE_TEXT = 'chooses the first row with that text'

type HelpKind =
  | 'list'
  | 'several'
  | 'choices'
  | 'plain'
  | 'plainSeveral'
  | 'text'
  | 'letters'
  | 'none'

/** Where no mark can be moved. */
const PLAIN: { readonly [Kind in HelpKind]?: HelpKind } = {
  list: 'plain',
  several: 'plainSeveral',
  choices: 'plain',
}

type KeyRow = readonly [keys: string, does: string]

/** Pages; any key shows the next one, then the screen again. */
export function renderHelp(
  state: WizardState,
  { kind, keys }: { readonly kind: HelpKind; readonly keys: readonly MenuKey[] },
  drawing: Drawing,
  size: Size,
): readonly Frame[] {
  const { ink, unicode, tty } = drawing
  const header = renderHeader(state, drawing, size)
  const width = size.columns - 1
  const words = isCapture(state.screen) ? CAPTURE_WORDS : FLASH_WORDS
  const rows = listKeys(tty ? kind : (PLAIN[kind] ?? kind), keys, unicode, words)
  const left = Math.max(...rows.map(([name]) => displayWidth(name))) + 2
  const lines = [
    ...wrap(kind === 'none' ? words.runs : ASKS[state.screen], width),
    '',
    ...rows.flatMap(([name, does]) =>
      wrap(does, Math.max(10, width - left)).map(
        (line, at) => `${(at === 0 ? name : '').padEnd(left)}${line}`,
      ),
    ),
  ]
  const room = Math.max(1, size.rows - header.length - HELP_FOOT_ROWS)
  const count = Math.ceil(lines.length / room)
  return Array.from({ length: count }, (_, page) => {
    const foot = page + 1 < count ? 'Any key: more help.' : 'Any key: back to the screen.'
    const shown = lines.slice(page * room, (page + 1) * room)
    return { lines: [...header, ...shown, '', ink.faint(foot)], cursor: null }
  })
}

const HELP_FOOT_ROWS = 2

interface HelpWords {
  /** What runs where nothing is asked, and what Ctrl-C does to it. */
  readonly runs: string
  readonly cancel: string
  /** Where the last line of the screen is too short. */
  readonly letters: Readonly<Record<string, string>>
}

const FLASH_WORDS: HelpWords = {
  runs: ASKS.flash,
  cancel: 'cancels the flash',
  letters: LETTERS,
}
const CAPTURE_WORDS: HelpWords = {
  runs: 'The disk is being read into an image. No input is needed. If you cancel, the image is removed.',
  cancel: 'cancels the capture',
  letters: {
    ...LETTERS,
    g: 'clear or keep the identity of this machine in the image',
    y: 'make the image now',
  },
}

function listKeys(
  kind: HelpKind,
  keys: readonly MenuKey[],
  unicode: boolean,
  words: HelpWords,
): readonly KeyRow[] {
  const letters = keys.flatMap(({ key, words: spelled, does }): readonly KeyRow[] =>
    does === null
      ? []
      : [
          [
            [key, ...spelled.slice(0, 1)].join(', '),
            (kind === 'text' ? null : words.letters[key]) ?? does,
          ],
        ],
  )
  const end = kind === 'none' ? words.cancel : 'quits'
  return [...listMoves(kind, unicode), ...letters, ['Ctrl-C', end], [HELP_KEY, 'shows this help']]
}

function listMoves(kind: HelpKind, unicode: boolean): readonly KeyRow[] {
  const arrows = unicode ? '↑ ↓' : 'Up Down'
  const inList: readonly KeyRow[] = [
    [`${arrows} PgUp PgDn`, 'move the mark; Enter chooses the marked row'],
    ['1, 2, ...', 'mark the row with that number; Enter chooses it'],
  ]
  const filter: KeyRow = ['/ and text', 'show only the rows with that text; Esc shows all']
  const moves: Readonly<Record<HelpKind, readonly KeyRow[]>> = {
    list: [...inList, filter],
    several: [
      ...inList,
      ['Space', 'tick or untick the marked row; Enter continues with all ticked rows'],
      filter,
    ],
    choices: [
      [arrows, 'move the mark; Enter chooses'],
      ['1, 2, ...', 'mark the row with that number'],
      ['a letter', 'mark the row with that letter in brackets'],
    ],
    plain: [
      ['a number', CHOOSE_NUMBER],
      ['/ and text', CHOOSE_TEXT],
    ],
    plainSeveral: [
      ['a number', CHOOSE_NUMBER],
      ['1 2', 'chooses several rows, by their numbers'],
      ['/ and text', CHOOSE_TEXT],
    ],
    text: [['Enter', 'accepts what you typed']],
    letters: [],
    none: [],
  }
  return moves[kind]
}
