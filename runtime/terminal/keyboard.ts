/** The keyboard while nothing is asked: no echo, and Ctrl-C alone counts. */

export interface HeldKeyboard extends Disposable {
  readonly isHeld: boolean
}

const INTERRUPT = 3

/** Whatever is typed is thrown away, so that it can answer no later question. */
export function holdKeyboard(stdin: NodeJS.ReadStream, onInterrupt: () => void): HeldKeyboard {
  if (!stdin.isTTY) return { isHeld: false, [Symbol.dispose]: () => {} }
  const onData = (chunk: Buffer | string) => {
    if (Buffer.from(chunk).includes(INTERRUPT)) onInterrupt()
  }
  stdin.setRawMode(true)
  stdin.on('data', onData).resume()
  return {
    isHeld: true,
    [Symbol.dispose]() {
      stdin.off('data', onData).pause()
      stdin.setRawMode(false)
    },
  }
}
