/** Runs tools that inherit open files, so that a disk stays held until the last of them has ended. */
import { once } from 'node:events'
import { Fault } from '../../core/foundation/fault.ts'
import { toolMissing, type Finished, type Shell } from '../host/shell.ts'

export interface HeldShell {
  /**
   * Runs a tool to its end; an abort ends it. An exit code that is not among `right` is a Fault
   * `tool-failed` with the tool's own words.
   */
  require(argv: readonly string[], options: RequireOptions): Promise<void>
}

interface RequireOptions {
  readonly signal: AbortSignal
  /** Absent: only 0. */
  readonly right?: readonly number[]
}

export function createHeldShell(shell: Shell, held: readonly number[]): HeldShell {
  async function run(argv: readonly string[], signal: AbortSignal): Promise<Finished> {
    signal.throwIfAborted()
    const [tool = ''] = argv
    if (!(await shell.has(tool))) throw toolMissing(tool)
    const child = shell.pipe(argv, held)
    const end = () => void child.kill('SIGTERM')
    signal.addEventListener('abort', end)
    const stdout: Buffer[] = []
    const stderr: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
    // A tool that asks nothing may be gone before its input ends.
    child.stdin.on('error', () => undefined)
    child.stdin.end()
    try {
      await once(child, 'close')
    } finally {
      signal.removeEventListener('abort', end)
    }
    const exitCode = child.exitCode ?? 1
    return {
      exitCode,
      stdout: Buffer.concat(stdout).toString(),
      stderr: Buffer.concat(stderr).toString(),
    }
  }
  return {
    async require(argv, { signal, right = [0] }) {
      const { exitCode, stdout, stderr } = await run(argv, signal)
      signal.throwIfAborted()
      if (right.includes(exitCode)) return
      const words = stderr.trim() || stdout.trim() || `exit code ${exitCode}`
      throw new Fault('tool-failed', `${argv[0]}: ${words}`)
    },
  }
}
