/** The same flash line by line, for terminals that cannot redraw: image, disk, question, log. */
import type { FlashOutcome } from '#engine/flash/rules/run-report.ts'
import { renderSuccess } from '#flasher/text/rules/flash-text.ts'
import { printable } from '#kit/foundation/printable.ts'
import { askPlain } from '#kit/terminal/prompt/ask.ts'
import { renderMenu, type Menu, type MenuKey } from '#kit/terminal/prompt/menu.ts'
import { createPainter } from '#kit/terminal/prompt/painter.ts'
import { stillSubject, type Asked, type Question } from '#kit/terminal/prompt/question.ts'
import { createInk, type Output, type TerminalStyle } from '#kit/terminal/text/terminal-style.ts'
import { createProgress } from '#flasher/text/progress.ts'
import { EXIT, SUCCESS } from '#flasher/commands/rules/exit-codes.ts'
import {
  ROOT,
  mark,
  takeDisks,
  takeImages,
  decideChoice,
  listRows,
  type ChosenFlash,
  type PaneName,
  type PanesState,
} from './flow.ts'
import { renderDialog, DISK_COLUMNS, IMAGE_COLUMNS } from './screens.ts'
import { orderFor, type TuiServices } from './services.ts'

interface PlainTerminal {
  readonly stdin: NodeJS.ReadStream
  readonly stdout: Output
  readonly style: TerminalStyle
  /** Aborted when the process is asked to end. */
  readonly signal: AbortSignal
  /** Seconds on a steady clock. */
  readonly now: () => number
}

/** Returns the exit code. */
export async function runPlain(
  opening: PanesState,
  services: TuiServices,
  terminal: PlainTerminal,
): Promise<number> {
  const { stdout, signal } = terminal
  const say = (text: string) => stdout.write(`${printable(text)}\n`)
  const { version, server, isRoot } = opening.setting
  say(`flasher-tui ${version}  ${server ?? 'standalone'}`)
  if (opening.status !== null) say(opening.status.text)
  if (!isRoot) say(ROOT)
  let state = opening
  while (!signal.aborted) {
    state = await refreshRows(state, services)
    const chosen = await choose(state, terminal)
    if (chosen === 'leave') return signal.aborted ? EXIT.cancelled : SUCCESS
    if (chosen === 'again') continue
    state = chosen
    const choice = decideChoice(state)
    if (typeof choice === 'string') say(choice)
    else if (!isRoot) say(ROOT)
    else await flashOnce(choice, services, terminal, say)
  }
  return EXIT.cancelled
}

type Chosen = PanesState | 'again' | 'leave'

async function choose(state: PanesState, terminal: PlainTerminal): Promise<Chosen> {
  const marked = await askPane(state, 'images', terminal)
  return typeof marked === 'string' ? marked : await askPane(marked, 'disks', terminal)
}

async function refreshRows(state: PanesState, services: TuiServices): Promise<PanesState> {
  let now = takeImages(state, await services.listImages())
  await services.listDisks((listing) => {
    now = takeDisks(now, listing)
  })
  return now
}

const REFRESH: MenuKey = { key: 'r', words: ['refresh'], does: 'refresh' }
const QUIT: MenuKey = { key: 'q', words: ['quit', 'exit'], does: 'quit' }

async function askPane(
  state: PanesState,
  pane: PaneName,
  terminal: PlainTerminal,
): Promise<Chosen> {
  const rows = listRows(state, pane)
  const { trouble } = state[pane]
  const title = pane === 'images' ? `Images @ ${state.setting.source}` : 'Disks'
  const menu: Menu = {
    prompt: pane === 'images' ? 'Image' : 'Disk',
    columns: pane === 'images' ? IMAGE_COLUMNS : DISK_COLUMNS,
    rows: rows.map(({ cells, refusal }) => ({ cells, refusal })),
    keys: [REFRESH, QUIT],
    enter: 'r',
  }
  const asked = await askMenu(menu, [title, ...(trouble === null ? [] : [trouble])], terminal)
  if (asked.kind === 'row') return mark(state, pane, rows[asked.index]?.key ?? null)
  return asked.kind === 'key' && asked.key === 'r' ? 'again' : 'leave'
}

