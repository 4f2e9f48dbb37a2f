/** The flasher program as a process of its own, with an image on its standard input. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('../../../runtime/bin/flasher.mjs', import.meta.url))

export interface RunningFlash {
  readonly child: ChildProcess
  /** When the program said that it started; never when it refused to. */
  readonly started: Promise<void>
  /** The exit code, or the signal that ended it; and the names of all events. */
  readonly ended: Promise<{
    readonly by: number | string | null
    readonly events: readonly string[]
  }>
}

/** Starts `flasher flash --yes` for what the chunks hold. */
export function startFlash(
  chunks: AsyncIterable<Buffer> | Iterable<Buffer>,
  argv: readonly string[],
): RunningFlash {
  const flags = ['flash', '--image', '-', '--yes', '--progress', 'ndjson', ...argv]
  const child = spawn(process.execPath, [PROGRAM, ...flags], { stdio: ['pipe', 'pipe', 'ignore'] })
  const events: string[] = []
  const { promise: started, resolve } = Promise.withResolvers<void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    events.push(String(/"event": ?"(\w+)"/.exec(line)?.[1]))
    resolve()
  })
  // It fails when the program ends early, as it is meant to here.
  pipeline(Readable.from(chunks), child.stdin).catch(() => undefined)
  const ended = once(child, 'close').then(() => ({
    by: child.signalCode ?? child.exitCode,
    events,
  }))
  return { child, started, ended }
}
