/** Messages of a program besides its results: safe lines on stderr, each with the program's name. */
import { styleText } from 'node:util'
import { createConsola } from 'consola/core'
import { printable, printableLines } from '#kit/foundation/printable.ts'
import type { TerminalStyle, Output } from './terminal-style.ts'

export interface Log {
  /** A failure in one clause, and how to fix it where that is known. */
  fail(message: string, hint?: string): void
  note(message: string): void
  /** A line as it is, control characters excepted. */
  line(text: string): void
}

interface ProgramLogDependencies {
  readonly program: string
  readonly stderr: Output
  readonly style: TerminalStyle
}

/** Control characters in its messages are escaped. */
export function createLog({ program, stderr, style }: ProgramLogDependencies): Log {
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
