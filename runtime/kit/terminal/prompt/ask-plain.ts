/** Asks on a terminal that cannot redraw: prints everything once, then reads a line. */
import { createInterface } from 'node:readline'
import { stripVTControlCharacters } from 'node:util'
import type { AskDependencies } from './question.ts'
import { HELP_KEY, type Asked, type Subject } from './question.ts'
import { decideAnswer, typed, UNTOUCHED } from './menu.ts'

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
