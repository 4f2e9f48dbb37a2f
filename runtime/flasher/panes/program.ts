/** `flasher-tui`: opens the terminal, and ends it in a state that others can use ("flasher-tui"). */
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import type { CommandLine } from '#kit/terminal/command/rules/command.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { resolveImageRoot } from '#engine/image/image-folder.ts'
import { parseMac, type Mac } from '#kit/net/rules/mac.ts'
import { parseServerAddress } from '#kit/net/rules/host-header.ts'
import { findOwnCard } from '#fleet/boot/pxe-helper.ts'
import { readVersion } from '#kit/host/package-manifest.ts'
import { findServer } from '#flasher/link/server-client.ts'
import type { TerminalEnvironment } from '#kit/terminal/command/program.ts'
import { createPainter, type Painter, type Frame, type Size } from '#kit/terminal/prompt/painter.ts'
import {
  encodeFor,
  encodeOutput,
  createInk,
  decideTerminalStyle,
} from '#kit/terminal/text/terminal-style.ts'
import { createLog } from '#kit/terminal/text/log.ts'
import { EXIT, FAILED, SUCCESS } from '#flasher/commands/rules/exit-codes.ts'
import {
  openState,
  type PanesSetting,
  type PanesState,
  type ChosenFlash,
  type Effect,
  type Input,
  type PaneStep,
  type Dialog,
  type DoneSignal,
  type Status,
  next,
  ROOT,
} from './flow.ts'
import { createTuiServices, orderFor, type TuiServices } from './services.ts'
import { type Cases, decideCase } from '#kit/foundation/cases.ts'
import { readKeys } from '#kit/terminal/prompt/keyboard.ts'
import {
  type PaneStyle,
  BORDER_WIDTH,
  renderPaneBox,
  pageRowsOf,
  renderMarked,
  renderPanes,
  renderDialog,
} from './screens.ts'
import { printable } from '#kit/foundation/printable.ts'
import { clip, spread, wrap } from '#kit/terminal/text/columns.ts'

export interface TuiEnvironment extends TerminalEnvironment {
  /** Why a person is asked; absent: the person asked for it. */
  readonly reason?: string | null
  /** Why the server was not notified of an earlier flash. */
  readonly unsent?: string
}

/** Returns the exit code. Rejects with a Fault `misuse` where there is no terminal. */
export async function tui(
  environment: TuiEnvironment,
  given: Arguments,
  { program }: CommandLine,
): Promise<number> {
  const { env, stdin, stdout, stderr, isRoot, signal, now, reason = null, unsent } = environment
  const { bases, mac } = readOptions(given)
  if (!stdin.isTTY || !stdout.isTTY) {
    const hint = 'Without one: "flasher flash --image IMAGE --target DISK --yes".'
    throw new Fault('misuse', 'flasher-tui needs a terminal', { hint })
  }
  const server = await chooseServer(bases, environment)
  const imageRoot = resolveImageRoot(null, env)
  const setting: PanesSetting = {
    version: await readVersion(),
    source: server === null ? imageRoot : `${server}/images`,
    server,
    mac,
    address: findOwnCard(mac).address,
    isRoot,
  }
  const services = createTuiServices({ env, isRoot, signal, imageRoot, server, mac })
  const style = decideTerminalStyle(env, stdout.isTTY)
  const ink = createInk(style)
  const opening = openState(setting, { reason, unsent })
  if (!style.tty) {
    const { runPlain } = await import('./plain.ts')
    const out = encodeOutput(stdout, env)
    return await runPlain(opening.state, services, { stdin, stdout: out, style, signal, now })
  }
  const painter = createPainter(stdout, encodeFor(env))
  const paneStyle = { ink, unicode: style.unicode }
  try {
    const state = await runPanes(opening, services, {
      stdin,
      painter,
      style: paneStyle,
      signal,
      now,
    })
    painter.leave()
    const log = createLog({ program, stderr, style: decideTerminalStyle(env, stderr.isTTY) })
    return report(state, log, signal)
  } finally {
    painter.leave()
  }
}

interface Options {
  /** The best first; null: standalone. */
  readonly bases: readonly string[] | null
  readonly mac: Mac | null
}

/** A MAC address without a server notifies nobody. */
function readOptions({ values: { server, mac } }: Arguments): Options {
  const card = mac === undefined ? null : readMac(mac)
  if (server === undefined) return { bases: null, mac: null }
  const bases = parseServerAddress(server)
  if (bases.ok) return { bases: bases.value, mac: card }
  const hint = 'Write it like http://10.0.0.1:8080.'
  throw new Fault('misuse', `--server ${JSON.stringify(server)} is not an address`, { hint })
}

function readMac(text: string): Mac {
  const mac = parseMac(text)
  if (mac.ok) return mac.value
  const hint = 'Write it like 52:54:00:12:34:56.'
  throw new Fault('misuse', `--mac ${JSON.stringify(text)} is not a MAC address`, { hint })
}

/** The first where none answers: the left pane says why. */
async function chooseServer(
  bases: Options['bases'],
  { env, signal }: TuiEnvironment,
): Promise<string | null> {
  const [first = null, ...others] = bases ?? []
  if (bases === null || others.length === 0) return first
  return (await findServer(bases, { env, signal })) ?? first
}

