/** Shows the status of the driven wizard on another console, until a key is pressed there. */
import { printable } from '../../kit/foundation/printable.ts'
import { WIZARD_TEXTS } from '../texts/texts.ts'
import { followLines } from './line-follower.ts'
import type { Output } from '../../kit/terminal/text/terminal-style.ts'

/** What a terminal's input can do; a pipe has no raw mode. */
export interface Keys {
  readonly isTTY?: boolean
  setRawMode?(isRaw: boolean): unknown
  once(event: 'data', listener: () => void): unknown
  off(event: 'data', listener: () => void): unknown
  resume(): unknown
  pause(): unknown
}

interface ConsoleViewer {
  readonly stdin: Keys
  readonly stdout: Output
  readonly statusPath: string
  readonly signal: AbortSignal
}

/** `key`: somebody is there and wants a wizard; `ended`: the program was asked to end. */
export async function lookOn(environment: ConsoleViewer): Promise<'key' | 'ended'> {
  const { stdin, stdout, statusPath, signal } = environment
  const keyPressed = new AbortController()
  const stop = () => keyPressed.abort()
  const { greeting, ownWizard } = WIZARD_TEXTS.viewer
  stdout.write(`${greeting}\r\n${ownWizard}\r\n\r\n`)
  stdin.setRawMode?.(true)
  stdin.once('data', stop)
  stdin.resume()
  try {
    for await (const line of followLines(statusPath, {
      signal: AbortSignal.any([signal, keyPressed.signal]),
    })) {
      stdout.write(`${printable(line)}\r\n`)
    }
  } finally {
    stdin.off('data', stop)
    stdin.setRawMode?.(false)
    stdin.pause()
  }
  return signal.aborted ? 'ended' : 'key'
}
