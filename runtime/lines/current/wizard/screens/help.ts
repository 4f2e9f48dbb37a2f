/** The help of each screen: what it asks, and its keys; as many pages as the terminal needs. Pure. */
import { displayWidth } from '../../../../core/foundation/printable.ts'
import type { MenuKey } from '../../../../terminal/prompt/menu.ts'
import type { Frame, Size } from '../../../../terminal/prompt/painter.ts'
import { wrap } from '../../../../terminal/text/wrap.ts'
import type { ScreenName, State } from '../flow/flow.ts'
import type { Ink } from '../../../../terminal/text/ink.ts'
import { renderHeader, type Setting } from './header.ts'

/** What there is to do besides letters. */
export type HelpKind = 'list' | 'choices' | 'plain' | 'text' | 'letters' | 'none'

/** Where no mark can be moved. */
const PLAIN: Readonly<Record<HelpKind, HelpKind>> = {
  list: 'plain',
  choices: 'plain',
  plain: 'plain',
  text: 'text',
  letters: 'letters',
  none: 'none',
}

interface HelpDrawing {
  readonly setting: Setting
  readonly ink: Ink
  readonly unicode: boolean
  readonly live: boolean
}

interface HelpOptions {
  readonly kind: HelpKind
  readonly keys: readonly MenuKey[]
}

const ASKS: Readonly<Record<ScreenName, string>> = {
  catalog:
    'Choose where the images come from: the default catalog, another one, or only the images of this machine.',
  source:
    'Type the location of a catalog: a file, an http(s) address, or an oras reference. Enter alone means no catalog.',
  image:
    'Choose the image to write. Images of this machine come first, then those of the catalog. A row that begins with - cannot be chosen; the reason is in brackets.',
  disk: 'Choose the disk to write to. Everything on it will be lost. A row that begins with - cannot be chosen; the reason is in brackets. Tell equal disks apart by their serial numbers.',
  confirm:
    'Check the image and the disk, and what will be lost. Nothing has been written yet: only y starts the flash.',
  flash:
    'The image is being written, then read back. Nothing is asked. A flash that is cancelled leaves a disk that does not boot.',
  failed:
    'The flash failed; the screen says why, and what is on the disk now. Choose what to do next.',
  done: 'The disk is ready. Choose what to do next.',
}

type KeyRow = readonly [keys: string, does: string]

/** Pages of help; any key shows the next one, then the screen again. */
export function renderHelp(
  state: State,
  { kind, keys }: HelpOptions,
  { setting, ink, unicode, live }: HelpDrawing,
  size: Size,
): readonly Frame[] {
  const header = renderHeader(state, setting, { ...size, unicode }, ink)
  const width = size.columns - 1
  const rows = listKeys(live ? kind : PLAIN[kind], keys, unicode)
  const left = Math.max(...rows.map(([name]) => displayWidth(name))) + 2
  const lines = [
    ...wrap(ASKS[state.screen], width),
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

/** A blank line and the last one. */
const FOOT_ROWS = 2

function listKeys(kind: HelpKind, keys: readonly MenuKey[], unicode: boolean): readonly KeyRow[] {
  const arrows = unicode ? '↑ ↓' : 'Up Down'
  const move: Readonly<Record<HelpKind, readonly KeyRow[]>> = {
    list: [
      [`${arrows} PgUp PgDn`, 'move the mark; Enter chooses the marked row'],
      ['1, 2, ...', 'mark the row with that number; Enter chooses it'],
      ['/ and text', 'show only the rows with that text; Esc shows all'],
    ],
    choices: [
      [arrows, 'move the mark; Enter chooses'],
      ['1, 2, ...', 'mark the row with that number'],
      ['a letter', 'mark the row with that letter in brackets'],
    ],
    plain: [
      ['a number', 'chooses that row; Enter after each input'],
      ['/ and text', 'chooses the first row with that text'],
    ],
    text: [['Enter', 'takes what was typed']],
    letters: [],
    none: [],
  }
  const letters = keys.flatMap(({ key, words, does }): readonly KeyRow[] =>
    does === null
      ? []
      : [[[key, ...words.slice(0, 1)].join(', '), (kind === 'text' ? null : HELP_OF[key]) ?? does]],
  )
  const end = kind === 'none' ? 'cancels the flash' : 'quits'
  return [...move[kind], ...letters, ['Ctrl-C', end], ['?', 'shows this help']]
}

/** Where the last line of the screen is too short. */
const HELP_OF: Readonly<Record<string, string>> = {
  b: 'back to the step before',
  r: 'look again at files, catalog or disks',
  y: 'erase the disk and flash it, at once',
  q: 'quit; nothing more is written',
}
