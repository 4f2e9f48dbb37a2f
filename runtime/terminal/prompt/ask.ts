/** Asks a person for one answer: a list that is redrawn key by key, or plain lines on a dumb terminal. */
import type { AskDependencies } from './question.ts'
import type { Subject, Asked } from './question.ts'
import { PassThrough } from 'node:stream'
import { holdKeyboard } from './keyboard.ts'
import { UNTOUCHED } from './menu.ts'

/** The person's answer; what was typed before the question was shown does not count. */
export async function ask(
  subject: Subject,
  parts: AskDependencies,
  signal: AbortSignal,
): Promise<Asked> {
  if (parts.look.live) return askLive(subject, parts, signal)
  const { askPlain } = await import('./ask-plain.ts')
  return askPlain(subject, parts, signal)
}

const QUIT: Asked = { kind: 'quit' }

async function askLive(
  subject: Subject,
  parts: AskDependencies,
  signal: AbortSignal,
): Promise<Asked> {
  const { stdin, painter } = parts
  const ending = new AbortController()
  const resized = new EventTarget()
  const keys = new PassThrough()
  using keyboard = holdKeyboard(stdin, (chunk) => keys.write(chunk))
  await keyboard.drained
  let line = ''
  keys.on('keypress', (_text: string, key: Key) => {
    // Readline takes Ctrl-D on an empty line for the end, and tells nobody.
    if (key.ctrl === true && key.name === 'd' && line === '') ending.abort()
  })
  const onEnd = () => ending.abort()
  stdin.on('end', onEnd).on('close', onEnd)
  const stopResizing = painter.onResize(() => resized.dispatchEvent(new Event('resize')))
  try {
    painter.paint(subject.now().frame(UNTOUCHED, painter.size()))
    // Inquirer takes half as long to load as Node takes to start: the first frame is there before it.
    const { listPrompt } = await import('./list-prompt.ts')
    return await listPrompt(
      { subject, painter, resized, onLine: (now) => (line = now) },
      {
        input: keys,
        // It would draw everything again at each key.
        output: new PassThrough().resume(),
        signal: AbortSignal.any([signal, ending.signal]),
      },
    )
  } catch (thrown) {
    if (thrown instanceof Error && ENDINGS.has(thrown.name)) return QUIT
    throw thrown
  } finally {
    stdin.off('end', onEnd).off('close', onEnd)
    stopResizing()
  }
}

interface Key {
  readonly name?: string
  readonly ctrl?: boolean
}

/** Inquirer's names for Ctrl-C and for an abort. */
const ENDINGS = new Set(['ExitPromptError', 'AbortPromptError'])
