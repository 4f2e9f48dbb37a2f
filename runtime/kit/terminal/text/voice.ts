/** The voice of the wizard and the commands: consola's messages, laid out for this terminal. */
import { createConsola, type ConsolaInstance, type LogObject, type LogType } from 'consola/core'
import { displayWidth, printableLines } from '#kit/foundation/printable.ts'
import type { Environment } from '#kit/host/shell.ts'
import {
  encodeFor,
  createInk,
  type Ink,
  columnsOf,
  decideTerminalStyle,
  type Output,
} from './terminal-style.ts'
import { wrap, clip, pad } from './columns.ts'

export type Voice = Pick<
  ConsolaInstance,
  'log' | 'info' | 'start' | 'success' | 'warn' | 'fail' | 'box'
>

export interface VoiceStyle {
  readonly ink: Ink
  readonly unicode: boolean
  /** Lines are wrapped to so many columns; null: they stay as they are. */
  readonly columns: number | null
}

/** Into a pipe or a file the messages go without marks. */
export function openVoice(output: Output, env: Environment): Voice {
  const style = decideTerminalStyle(env, output.isTTY === true)
  const encode = style.tty ? encodeFor(env) : (text: string) => text
  return createVoice(
    (lines) => output.write(encode(lines.map((line) => `${line}\n`).join(''))),
    () => ({
      ink: createInk(style),
      unicode: style.unicode,
      columns: style.tty ? columnsOf(output.columns) : null,
    }),
  )
}

export function renderVoice(style: VoiceStyle, speak: (voice: Voice) => void): readonly string[] {
  const lines: string[] = []
  speak(
    createVoice(
      (more) => lines.push(...more),
      () => style,
    ),
  )
  return lines
}

const createVoice = (
  write: (lines: readonly string[]) => unknown,
  styleOf: () => VoiceStyle,
): Voice =>
  createConsola({
    // consola would hold back repeated lines, and lose them at the end.
    throttleMin: Number.POSITIVE_INFINITY,
    reporters: [{ log: (said) => void write(render(said, styleOf())) }],
  })

interface VoiceMark {
  readonly unicode: string
  readonly ascii: string
  readonly ink: keyof Ink
  /** The message is in the colour of its mark, too. */
  readonly isWhole?: true
}

/** The marks by consola's types of messages; the others have none. */
const MARKS: Partial<Record<LogType, VoiceMark>> = {
  start: { unicode: '›', ascii: '-', ink: 'faint' },
  info: { unicode: '•', ascii: '-', ink: 'faint' },
  success: { unicode: '✔', ascii: '*', ink: 'good' },
  warn: { unicode: '!', ascii: '!', ink: 'danger' },
  fail: { unicode: '✖', ascii: 'x', ink: 'danger', isWhole: true },
}

/** In front of a message, its mark and a blank. */
export const MARK_WIDTH = 2

function render({ type, args, title }: LogObject, style: VoiceStyle): readonly string[] {
  const { ink, unicode, columns } = style
  const text = args.join(' ')
  if (type === 'box') return renderBox(String(title ?? ''), text.split('\n'), style)
  const mark = MARKS[type]
  const lead = mark === undefined || columns === null ? 0 : MARK_WIDTH
  const lines = printableLines(text).flatMap((line) =>
    // What fits keeps its blanks.
    columns === null || displayWidth(line) < columns - lead
      ? [line]
      : wrap(line, columns - 1 - lead),
  )
  if (mark === undefined || columns === null) return lines
  const dye = ink[mark.ink]
  const sign = unicode ? mark.unicode : mark.ascii
  return lines.map((line, index) => {
    const shown = mark.isWhole === true ? dye(line) : line
    return index === 0 ? `${dye(sign)} ${shown}` : `${' '.repeat(lead)}${shown}`
  })
}

interface BoxStyle {
  /** Null: no terminal. */
  readonly columns: number | null
  readonly unicode: boolean
}

const MAX_WIDTH = 100

/** Null: no terminal. */
export const boxWidth = (columns: number | null) => Math.min(MAX_WIDTH, (columns ?? 80) - 1)

export const innerWidth = (columns: number | null): number => boxWidth(columns) - 4

/** `lines`: printable; too long ones are cut in the middle. */
function renderBox(
  title: string,
  lines: readonly string[],
  { columns, unicode }: BoxStyle,
): readonly string[] {
  const width = boxWidth(columns)
  const inner = innerWidth(columns)
  const [corner, across, down] = unicode ? ['┌┐└┘', '─', '│'] : ['++++', '-', '|']
  const [topLeft, topRight, bottomLeft, bottomRight] = corner
  const head = `${topLeft}${across} ${title} `
  return [
    `${head}${across.repeat(Math.max(0, width - head.length - 1))}${topRight}`,
    ...lines.map((line) => {
      const shown = clip(line, inner, { cut: 'middle', unicode })
      return `${down} ${pad(shown, inner)} ${down}`
    }),
    `${bottomLeft}${across.repeat(width - 2)}${bottomRight}`,
  ]
}
