/** Asks for one of a few choices below the screen's content; redraws when the terminal is resized. */
import { Writable } from 'node:stream'
import { Fault } from '../../core/foundation/fault.ts'
import { choose } from './choose.ts'
import { createInk } from '../text/ink.ts'
import { renderChosen } from './choices.ts'
import type { AskDependencies, Asked, FramedChoices } from './question.ts'

interface ChoiceInput {
  readonly keys: NodeJS.ReadableStream
  /** Fires `resize`. */
  readonly resized: EventTarget
}

/** The first frame of `choices` is on the screen already. */
export async function askChoice(
  choices: FramedChoices,
  { stdout, look, painter }: AskDependencies,
  { keys, resized }: ChoiceInput,
  signal: AbortSignal,
): Promise<Asked> {
  for (;;) {
    const resizing = new AbortController()
    const onResize = () => resizing.abort()
    resized.addEventListener('resize', onResize)
    const size = painter.size()
    const write = (chunk: Buffer, _encoding: unknown, done: () => void) => {
      stdout.write(chunk.toString())
      done()
    }
    const output = Object.assign(new Writable({ write }), size)
    // What stdout gets is encoded on the way.
    const terminal = { input: keys, output, look, encode: (text: string) => text }
    try {
      const key = await choose(choices, terminal, {
        signal: AbortSignal.any([signal, resizing.signal]),
        isCleared: true,
      })
      const style = { ...look, ink: createInk(look) }
      const lines = [...choices.above(size), renderChosen(choices, key, style)]
      painter.paint({ lines, cursor: { row: lines.length - 1, column: 0 } })
      return { kind: 'key', key }
    } catch (thrown) {
      if (!(thrown instanceof Fault)) throw thrown
      if (signal.aborted || !resizing.signal.aborted) return { kind: 'quit' }
      painter.paint(choices.frame(painter.size()))
    } finally {
      resized.removeEventListener('resize', onResize)
    }
  }
}
