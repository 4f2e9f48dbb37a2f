/** Asks a person for one answer: keys by Inquirer, the screen by our painter; a plain line on a dumb terminal. */
import { PassThrough } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import type { Look, Output } from './look.ts'
import {
  decideAnswer,
  findInstant,
  moved,
  typed,
  UNTOUCHED,
  type Menu,
  type MenuAnswer,
  type MenuState,
  type Move,
} from './menu.ts'
import type { Frame, Painter, Size } from './painter.ts'

/** What is asked, and how it looks. */
export interface Question {
  readonly menu: Menu
  frame(state: MenuState, size: Size): Frame
  /** Rows of the list on one page of such a screen. */
  pageRows(size: Size): number
}

/** A question that may become another one while it is asked: news arrives, the terminal is resized. */
export interface Subject {
  now(): Question
  /** Gives what ends the listening. */
  onChange(listener: () => void): () => void
  /** Resolves when no more news will come. */
  readonly settled: Promise<void>
}

/** Ctrl-C, the end of the input, or the program's own end. */
export type Asked = MenuAnswer | { readonly kind: 'quit' }

export interface AskParts {
  readonly stdin: NodeJS.ReadStream
  readonly stdout: Output
  readonly look: Look
  readonly painter: Painter
}

/** The person's answer; what was typed before the question was shown does not count. */
export function ask(subject: Subject, parts: AskParts, signal: AbortSignal): Promise<Asked> {
  return parts.look.live ? askLive(subject, parts, signal) : askPlain(subject, parts, signal)
}

const QUIT: Asked = { kind: 'quit' }
const MOVES: Readonly<Record<string, Move>> = {
  up: 'up',
  down: 'down',
  pageup: 'page-up',
  pagedown: 'page-down',
}

async function askLive(subject: Subject, parts: AskParts, signal: AbortSignal): Promise<Asked> {
  const { stdin, painter } = parts
  // The first frame is there before what reads the keys is loaded.
  const question = subject.now()
  painter.paint(question.frame(UNTOUCHED, painter.size()))
  const ending = new AbortController()
  const resized = new EventTarget()
  let line = ''
  const onKey = (_text: string, key: { readonly name?: string; readonly ctrl?: boolean }) => {
    // Readline takes Ctrl-D on an empty line for the end, and tells nobody.
    if (key.ctrl === true && key.name === 'd' && line === '') ending.abort()
  }
  const onEnd = () => ending.abort()
  const prompt = await loadPrompt()
  stdin.prependListener('keypress', onKey).on('end', onEnd).on('close', onEnd)
  const stopResizing = painter.onResize(() => resized.dispatchEvent(new Event('resize')))
  try {
    return await prompt(
      { subject, painter, resized, onLine: (now) => (line = now) },
      {
        input: stdin,
        // Inquirer would draw everything again at each key.
        output: new PassThrough().resume(),
        signal: AbortSignal.any([signal, ending.signal]),
      },
    )
  } catch (thrown) {
    if (thrown instanceof Error && ENDINGS.has(thrown.name)) return QUIT
    throw thrown
  } finally {
    stdin.off('keypress', onKey).off('end', onEnd).off('close', onEnd)
    stopResizing()
  }
}

/** Inquirer's names for Ctrl-C and for an abort. */
const ENDINGS = new Set(['ExitPromptError', 'AbortPromptError'])

interface Config {
  readonly subject: Subject
  readonly painter: Painter
  readonly resized: EventTarget
  onLine(line: string): void
}

/** Inquirer takes half as long to load as Node takes to start, so it comes after the first frame. */
async function loadPrompt() {
  const { createPrompt, isEnterKey, useEffect, useKeypress, useState } =
    await import('@inquirer/core')
  return createPrompt<Asked, Config>(({ subject, painter, resized, onLine }, done) => {
    const [state, setState] = useState<MenuState>(UNTOUCHED)
    const [news, setNews] = useState(0)
    const question = subject.now()
    useEffect(() => {
      const redraw = () => setNews(news + 1)
      const stop = subject.onChange(redraw)
      resized.addEventListener('resize', redraw)
      return () => {
        stop()
        resized.removeEventListener('resize', redraw)
      }
    }, [news])
    const update = (next: MenuState) => {
      onLine(next.line)
      setState(next)
    }
    useKeypress((key, rl) => {
      const { menu } = question
      if (isEnterKey(key)) {
        const answer = decideAnswer(menu, state)
        if (answer.ok) done(answer.value)
        else update({ ...UNTOUCHED, complaint: answer.refusal })
        return
      }
      const move = MOVES[key.name]
      if (move !== undefined || key.name === 'escape') {
        const next = move === undefined ? UNTOUCHED : moved(menu, state, move, pageRows())
        rl.clearLine(0)
        rl.write(next.line)
        update(next)
        return
      }
      if (key.ctrl && key.name === 'l') painter.forget()
      const instant = findInstant(menu, rl.line)
      if (instant === null) update(typed(menu, state, rl.line, rl.getCursorPos().cols))
      else done(instant)
    })
    const pageRows = () => question.pageRows(painter.size())
    painter.paint(question.frame(state, painter.size()))
    return ''
  })
}

/** For terminals that can only go on: everything once, then a line. */
async function askPlain(subject: Subject, parts: AskParts, signal: AbortSignal): Promise<Asked> {
  const { createInterface } = await import('node:readline')
  const { stdin, stdout, painter } = parts
  await subject.settled
  const question = subject.now()
  let state = UNTOUCHED
  const show = () => {
    const { lines, cursor } = question.frame(state, { ...painter.size(), rows: 10_000 })
    const row = cursor?.row ?? lines.length
    const text = [...lines.slice(0, row), ...lines.slice(row + 1), lines[row] ?? '']
    stdout.write(`\n${text.map(stripVTControlCharacters).join('\n')}`)
  }
  const reader = createInterface({ input: stdin, terminal: false })
  const onAbort = () => reader.close()
  signal.addEventListener('abort', onAbort)
  try {
    show()
    for await (const line of reader) {
      const answer = decideAnswer(question.menu, typed(question.menu, UNTOUCHED, line, 0))
      if (answer.ok) return answer.value
      state = { ...UNTOUCHED, complaint: answer.refusal }
      show()
    }
    return QUIT
  } finally {
    signal.removeEventListener('abort', onAbort)
    reader.close()
  }
}
