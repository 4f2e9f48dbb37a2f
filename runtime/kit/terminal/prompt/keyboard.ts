/** Reads the keyboard key by key and without echo, as long as it is held, and hears what ends a question. */
import type { Key } from 'node:readline'

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

interface EndingOptions {
  readonly stdin: NodeJS.ReadableStream
  /** The stream whose `keypress` events are heard; `stdin` when absent. */
  readonly keys?: NodeJS.ReadableStream
  /** Esc ends the question as well. */
  readonly atEscape?: boolean
  /** Whether something is typed: then Ctrl-D is no end. */
  isTyping?(): boolean
}

interface HeldEnding extends Disposable {
  readonly signal: AbortSignal
  end(): void
}

/**
 * What Inquirer does not take for the end of a question: Ctrl-D, a terminal that is gone, and Esc
 * where that leaves.
 */
export function holdEnding({
  stdin,
  keys = stdin,
  atEscape = false,
  isTyping = () => false,
}: EndingOptions): HeldEnding {
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
