/** Children that hold something of the system for us, and let go of it when their input ends, as it does with us. */
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Fault } from '../../kit/foundation/fault.ts'
import type { Shell } from '../../kit/host/shell.ts'

interface KeeperOrder {
  readonly argv: readonly string[]
  /** Open files that it inherits. */
  readonly held?: readonly number[]
  /** What there is none of where it fails, and which tool says why. */
  readonly what: string
  readonly tool: string
}

interface Keeper extends AsyncDisposable {
  readonly pid: number
  /** The first line that it prints; it may print what it reads, which begins with an empty one. */
  readonly line: string
}

/** In a session of its own, which no Ctrl-C reaches. A Fault `tool-failed` where it ends before it says a line. */
export async function startKeeper(
  shell: Shell,
  { argv, held, what, tool }: KeeperOrder,
): Promise<Keeper> {
  const child = shell.pipe(['setsid', ...argv], held)
  const { stdin, stdout, stderr, pid } = child
  const output: Buffer[] = []
  const closed = once(child, 'close').catch(() => undefined)
  stderr.on('data', (chunk: Buffer) => output.push(chunk))
  // One that cannot start says why by this event alone.
  child.once('error', ({ message }) => output.push(Buffer.from(message)))
  // A child that has ended shows it by the end of its output; a broken pipe would only say it again.
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
  // Only then all of its words are here.
  await closed
  const words = Buffer.concat(output).toString().trim() || `${tool} ended`
  throw new Fault('tool-failed', `no ${what}: ${words}`)
}
