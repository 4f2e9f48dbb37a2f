/** Emphasis in the sixteen colours that every terminal has; none if colours are off. */
import { styleText } from 'node:util'
import type { TerminalStyle } from './terminal-style.ts'

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
