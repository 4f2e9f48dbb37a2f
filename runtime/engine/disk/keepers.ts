/** Children that hold something of the system for us, and let go of it when their input ends, as it does with us. */
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Fault } from '#kit/foundation/fault.ts'
import type { Shell } from '#kit/host/shell.ts'

interface KeeperOrder {
  readonly argv: readonly string[]
  /** Open files that it inherits. */
  readonly held?: readonly number[]
  /** What is missing where it fails; `tool` says why. */
  readonly what: string
  readonly tool: string
}

interface Keeper extends AsyncDisposable {
  readonly pid: number
  /** Its first line; behind it, it may print what it reads. */
  readonly line: string
}

/**
 * In a session of its own, which no Ctrl-C reaches. A Fault `tool-failed` where it ends before its
 * first line.
 */
export async function startKeeper(
  shell: Shell,
  { argv, held, what, tool }: KeeperOrder,
): Promise<Keeper> {
  const child = shell.pipe(['setsid', ...argv], held)
  const { stdin, stdout, stderr, pid } = child
  const output: Buffer[] = []
  const closed = once(child, 'close').catch(() => undefined)
  stderr.on('data', (chunk: Buffer) => output.push(chunk))
  // A child that cannot start says why only in this event.
  child.once('error', ({ message }) => output.push(Buffer.from(message)))
  // The end of its output shows that a child has ended; a broken pipe would repeat it.
  stdin.on('error', () => undefined)
  stdin.write('\n')
  for await (const line of createInterface({ input: stdout })) {
    if (pid === undefined) break
    return {
      pid,
      line,
      async [Symbol.asyncDispose]() {
        if (child.exitCode !== null || child.signalCode !== null) return
        const gone = once(child, 'exit')
        stdin.end()
        await gone
      },
    }
  }
  // Only now its output is complete.
  await closed
  const words = Buffer.concat(output).toString().trim() || `${tool} ended`
  throw new Fault('tool-failed', `no ${what}: ${words}`)
}
