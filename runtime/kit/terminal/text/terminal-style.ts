/** Decides once what a terminal can display, from its type and its user's settings. */
import type { Environment } from '#kit/host/shell.ts'
import { styleText } from 'node:util'
import { displayWidth } from '#kit/foundation/printable.ts'

/** Where text goes: a stream of the process, or a test's. */
export interface Output {
  write(text: string): unknown
  readonly isTTY?: boolean
  /** Width and height in characters; may change while the program runs. */
  readonly columns?: number
  readonly rows?: number
}

export interface TerminalStyle {
  /** Lines can be redrawn: a terminal, and not a dumb one. */
  readonly tty: boolean
  readonly colour: boolean
  /** Block characters and line drawing are available. */
  readonly unicode: boolean
}

/** `isTTY` says whether it is a terminal at all. */
export function decideTerminalStyle(env: Environment, isTTY: boolean): TerminalStyle {
  const tty = isTTY && env['TERM'] !== 'dumb'
  return {
    tty,
    // Any value but the empty one counts, by the convention of that name.
    colour: tty && (env['NO_COLOR'] ?? '') === '',
    unicode: tty && isUtf8(env) && !FEW_GLYPHS.test(env['TERM'] ?? ''),
  }
}

/** Consoles whose fonts hold few characters, and terminals made before there were more. */
const FEW_GLYPHS = /^(linux|vt\d+|ansi|cons\d+|unknown)/

/** The first of the three that says anything decides, as in the C library. */
function isUtf8(env: Environment): boolean {
  const locale = ['LC_ALL', 'LC_CTYPE', 'LANG'].map((name) => env[name]).find(Boolean) ?? ''
  return /utf-?8/i.test(locale)
}

/** Nothing is cut where the output is no terminal. */
export const tableRoomOf = (output: Output, env: Environment) =>
  output.isTTY === true
    ? { width: columnsOf(output.columns), unicode: decideTerminalStyle(env, true).unicode }
    : { width: null, unicode: true }

/** 24 where a terminal does not say (a serial line never does), and never absurdly few. */
export const rowsOf = (rows: number | undefined): number => Math.min(200, Math.max(10, rows || 24))

/** 80 where a terminal does not say (some say 0), and never absurdly few or many. */
export const columnsOf = (columns: number | undefined): number =>
  Math.min(400, Math.max(20, columns || 80))

// Emphasis in the sixteen colours that every terminal has; none if colours are off.

type Dye = (text: string) => string

/** Names say what a text is, not how it looks. */
export interface Ink {
  /** What matters most on its line. */
  readonly strong: Dye
  /** What may be read, but need not be. */
  readonly faint: Dye
  readonly danger: Dye
  readonly good: Dye
  /** Where the person is now. */
  readonly here: Dye
}

const STYLES = {
  strong: 'bold',
  faint: 'dim',
  danger: ['bold', 'red'],
  good: ['bold', 'green'],
  here: ['bold', 'cyan'],
} as const

/** Without colours, texts stay as they are. */
export function createInk({ colour }: Pick<TerminalStyle, 'colour'>): Ink {
  const dye =
    (name: keyof typeof STYLES): Dye =>
    (text) =>
      colour && text !== '' ? styleText(STYLES[name], text, { validateStream: false }) : text
  return {
    strong: dye('strong'),
    faint: dye('faint'),
    danger: dye('danger'),
    good: dye('good'),
    here: dye('here'),
  }
}

// Converts text for terminals without UTF-8: ASCII of the same width.

export type Encode = (text: string) => string

/** As it is where the locale says UTF-8, else as ASCII. */
export const encodeFor = (env: Environment): Encode => (isUtf8(env) ? (text) => text : toAscii)

/** For lines that nothing is drawn over. */
export const encodeOutput = (output: Pick<Output, 'write'>, env: Environment): Output => {
  const encode = encodeFor(env)
  return { write: (text) => output.write(encode(text)) }
}

/** Letters lose their accents, and `?` stands for what has no letter: `Gro?e`. */
function toAscii(text: string): string {
  if (isAscii(text)) return text
  graphemes ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  return Array.from(graphemes.segment(text), ({ segment }) => replace(segment)).join('')
}

/** Made when it is first needed: that takes 15 ms. */
let graphemes: Intl.Segmenter | null = null

// oxlint-disable-next-line no-control-regex
const isAscii = (text: string) => /^[\0-\x7f]*$/.test(text)

const SIGNS: Readonly<Record<string, string>> = { '…': '.', '–': '-', '‘': "'", '’': "'" }

function replace(grapheme: string): string {
  if (isAscii(grapheme)) return grapheme
  const sign = SIGNS[grapheme]
  if (sign !== undefined) return sign
  const letter = grapheme.normalize('NFD').charAt(0)
  const width = displayWidth(grapheme)
  return width === 1 && isAscii(letter) ? letter : '?'.repeat(width)
}
