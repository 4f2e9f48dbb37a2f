/** The help of each screen: what it asks, and its keys; as many pages as the terminal needs. Pure. */
import { displayWidth } from '#kit/foundation/printable.ts'
import type { MenuKey } from '#kit/terminal/prompt/menu.ts'
import type { Frame, Size } from '#kit/terminal/prompt/painter.ts'
import { HELP_KEY } from '#kit/terminal/prompt/question.ts'
import { wrap } from '#kit/terminal/text/columns.ts'
import { isCapture, type WizardState } from '../flow/flow.ts'
import { renderHeader, type Drawing } from './header.ts'

const ASKS = {
  catalog:
    'Choose where the images come from: the default catalog, another one, only the images of this machine, or a disk that an image is made of.',
  source:
    'Type the location of a catalog: a file, an http(s) address, or an oras reference. Enter alone means no catalog.',
  image:
    'Choose the image to write. Images of this machine come first, then those of the catalog. A row that begins with - cannot be chosen; the reason is in brackets.',
  disk: 'Choose the disk to write to. Everything on it will be lost. Tick several to write the image to all of them. A row that begins with - cannot be chosen; the reason is in brackets. Tell equal disks apart by their serial numbers.',
  confirm:
    'Check the image and the disk, and what will be lost. Nothing has been written yet: only y starts the flash.',
  flash:
    'The image is being written, then read back. Nothing is asked. A flash that is cancelled leaves a disk that does not boot.',
  failed:
    'The flash failed; the screen says why, and what is on the disk now. Choose what to do next.',
  done: 'The disk is ready. Choose what to do next.',
  'capture-disk':
    'Choose the disk that an image is made of. It is only read. A row that begins with - cannot be chosen; the reason is in brackets: a disk is captured while nothing uses it.',
  'capture-destination':
    'Type where the image goes: a name for the image folder, a path of a file or folder, or the address of an image cache. Its name ends in .img.zst, which is added where it is missing.',
  'capture-token':
    'Type the one-time token with which the image cache takes the image. It is not shown.',
  'capture-confirm':
    'Check the disk, where the image goes, and what is read. Nothing has been written yet: only y starts the capture.',
  'capture-failed':
    'The capture failed or was cancelled; the screen says why. Choose what to do next.',
  'capture-done': 'The image is complete. Choose what to do next.',
} as const

const LETTERS = {
  b: 'back to the step before',
  m: 'capture a disk of this machine',
  r: 'look again at files, catalog or disks',
  y: 'erase the disk and flash it, at once',
  t: 'write the first-boot template with the image, or not',
  q: 'quit; nothing more is written',
} as const

const CHOOSE_NUMBER = 'chooses that row; Enter after each input'
const CHOOSE_TEXT = 'chooses the first row with that text'

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
    const foot = page + 1 < count ? 'Any key: more help.' : 'Any key: back to the screen.'
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
  runs: ASKS.flash,
  cancel: 'cancels the flash',
  letters: LETTERS,
}
const CAPTURE_WORDS: HelpWords = {
  runs: 'The disk is being read, and its image made. Nothing is asked. Nothing is left of an image that is cancelled.',
  cancel: 'cancels the capture',
  letters: {
    ...LETTERS,
    g: 'clear the files that identify this machine in the image, or keep them',
    y: 'make the image, at once',
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
      ['Space', 'tick the marked row, or take its tick away; Enter goes on with all ticked rows'],
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
    text: [['Enter', 'takes what was typed']],
    letters: [],
    none: [],
  }
  return moves[kind]
}
