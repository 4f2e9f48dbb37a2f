/** Asks for one of a few choices below the screen's content; redraws when the terminal is resized. */
import { Writable } from 'node:stream'
import { Fault } from '#kit/foundation/fault.ts'
import { choose } from './choose.ts'
import { createInk } from '../text/terminal-style.ts'
import { renderChosen } from './choices.ts'
import type { AskDependencies, Asked, FramedChoices } from './question.ts'

interface ChoiceInput {
  readonly keys: NodeJS.ReadableStream
  /** Fires `resize`, and `help` when that is asked for. */
  readonly events: EventTarget
  /** Shows the help until the person has read it. */
  showHelp(until: AbortSignal): Promise<void>
}

/** The first frame of `choices` is on the screen already. */
export async function askChoice(
  choices: FramedChoices,
  { stdout, style, painter }: AskDependencies,
  { keys, events, showHelp }: ChoiceInput,
  signal: AbortSignal,
): Promise<Asked> {
  for (;;) {
    const interrupting = new AbortController()
    const onEvent = ({ type }: Event) => interrupting.abort(type)
    events.addEventListener('resize', onEvent)
    events.addEventListener('help', onEvent)
    const size = painter.size()
    const write = (chunk: Buffer, _encoding: unknown, done: () => void) => {
      stdout.write(chunk.toString())
      done()
    }
    const output = Object.assign(new Writable({ write }), size)
    // What stdout gets is encoded on the way.
    const terminal = { input: keys, output, style, encode: (text: string) => text }
    try {
      const key = await choose(choices, terminal, {
        signal: AbortSignal.any([signal, interrupting.signal]),
        isCleared: true,
      })
      const drawn = { ...style, ink: createInk(style) }
      const lines = [...choices.above(size), renderChosen(choices, key, drawn)]
      painter.paint({ lines, cursor: { row: lines.length - 1, column: 0 } })
      return { kind: 'key', key }
    } catch (thrown) {
      if (!(thrown instanceof Fault)) throw thrown
      if (signal.aborted || !interrupting.signal.aborted) return { kind: 'quit' }
      if (interrupting.signal.reason === 'help') await showHelp(signal)
      if (signal.aborted) return { kind: 'quit' }
      painter.forget()
      painter.paint(choices.frame(painter.size()))
    } finally {
      events.removeEventListener('resize', onEvent)
      events.removeEventListener('help', onEvent)
    }
  }
}
