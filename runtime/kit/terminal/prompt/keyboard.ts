/** Reads the keyboard key by key and without echo, as long as it is held, and hears what ends a question. */
import { type Key, emitKeypressEvents } from 'node:readline'
import { PassThrough } from 'node:stream'
import { Fault } from '#kit/foundation/fault.ts'
import type { Output } from '../text/terminal-style.ts'

interface HeldKeyboard extends Disposable {
  /** Resolves once what was typed before is thrown away; what comes later counts. */
  readonly drained: Promise<void>
}

/** The byte that Ctrl-C sends. */
export const INTERRUPT = 3

/**
 * Until it is disposed of. Each time, the terminal gets the settings that it had at the start, with
 * echo and lines switched off: consoles were seen that had lost theirs during a long write.
 */
export function holdKeyboard(
  stdin: NodeJS.ReadStream,
  onKeys: (chunk: Buffer) => void,
): HeldKeyboard {
  if (!stdin.isTTY) return { drained: Promise.resolve(), [Symbol.dispose]: () => {} }
  let isDrained = false
  const onData = (chunk: Buffer) => {
    if (isDrained) onKeys(chunk)
  }
  stdin.setRawMode(true)
  stdin.on('data', onData).resume()
  const drained = new Promise<void>((resolve) => {
    // Only after the poll for input, in which what has been waiting arrives.
    setImmediate(() =>
      setImmediate(() => {
        isDrained = true
        resolve()
      }),
    )
  })
  return {
    drained,
    [Symbol.dispose]() {
      stdin.off('data', onData).pause()
      stdin.setRawMode(false)
    },
  }
}

interface HeldEnding extends Disposable {
  readonly signal: AbortSignal
  end(): void
}

/** What Inquirer does not take for an end: Ctrl-D, a lost terminal, and Esc where that leaves. */
export function holdEnding({
  stdin,
  keys = stdin,
  atEscape = false,
  isTyping = () => false,
}: {
  readonly stdin: NodeJS.ReadableStream
  /** The stream whose `keypress` events are heard; `stdin` when absent. */
  readonly keys?: NodeJS.ReadableStream
  /** Esc ends the question as well. */
  readonly atEscape?: boolean
  /** Whether something is typed: then Ctrl-D is no end. */
  isTyping?(): boolean
}): HeldEnding {
  const ending = new AbortController()
  const end = () => ending.abort()
  const onKey = (_text: string | undefined, { name, ctrl }: Key) => {
    if (name === 'escape' ? atEscape : name === 'd' && ctrl === true && !isTyping()) end()
  }
  keys.on('keypress', onKey)
  stdin.on('end', end).on('close', end)
  return {
    signal: ending.signal,
    end,
    [Symbol.dispose]() {
      keys.off('keypress', onKey)
      stdin.off('end', end).off('close', end)
    },
  }
}

/** Names keys as a program acts on them: Node decodes the sequences that terminals send. */
interface Keypress {
  readonly name?: string
  readonly sequence?: string
  readonly ctrl?: boolean
  readonly meta?: boolean
}

/** Other names of the same keys: some terminals send a line feed for Enter. */
const SAME: Readonly<Record<string, string>> = { enter: 'return', delete: 'backspace' }

/** Milliseconds to wait for the rest of a sequence that a serial line sends piece by piece. */
const ESCAPE_MS = 60
const ESCAPE = 0x1b

/**
 * Until it is disposed of. A key is a character as it was typed, or a name: `up`, `tab`, `return`,
 * `escape`, `backspace`, `f1`, `ctrl-c`. What was typed before does not count.
 */
export function readKeys(stdin: NodeJS.ReadStream, onKey: (key: string) => void): Disposable {
  const decoder = new PassThrough()
  emitKeypressEvents(decoder)
  decoder.on('keypress', (text: string | undefined, key: Keypress) => {
    nameKeys(text, key).forEach(onKey)
  })
  let held: NodeJS.Timeout | null = null
  // Node waits half a second for what may follow Escape.
  const release = () => {
    held = null
    onKey('escape')
  }
  const keyboard = holdKeyboard(stdin, (chunk) => {
    const lead = held === null ? [] : [Buffer.of(ESCAPE)]
    if (held !== null) clearTimeout(held)
    held = null
    if (lead.length === 0 && chunk.length === 1 && chunk[0] === ESCAPE) {
      held = setTimeout(release, ESCAPE_MS)
    } else {
      decoder.write(Buffer.concat([...lead, chunk]))
    }
  })
  void keyboard.drained
  const onEnd = () => onKey('ctrl-c')
  stdin.on('end', onEnd).on('close', onEnd)
  return {
    [Symbol.dispose]() {
      if (held !== null) clearTimeout(held)
      stdin.off('end', onEnd).off('close', onEnd)
      keyboard[Symbol.dispose]()
      decoder.destroy()
    },
  }
}

/** None for what is no key that a program acts on; Alt counts as Escape before the key. */
function nameKeys(text: string | undefined, key: Keypress): readonly string[] {
  const { name, ctrl, meta, sequence = '' } = key
  if (ctrl === true) return name === undefined ? [] : [`ctrl-${name}`]
  if (meta === true && name !== 'escape') {
    const typed = sequence.slice(1)
    return isTyped(typed) ? ['escape', typed] : []
  }
  return text !== undefined && isTyped(text) ? [text] : nameSpecial(name)
}

const nameSpecial = (name: string | undefined) => (name === undefined ? [] : [SAME[name] ?? name])

const isTyped = (text: string) => /^\P{Cc}$/u.test(text)

// Reads one line from a person or a pipe; a terminal does not echo it.

/** Standard input, or a test's. */
export interface LineInput extends AsyncIterable<Uint8Array | string> {
  readonly isTTY?: boolean
  setRawMode?(isRaw: boolean): unknown
  /** Lets the process end though nothing more is read. */
  pause?(): unknown
}

/** This is far more than a password. */
const MAX_LENGTH = 4096
const INTERRUPT_CHARACTER = '\u0003'
const END = '\u0004'
/** A terminal in raw mode sends a bare return. */
const LINE_END = /\r\n|[\n\r]/
const RUBOUT = '\u0008\u007f'

/** Without its line end. A Fault `cancelled` at Ctrl-C, `misuse` beyond 4096 characters. */
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
    if (line.includes(INTERRUPT_CHARACTER)) throw new Fault('cancelled', 'cancelled')
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
