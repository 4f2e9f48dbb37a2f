/** Reads the keyboard key by key and without echo, as long as it is held. */

interface HeldKeyboard extends Disposable {
  /** Resolves once what was typed before is thrown away; what comes later counts. */
  readonly drained: Promise<void>
}

/** The byte that Ctrl-C sends. */
export const INTERRUPT = 3

/**
 * Calls `onKeys` with what is typed until it is disposed of. Each time, the terminal gets the
 * settings that it had at the start, with echo and lines switched off: consoles were seen that had
 * lost theirs during a long write.
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
