/** Asks a person for one answer: with a list that is redrawn at each key, or plain lines on a dumb terminal. */
import { PassThrough } from 'node:stream'
import {
  HELP_KEY,
  isEnding,
  type AskDependencies,
  type Asked,
  type Question,
  type Subject,
} from './question.ts'
import { holdEnding, holdKeyboard, INTERRUPT } from './keyboard.ts'
import type { Painter } from './painter.ts'
import { UNTOUCHED, type Menu, decideAnswer, typed } from './menu.ts'
import { createInterface } from 'node:readline'
import { stripVTControlCharacters } from 'node:util'

/** What was typed before the question was shown does not count. */
export async function ask(
  subject: Subject,
  dependencies: AskDependencies,
  signal: AbortSignal,
): Promise<Asked> {
  if (dependencies.style.tty) return askOnTerminal(subject, dependencies, signal)
  return askPlain(subject, dependencies, signal)
}

/** Reads the keys of a choice's help, which Inquirer knows nothing of. */
function createHelpReader(help: Question['help'], painter: Painter, events: EventTarget) {
  let turn: (() => void) | null = null
  return {
    /** Whether the help has taken what was typed. */
    take(chunk: Buffer, quit: () => void): boolean {
      if (turn === null) {
        const isAsked = chunk.toString() === HELP_KEY
        if (isAsked) events.dispatchEvent(new Event('help'))
        return isAsked
      }
      if (chunk.includes(INTERRUPT)) quit()
      turn()
      return true
    },
    /** One page after the other, each until a key. */
    async show(until: AbortSignal): Promise<void> {
      for (let page = 0; !until.aborted; page += 1) {
        const frame = help(painter.size())[page]
        if (frame === undefined) break
        painter.forget()
        painter.paint(frame)
        const { promise, resolve } = Promise.withResolvers<void>()
        turn = resolve
        until.addEventListener('abort', () => resolve(), { once: true })
        await promise
      }
      turn = null
    },
  }
}

const QUIT: Asked = { kind: 'quit' }

async function askOnTerminal(
  subject: Subject,
  dependencies: AskDependencies,
  signal: AbortSignal,
): Promise<Asked> {
  const { stdin, painter } = dependencies
  const events = new EventTarget()
  const keys = new PassThrough()
  const { menu, choices, help } = subject.now()
  const reader = createHelpReader(help, painter, events)
  let line = ''
  // Readline closes silently at Ctrl-D on an empty line.
  using ending = holdEnding({ stdin, keys, isTyping: () => line !== '' })
  using keyboard = holdKeyboard(stdin, (chunk) => {
    if (choices === undefined) keys.write(chunk)
    else if (!reader.take(chunk, ending.end)) keys.write(bracketLetters(chunk.toString(), menu))
  })
  await keyboard.drained
  const stopResizing = painter.onResize(() => events.dispatchEvent(new Event('resize')))
  try {
    const size = painter.size()
    painter.paint(choices?.frame(size) ?? subject.now().frame(UNTOUCHED, size))
    // Inquirer takes half as long to load as Node takes to start: the first frame is there before it,
    // and keys are read before anything is looked up.
    if (choices !== undefined) {
      const { askChoice } = await import('./choose.ts')
      void subject.settle()
      const until = AbortSignal.any([signal, ending.signal])
      return await askChoice(choices, dependencies, { keys, events, showHelp: reader.show }, until)
    }
    const { listPrompt } = await import('./list-prompt.ts')
    void subject.settle()
    return await listPrompt(
      { subject, painter, resized: events, onInput: (now) => (line = now) },
      {
        input: keys,
        // It would draw everything again at each key.
        output: new PassThrough().resume(),
        signal: AbortSignal.any([signal, ending.signal]),
      },
    )
  } catch (thrown) {
    if (isEnding(thrown)) return QUIT
    throw thrown
  } finally {
    if (choices !== undefined) painter.forget()
    stopResizing()
  }
}

/** Choices begin with their letter in brackets, and Inquirer goes to the one that begins as typed. */
const bracketLetters = (text: string, { keys }: Menu) =>
  text.includes('\u001b')
    ? text
    : text.replaceAll(/[a-z]/gi, (letter) => {
        const starts = (word: string) => word.startsWith(letter.toLowerCase())
        const named = keys.find(({ key, words }) => starts(key) || words.some(starts))
        return named === undefined ? '' : `[${named.key}`
      })

// Asks on a terminal that cannot redraw: prints everything once, then reads a line.

/** It waits until nothing more is being looked up, as nothing can be added later. */
export async function askPlain(
  subject: Subject,
  dependencies: AskDependencies,
  signal: AbortSignal,
): Promise<Asked> {
  const { stdin, stdout, painter } = dependencies
  await subject.settle()
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
      if (line.trim() === HELP_KEY) {
        const help = question
          .help({ ...painter.size(), rows: 10_000 })
          .flatMap(({ lines }) => lines)
        stdout.write(`\n${help.slice(0, -1).map(stripVTControlCharacters).join('\n')}`)
        state = UNTOUCHED
        show()
        continue
      }
      const answer = decideAnswer(question.menu, typed(question.menu, UNTOUCHED, line, 0))
      if (answer.ok) return answer.value
      state = { ...UNTOUCHED, complaint: answer.refusal }
      show()
    }
    return { kind: 'quit' }
  } finally {
    signal.removeEventListener('abort', onAbort)
    reader.close()
  }
}