/** Repeats the screen's last message below it, where it still counts. */
function report(
  { signal, dialog }: PanesState,
  log: ReturnType<typeof createLog>,
  ending: AbortSignal,
): number {
  if (signal.kind === 'failed') log.fail(`the server was not notified: ${signal.reason}`)
  if (dialog?.kind === 'ended' && dialog.outcome.kind !== 'done') {
    log.fail(dialog.outcome.reason, dialog.outcome.leaves)
    return ending.aborted ? EXIT.cancelled : FAILED
  }
  return ending.aborted ? EXIT.cancelled : SUCCESS
}

/** Runs the panes: keys and findings go into the flow, and what it asks for is carried out. */
interface SessionTerminal {
  readonly stdin: NodeJS.ReadStream
  readonly painter: Painter
  readonly style: PaneStyle
  /** Aborted when the process is asked to end. */
  readonly signal: AbortSignal
  /** Seconds on a steady clock. */
  readonly now: () => number
}

/** Often enough to be lively, seldom enough for a serial line. */
const REDRAW_MS = 250

async function runPanes(
  opening: PaneStep,
  services: TuiServices,
  { stdin, painter, style, signal, now }: SessionTerminal,
): Promise<PanesState> {
  let { state } = opening
  let began = now()
  let isOver = false
  const draw = () => {
    // Results after the end are not shown.
    if (!isOver) painter.paint(renderScreen(state, painter.size(), style, now() - began))
  }

  function take(input: Input) {
    const wasMoving = isMoving()
    const then = next(state, input)
    state = then.state
    if (isMoving() && !wasMoving) began = now()
    // While bytes flow the timer draws.
    if (input.input !== 'event') draw()
    then.effects.forEach(executor.perform)
  }

  const isMoving = () => state.dialog?.kind === 'flash'
  const redraw = () => {
    painter.forget()
    draw()
  }
  const executor = createExecutor({ services, signal, take, redraw })
  const timer = setInterval(() => (isMoving() ? draw() : undefined), REDRAW_MS)
  const stopResizing = painter.onResize(draw)
  try {
    using _keys = readKeys(stdin, (key) =>
      take({ input: 'key', key, pageRows: pageRows(state, painter.size()) }),
    )
    draw()
    opening.effects.forEach(executor.perform)
    await executor.ended
    return state
  } finally {
    isOver = true
    clearInterval(timer)
    stopResizing()
  }
}

/** Carries out effects; decides nothing. */
function createExecutor({
  services,
  signal,
  take,
  redraw,
}: {
  readonly services: TuiServices
  readonly signal: AbortSignal
  take(input: Input): void
  redraw(): void
}) {
  let working = new AbortController()
  const tasks = new Set<Promise<void>>()
  const { promise, resolve: end, reject: fail } = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => end(), { once: true })
  if (signal.aborted) end()

  function start(work: () => Promise<void>) {
    const task = work()
      .catch(fail)
      .finally(() => tasks.delete(task))
    tasks.add(task)
  }

  /** Aborted with the program, or by a cancel. */
  function begin() {
    working = new AbortController()
    return AbortSignal.any([signal, working.signal])
  }

  async function check(choice: ChosenFlash, until: AbortSignal) {
    const checked = await services.check(choice, until)
    if (!until.aborted) take({ input: 'checked', checked })
  }

  async function flash(choice: ChosenFlash, until: AbortSignal) {
    const flasher = await services.loadFlasher()
    // Looks again at image and disk: time has passed since the question.
    const [outcome] = await flasher.flash(orderFor(choice), {
      signal: until,
      onEvent: (event, { image }) => take({ input: 'event', event, storedBytes: image.sizeBytes }),
    })
    if (outcome !== undefined) take({ input: 'ended', outcome })
  }

  const listDisks = () => services.listDisks((listing) => take({ input: 'disks', listing }))
  const listImages = async () => take({ input: 'images', listing: await services.listImages() })
  const sendDone = async () => take({ input: 'signalled', refusal: await services.sendDone() })

  const ACTS: Cases<'effect', Effect, void> = {
    'list-images': () => start(listImages),
    'list-disks': () => start(listDisks),
    check: ({ choice }) => start(() => check(choice, begin())),
    flash: ({ choice }) => start(() => flash(choice, begin())),
    cancel: () => working.abort(),
    'send-done': () => start(sendDone),
    redraw: () => redraw(),
    quit: () => end(),
  }

  return {
    perform: (effect: Effect) => decideCase(ACTS, 'effect', effect),
    // A disk that is being written is left only once its end is decided.
    ended: promise.then(() => (signal.aborted ? Promise.all(tasks) : undefined)),
  }
}

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

const pageRows = (state: PanesState, { rows }: Size): number => pageRowsOf(panesHeight(state, rows))

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
      const then = isLeaving ? '. This program ends afterwards; q ends it now.' : ' ...'
      return { tone: 'plain', text: `Notifying the server${then}` }
    }
    case 'sent':
      return { tone: 'good', text: 'The server was notified of the flash.' }
    case 'failed':
      return { tone: 'danger', text: describeSignal(route, signal) }
  }
}

const describeSignal = (route: string, { reason }: Extract<DoneSignal, { kind: 'failed' }>) =>
  printable(`Flash done, but ${route} failed: ${reason}. Press d to retry.`)

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
      return { no: '[c] cancel', asked: '[y] cancel flash  [n] continue', yes: '' }[dialog.cancel]
    case 'ended':
      return '[Enter] close'
  }
}
