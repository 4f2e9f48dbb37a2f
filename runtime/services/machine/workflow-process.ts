/** Runs a workflow's program and everything that it starts, and ends them together. */
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { Readable } from 'node:stream'
import { settle } from '../host/watch.ts'

interface WorkflowProcess {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Ends it: SIGTERM, and SIGKILL a moment later. */
  readonly signal: AbortSignal
  onOutput(bytes: Uint8Array): Promise<void>
}

/** How long it may clear up. Less than the service manager waits for us. */
const GRACE_MS = 4000
/** A program that left the group may keep our pipes open. */
const DRAIN_MS = 1000

/** Answers the exit code (128 and more: ended by a signal). */
export async function runWorkflowProcess(options: WorkflowProcess): Promise<number> {
  const { argv, cwd, env, signal, onOutput } = options
  const [program = '', ...words] = argv
  signal.throwIfAborted()
  // Not zx: the program has a process group of its own, and is ended in two steps.
  const child = spawn(program, words, {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const signalAll = (name: NodeJS.Signals) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, name)
    } catch {
      // Nothing of the group is left.
    }
  }
  let killing: NodeJS.Timeout | undefined
  const interrupt = () => {
    signalAll('SIGTERM')
    killing = setTimeout(signalAll, GRACE_MS, 'SIGKILL')
  }
  signal.addEventListener('abort', interrupt, { once: true })
  const drained = Promise.all([child.stdout, child.stderr].map((pipe) => drain(pipe, onOutput)))
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', (code, name) => {
        resolve(code ?? 128 + (name === null ? 0 : constants.signals[name]))
      })
    })
  } finally {
    clearTimeout(killing)
    signal.removeEventListener('abort', interrupt)
    // What it left running in the background ends with it.
    signalAll('SIGKILL')
    await settle(drained, DRAIN_MS)
    child.stdout.destroy()
    child.stderr.destroy()
  }
}

/** The program waits where the log is slower than it is. */
async function drain(pipe: Readable, onOutput: WorkflowProcess['onOutput']): Promise<void> {
  for await (const bytes of pipe) await onOutput(bytes)
}
