/** A question for a person: its content, how it changes while it is asked, and the answer. */
import type { TerminalStyle, Output } from '../text/terminal-style.ts'
import type { Choices, Menu, MenuAnswer, MenuState } from './menu.ts'
import type { Frame, Painter, Size } from './painter.ts'

export interface Question {
  readonly menu: Menu
  frame(state: MenuState, size: Size): Frame
  /** What `?` shows: one page after the other. */
  help(size: Size): readonly Frame[]
  /** Rows of the list on one page of such a screen. */
  pageRows(size: Size): number
  /** Asked with arrow keys instead, where lines can be redrawn; each value is a key of the menu. */
  readonly choices?: FramedChoices
}

export interface FramedChoices extends Choices<string> {
  above(size: Size): readonly string[]
  /** All of it, before the first key. */
  frame(size: Size): Frame
}

/** A question that may become another one while it is asked: something was looked up, the terminal was resized. */
export interface Subject {
  now(): Question
  /** Gives what ends the listening. */
  onChange(listener: () => void): () => void
  /** Begins what is looked up meanwhile, once; resolves when nothing will change any more. */
  settle(): Promise<void>
}

export const stillSubject = (question: Question): Subject => ({
  now: () => question,
  onChange: () => () => {},
  settle: () => Promise.resolve(),
})

/** Ctrl-C, the end of the input, or the program's own end. */
export type Asked = MenuAnswer | { readonly kind: 'quit' }

/** Inquirer's names for Ctrl-C and for an abort. */
const ENDINGS = new Set(['ExitPromptError', 'AbortPromptError'])

export const isEnding = (thrown: unknown): boolean =>
  thrown instanceof Error && ENDINGS.has(thrown.name)

/** Typed alone it shows the help. */
export const HELP_KEY = '?'

export interface AskDependencies {
  readonly stdin: NodeJS.ReadStream
  readonly stdout: Output
  readonly style: TerminalStyle
  readonly painter: Painter
}
