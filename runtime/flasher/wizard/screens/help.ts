/** The help of each screen: what it asks, and its keys; as many pages as the terminal needs. Pure. */
import { displayWidth } from '#kit/foundation/printable.ts'
import { fill } from '#kit/texts/text.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import type { MenuKey } from '#kit/terminal/prompt/menu.ts'
import type { Frame, Size } from '#kit/terminal/prompt/painter.ts'
import { HELP_KEY } from '#kit/terminal/prompt/question.ts'
import { wrap } from '#kit/terminal/text/columns.ts'
import { isCapture, type WizardState } from '../flow/flow.ts'
import { renderHeader, type Drawing } from './header.ts'

const { help: TEXTS, capture: CAPTURE } = WIZARD_TEXTS
const ASKS = { ...TEXTS.asks, ...CAPTURE.help.asks }

export type HelpKind =
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

interface HelpOptions {
  readonly kind: HelpKind
  readonly keys: readonly MenuKey[]
}

type KeyRow = readonly [keys: string, does: string]

/** Pages; any key shows the next one, then the screen again. */
export function renderHelp(
  state: WizardState,
  { kind, keys }: HelpOptions,
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
  const room = Math.max(1, size.rows - header.length - FOOT_ROWS)
  const count = Math.ceil(lines.length / room)
  return Array.from({ length: count }, (_, page) => {
    const foot = page + 1 < count ? TEXTS.more : TEXTS.end
    const shown = lines.slice(page * room, (page + 1) * room)
    return { lines: [...header, ...shown, '', ink.faint(foot)], cursor: null }
  })
}

const FOOT_ROWS = 2

interface HelpWords {
  /** What runs where nothing is asked, and what Ctrl-C does to it. */
  readonly runs: string
  readonly cancel: string
  /** Where the last line of the screen is too short. */
  readonly letters: Readonly<Record<string, string>>
}

const FLASH_WORDS: HelpWords = {
  runs: TEXTS.asks.flash,
  cancel: TEXTS.does.cancel,
  letters: TEXTS.letters,
}
const CAPTURE_WORDS: HelpWords = {
  runs: CAPTURE.help.runs,
  cancel: CAPTURE.help.cancel,
  letters: { ...TEXTS.letters, ...CAPTURE.help.letters },
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
  const { names, does } = TEXTS
  const end = kind === 'none' ? words.cancel : does.quit
  return [...listMoves(kind, unicode), ...letters, [names.interrupt, end], [HELP_KEY, does.help]]
}

function listMoves(kind: HelpKind, unicode: boolean): readonly KeyRow[] {
  const { names, does } = TEXTS
  const arrows = unicode ? names.arrows : names.arrowsPlain
  const inList: readonly KeyRow[] = [
    [fill(names.pages, { arrows }), does.moveInList],
    [names.numbers, does.markByNumber],
  ]
  const filter: KeyRow = [names.filter, does.filter]
  const moves: Readonly<Record<HelpKind, readonly KeyRow[]>> = {
    list: [...inList, filter],
    several: [...inList, [names.space, does.tick], filter],
    choices: [
      [arrows, does.move],
      [names.numbers, does.markNumber],
      [names.letter, does.markLetter],
    ],
    plain: [
      [names.number, does.chooseNumber],
      [names.filter, does.chooseText],
    ],
    plainSeveral: [
      [names.number, does.chooseNumber],
      [names.several, does.chooseSeveral],
      [names.filter, does.chooseText],
    ],
    text: [[names.enter, does.takeText]],
    letters: [],
    none: [],
  }
  return moves[kind]
}
