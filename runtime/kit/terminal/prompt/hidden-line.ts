/** Reads one line from a person or a pipe; a terminal does not echo it. */
import { Fault } from '#kit/foundation/fault.ts'
import type { Output } from '../text/terminal-style.ts'

/** Standard input, or a test's. */
export interface LineInput extends AsyncIterable<Uint8Array | string> {
  readonly isTTY?: boolean
  setRawMode?(isRaw: boolean): unknown
  /** Lets the process end though nothing more is read. */
  pause?(): unknown
}

/** This is far more than a password. */
const MAX_LENGTH = 4096
const INTERRUPT = '\u0003'
const END = '\u0004'
/** A terminal in raw mode sends a bare return. */
const LINE_END = /\r\n|[\n\r]/
const RUBOUT = '\u0008\u007f'

/**
 * Without its line end. Rejects with a Fault: `cancelled` at Ctrl-C, `misuse` at a line of more
 * than 4096 characters.
 */
export async function readHiddenLine(
  stdin: LineInput,
  stderr: Output,
  question: string,
): Promise<string> {
  const isTerminal = stdin.isTTY === true && stdin.setRawMode !== undefined
  if (isTerminal) stderr.write(question)
  if (isTerminal) stdin.setRawMode?.(true)
  try {
    return await readLine(stdin)
  } finally {
    if (isTerminal) stdin.setRawMode?.(false)
    if (isTerminal) stderr.write('\n')
    stdin.pause?.()
  }
}

async function readLine(stdin: LineInput): Promise<string> {
  const decoder = new TextDecoder()
  let line = ''
  // Left by `break`, the stream could not be read a second time.
  const chunks = stdin[Symbol.asyncIterator]()
  for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) {
    const chunk = next.value
    const text = typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })
    const [first = '', ...more] = `${line}${text}`.replaceAll(END, '\n').split(LINE_END)
    line = first
    if (line.includes(INTERRUPT)) throw new Fault('cancelled', 'cancelled')
    if (line.length > MAX_LENGTH) throw new Fault('misuse', 'the line is too long')
    if (more.length > 0) break
  }
  return rubOut(line)
}

/** What is left after each backspace has taken the letter before it. */
function rubOut(line: string): string {
  let left: readonly string[] = []
  for (const letter of line) left = RUBOUT.includes(letter) ? left.slice(0, -1) : [...left, letter]
  return left.join('')
}
