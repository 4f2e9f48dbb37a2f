/** Asks a person which image is meant where a registry has several for one processor. */
import { Writable } from 'node:stream'
import { Fault } from '../../kit/foundation/fault.ts'
import { encodeFor } from '../../kit/terminal/text/encoding.ts'
import { decideTerminalStyle } from '../../kit/terminal/text/terminal-style.ts'
import type { CommandEnvironment } from './session.ts'

type Asking = Pick<CommandEnvironment, 'env' | 'stdin' | 'stderr' | 'signal'>

const COLUMNS = [{ title: 'Image' }] as const

/**
 * Returns the reference that a person chose instead of the one that stands for several images; null
 * where `thrown` is something else, or where there is no terminal to ask on. Rejects with a Fault
 * `cancelled` where the person leaves without choosing.
 */
export async function askWhichImage(
  thrown: unknown,
  { env, stdin, stderr, signal }: Asking,
): Promise<string | null> {
  const references = thrown instanceof Fault ? thrown.instead : []
  const style = decideTerminalStyle(env, stderr.isTTY === true)
  const canAsk = style.tty && 'isTTY' in stdin && stdin.isTTY === true
  if (references.length === 0 || !canAsk || !(stderr instanceof Writable)) return null
  const { choose } = await import('../../kit/terminal/prompt/choose.ts')
  const choices = references.map((value) => ({ value, cells: [value], refusal: null }))
  return await choose(
    { message: 'Flash which of these images?', columns: COLUMNS, choices, canLeave: true },
    { input: stdin, output: stderr, style, encode: encodeFor(env) },
    { signal },
  )
}
