/** Decides once what a terminal can display, from its type and its user's settings. */
import type { Environment } from '#kit/host/shell.ts'

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
export function isUtf8(env: Environment): boolean {
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
