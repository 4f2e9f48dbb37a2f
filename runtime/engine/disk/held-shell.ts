/** Runs tools that inherit open files, so that a disk stays held until the last of them has ended. */
import { addAbortListener, once } from 'node:events'
import { text } from 'node:stream/consumers'
import { Fault } from '#kit/foundation/fault.ts'
import { needTools, type Finished, type Shell } from '#kit/host/shell.ts'

export type HeldShell = ReturnType<typeof createHeldShell>

export function createHeldShell(shell: Shell, held: readonly number[]) {
  async function run(argv: readonly string[], signal: AbortSignal): Promise<Finished> {
    signal.throwIfAborted()
    await needTools(shell, argv.slice(0, 1))
    const child = shell.pipe(argv, held)
    using _ = addAbortListener(signal, () => void child.kill('SIGTERM'))
    // A tool may be gone before its input ends.
    child.stdin.on('error', () => undefined)
    child.stdin.end()
    const words = Promise.all([text(child.stdout), text(child.stderr)])
    // The tool ends before a failed pipe is reported.
    words.catch(() => undefined)
    await once(child, 'close')
    const [stdout, stderr] = await words
    return { exitCode: child.exitCode ?? 1, stdout, stderr }
  }
  return {
    /** An exit code that is not in `right` is a Fault `tool-failed` with the tool's words. */
    async require(
      argv: readonly string[],
      { signal, right = [0] }: { readonly signal: AbortSignal; readonly right?: readonly number[] },
    ): Promise<void> {
      const { exitCode, stdout, stderr } = await run(argv, signal)
      signal.throwIfAborted()
      if (right.includes(exitCode)) return
      const words = stderr.trim() || stdout.trim() || `exit code ${exitCode}`
      throw new Fault('tool-failed', `${argv[0]}: ${words}`)
    },
  }
}