async function askMenu(
  menu: Menu,
  intro: readonly string[],
  { stdin, stdout, style, signal }: PlainTerminal,
): Promise<Asked> {
  const ink = createInk(style)
  const painter = createPainter(stdout)
  const question: Question = {
    menu,
    help: () => [{ lines: [HELP, ''], cursor: null }],
    pageRows: () => menu.rows.length,
    frame: (state, size) =>
      renderMenu(intro.map(printable), menu, state, { ...style, ...size, ink }),
  }
  return await askPlain(stillSubject(question), { stdin, stdout, style, painter }, signal)
}

const HELP = 'Type the number of a row, or one of the letters, then press Enter.'

async function flashOnce(
  choice: ChosenFlash,
  services: TuiServices,
  terminal: PlainTerminal,
  say: (text: string) => void,
): Promise<void> {
  const { style, signal } = terminal
  say('checking ...')
  const checked = await services.check(choice, signal)
  const room = { width: 78, height: 1000, seconds: 0 }
  const paneStyle = { ink: createInk(style), unicode: style.unicode }
  const view = renderDialog({ kind: 'confirm', choice, checked }, room, paneStyle)
  for (const text of ['', view.title, '', ...view.lines.map((line) => line.text)]) say(text)
  if (checked.reasons.length > 0) return
  const menu: Menu = { prompt: 'Flash', columns: [], rows: [], keys: [ERASE, BACK], enter: 'n' }
  const asked = await askMenu(menu, [], terminal)
  if (asked.kind !== 'key' || asked.key !== 'y') return
  const outcome = await write(choice, services, terminal)
  if (outcome === undefined) return
  if (outcome.kind !== 'done') {
    const { hint } = outcome
    const title =
      outcome.kind === 'cancelled' ? 'Cancelled.' : `The flash failed: ${outcome.reason}`
    for (const text of ['', title, ...(hint === null ? [] : [hint]), outcome.leaves]) say(text)
    return
  }
  say(renderSuccess(outcome))
  await notify(services, terminal, say)
}

const ERASE: MenuKey = { key: 'y', words: ['yes'], does: 'ERASE AND FLASH' }
const BACK: MenuKey = { key: 'n', words: ['no', 'back'], does: 'back' }
const AGAIN: MenuKey = { key: 'd', words: ['again'], does: 'notify the server once more' }

async function notify(
  services: TuiServices,
  terminal: PlainTerminal,
  say: (text: string) => void,
): Promise<void> {
  for (;;) {
    const refusal = await services.sendDone()
    if (refusal === null) return
    say(`Flash done, but the server could not be notified: ${refusal}.`)
    const menu: Menu = { prompt: 'Next', columns: [], rows: [], keys: [AGAIN, BACK], enter: 'n' }
    const asked = await askMenu(menu, [], terminal)
    if (asked.kind !== 'key' || asked.key !== 'd') return
  }
}

async function write(
  choice: ChosenFlash,
  services: TuiServices,
  { stdout, style, signal, now }: PlainTerminal,
): Promise<FlashOutcome | undefined> {
  let stored: number | null = null
  const storedBytes = () => stored
  const progress = createProgress('text', {
    stdout,
    stderr: { write: (text) => stdout.write(text), isTTY: true },
    style,
    now,
    storedBytes,
  })
  const flasher = await services.loadFlasher()
  // Looks again at image and disk: time has passed since the question.
  const [outcome] = await flasher.flash(orderFor(choice), {
    signal,
    onEvent(event, { image }) {
      stored = image.sizeBytes
      progress.show(event)
    },
  })
  return outcome
}
