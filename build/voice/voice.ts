/** The voice of the `build:*` scripts: consola with marks, boxes, and a line that moves while work is going on. */
import type { WriteStream } from 'node:tty'
import { styleText } from 'node:util'
import { createConsola, type ConsolaInstance, type LogObject, type LogType } from 'consola/core'
import { box } from 'consola/utils'
import { createMovingLine, type MovingLine } from './moving-line.ts'

interface VoiceOptions {
  readonly stdout: WriteStream
  readonly stderr: WriteStream
  readonly env: Readonly<Record<string, string | undefined>>
}

export interface Voice {
  readonly say: ConsolaInstance
  readonly line: MovingLine
}

type Colour = Parameters<typeof styleText>[0]

/** The marks by consola's type; the others have none. */
const MARKS: Partial<Record<LogType, { readonly mark: string; readonly colour: Colour }>> = {
  start: { mark: '·', colour: 'dim' },
  info: { mark: 'ℹ', colour: 'cyan' },
  success: { mark: '✔', colour: 'green' },
  ready: { mark: '✔', colour: 'dim' },
  warn: { mark: '⚠', colour: 'yellow' },
  error: { mark: '✖', colour: 'red' },
  fail: { mark: '✖', colour: 'red' },
}
/** consola's level of warnings; a lower one is worse. Both go to standard error. */
const WARNING_LEVEL = 1

/**
 * Creates a voice. Boxes and the moving line are for terminals; CI and dumb terminals get plain
 * lines. Colours follow NO_COLOR, FORCE_COLOR and what the terminal can show.
 */
export function createVoice({ stdout, stderr, env }: VoiceOptions): Voice {
  const isTerminal = stdout.isTTY && env['TERM'] !== 'dumb' && (env['CI'] ?? '') === ''
  const line = createMovingLine(isTerminal ? stdout : null)
  const render = ({ type, title, args }: LogObject, stream: WriteStream): string => {
    const style = (colour: Colour, text: string) =>
      styleText(colour, text, { stream, validateStream: true })
    const text = args.join(' ')
    if (type === 'box') return renderBox(String(title ?? ''), text, isTerminal)
    const { mark, colour } = MARKS[type] ?? {}
    const emphasized = EMPHASIS[type]?.(text, style) ?? text
    return mark === undefined || colour === undefined
      ? emphasized
      : `${style(colour, mark)} ${emphasized}`
  }
  const say = createConsola({
    // consola would hold back repeated lines, and lose them at the end.
    throttleMin: Number.POSITIVE_INFINITY,
    reporters: [
      {
        log: (said) => {
          line.clear()
          const stream = said.level <= WARNING_LEVEL ? stderr : stdout
          stream.write(`${render(said, stream)}\n`)
          line.draw()
        },
      },
    ],
  })
  return { say, line }
}

type Style = (colour: Colour, text: string) => string

/** Headings and the first line of a failure stand out; steps from the cache are dimmed. */
const EMPHASIS: Partial<Record<LogType, (text: string, style: Style) => string>> = {
  log: (text, style) => style('bold', text),
  ready: (text, style) => style('dim', text),
  start: (text, style) => style('dim', text),
  fail: (text, style) => {
    const [first = '', ...rest] = text.split('\n')
    return [style('red', first), ...rest].join('\n')
  },
}

function renderBox(title: string, text: string, isTerminal: boolean): string {
  if (!isTerminal) {
    const lines = text.split('\n').map((line) => (line === '' ? '' : `  ${line}`))
    return [`${title}:`, ...lines].join('\n')
  }
  const style = { borderColor: 'gray', borderStyle: 'rounded', padding: 2, marginLeft: 0 } as const
  return box(text, { title: ` ${title} `, style }).trimEnd()
}
