/** Messages of a program besides its results: safe lines on stderr, each with the program's name. */
import { styleText } from 'node:util'
import { createConsola, LogLevels, type LogObject } from 'consola/core'
import { printable, printableLines } from '#kit/foundation/printable.ts'
import { type TerminalStyle, type Output, decideTerminalStyle } from './terminal-style.ts'
import type { Environment } from '#kit/host/shell.ts'

export interface Log {
  /** A failure in one clause, and how to fix it where that is known. */
  fail(message: string, hint?: string): void
  note(message: string): void
  /** A line as it is, control characters excepted. */
  line(text: string): void
}

/** Control characters in its messages are escaped. */
export function createLog({
  program,
  stderr,
  style,
}: {
  readonly program: string
  readonly stderr: Output
  readonly style: TerminalStyle
}): Log {
  const consola = createConsola({
    throttleMin: Number.POSITIVE_INFINITY,
    reporters: [
      {
        log({ type, args }) {
          const [first = '', ...more] = printableLines(args.join(' '))
          const shown = type === 'fail' ? emphasise(first, 'red', style) : first
          const head = type === 'log' ? first : `${program}: ${shown}`
          stderr.write(`${[head, ...more.map((line) => `  ${line}`)].join('\n')}\n`)
        },
      },
    ],
  })
  return {
    fail: (message, hint) =>
      consola.fail([message.trim(), ...(hint === undefined ? [] : [hint])].join('\n')),
    note: (message) => consola.warn(printable(message)),
    line: (text) => consola.log(printable(text)),
  }
}

/** Only where colours are wanted. */
export const emphasise = (text: string, how: 'bold' | 'red', { colour }: TerminalStyle): string =>
  colour ? styleText(how, text, { validateStream: false }) : text

// The log of a server: one safe line per message, with its time, or its priority for the journal.

const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export type ServerLog = Readonly<Record<LogLevel, (message: string) => void>>

/** Lines begin with their rank in systemd's journal, elsewhere with the time (ISO 8601, UTC). */
export function createServerLog({
  stderr,
  env,
  level,
  now,
}: {
  readonly stderr: Output
  readonly env: Environment
  /** What is said at least; read for each line. */
  level(): LogLevel
  now(): Date
}): ServerLog {
  const { colour } = decideTerminalStyle(env, stderr.isTTY === true)
  // The journal knows the time itself, and reads the rank.
  const isJournal = (env['JOURNAL_STREAM'] ?? '') !== ''
  const open = (rank: LogLevel) =>
    isJournal ? `<${RANK[rank]}>` : `${now().toISOString()} ${renderRank(rank, colour)} `
  const consola = createConsola({
    // What is held back to be counted would be lost when the server ends.
    throttleMin: Number.POSITIVE_INFINITY,
    reporters: [
      {
        log: (said) => {
          stderr.write(`${open(rankOf(said))}${printable(said.args.join(' '))}\n`)
        },
      },
    ],
  })
  const say = (rank: LogLevel, message: string) => {
    consola.level = LogLevels[level()]
    consola[rank](message)
  }
  return {
    debug: (message) => say('debug', message),
    info: (message) => say('info', message),
    warn: (message) => say('warn', message),
    error: (message) => say('error', message),
  }
}

/** These are the ranks of systemd's journal and syslog: smaller is worse. */
const RANK: Readonly<Record<LogLevel, number>> = { debug: 7, info: 6, warn: 4, error: 3 }

const COLOUR = { debug: 'dim', info: null, warn: 'yellow', error: 'red' } as const satisfies Record<
  LogLevel,
  string | null
>

function renderRank(rank: LogLevel, colour: boolean): string {
  const style = colour ? COLOUR[rank] : null
  const text = rank.padEnd(5)
  return style === null ? text : styleText(style, text, { validateStream: false })
}

const rankOf = ({ type }: LogObject): LogLevel => LOG_LEVELS.find((rank) => rank === type) ?? 'info'
