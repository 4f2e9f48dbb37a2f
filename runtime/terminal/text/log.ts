/** What a program has to say besides its results: safe lines on stderr, each with the program's name. */
import { styleText } from 'node:util'
import { printable, printableLines } from '../../core/foundation/printable.ts'
import type { TerminalStyle, Output } from './terminal-style.ts'

export interface Log {
  /** A failure in one clause, and the way out where there is one. */
  fail(message: string, hint?: string): void
  /** Something that a person should know. */
  note(message: string): void
  /** A line as it is, control characters excepted. */
  line(text: string): void
}

interface LogDependencies {
  readonly program: string
  readonly stderr: Output
  readonly look: TerminalStyle
}

export function createLog({ program, stderr, look }: LogDependencies): Log {
  const write = (text: string) => stderr.write(`${text}\n`)
  return {
    fail(message, hint) {
      const [first = '', ...more] = printableLines(message.trim())
      write(`${program}: ${emphasise(first, 'red', look)}`)
      for (const line of more) write(`  ${line}`)
      if (hint !== undefined) write(`  ${printable(hint)}`)
    },
    note: (message) => write(`${program}: ${printable(message)}`),
    line: (text) => write(printable(text)),
  }
}

/** Text that stands out where colours are wanted. */
export const emphasise = (text: string, how: 'bold' | 'red', { colour }: TerminalStyle): string =>
  colour ? styleText(how, text, { validateStream: false }) : text
