/** Shows the status of the driven wizard on another console, until a key is pressed there. */
import { open } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { StringDecoder } from 'node:string_decoder'
import { printable } from '#kit/foundation/printable.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import type { Output } from '#kit/terminal/text/terminal-style.ts'

/** A pipe has no raw mode. */
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

/** `key`: a person wants a wizard; `ended`: the program was asked to end. */
export async function viewConsole(environment: ConsoleViewer): Promise<'key' | 'ended'> {
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

interface FollowOptions {
  readonly signal: AbortSignal
  /** Milliseconds. */
  readonly everyMs?: number
}

const MAX_BYTES = 65_536

/** Whole lines only; waits for the file, and ends with the signal. */
export async function* followLines(
  path: string,
  { signal, everyMs = 300 }: FollowOptions,
): AsyncGenerator<string, void, undefined> {
  const decoder = new StringDecoder('utf8')
  const into = Buffer.alloc(MAX_BYTES)
  let at = 0
  let rest = ''
  while (!signal.aborted) {
    const bytes = await readFrom(path, at, into)
    at += bytes
    rest += decoder.write(into.subarray(0, bytes))
    const lines = rest.split('\n')
    rest = lines.pop() ?? ''
    yield* lines
    if (bytes === 0) await sleep(everyMs, undefined, { signal }).catch(() => undefined)
  }
}

async function readFrom(path: string, at: number, into: Buffer): Promise<number> {
  try {
    await using file = await open(path)
    const { bytesRead } = await file.read(into, 0, into.length, at)
    return bytesRead
  } catch {
    return 0 // it comes, or it does not
  }
}
