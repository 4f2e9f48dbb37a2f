/** Runs a workflow's program and everything that it starts, and ends them together. */
import { spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { waitForGroup } from '#kit/host/shell.ts'
import { settle } from '#kit/host/watch.ts'

export interface WorkflowProcess {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** SIGTERM, and SIGKILL a moment later. */
  readonly signal: AbortSignal
  onOutput(bytes: Uint8Array): Promise<void>
}

/** The grace is shorter than the service manager's for us. */
const INTERRUPTION = { by: 'SIGTERM', graceMs: 4000, endsRest: true } as const
/** A program that left the group may keep our pipes open. */
const DRAIN_MS = 1000

/** Returns the exit code (128 and more: ended by a signal). */
export async function runWorkflowProcess(options: WorkflowProcess): Promise<number> {
  const { argv, cwd, env, signal, onOutput } = options
  const [program = '', ...words] = argv
  signal.throwIfAborted()
  // Not zx: the program needs its own process group and ends in two steps.
  const child = spawn(program, words, {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const drained = Promise.all([child.stdout, child.stderr].map((pipe) => drain(pipe, onOutput)))
  try {
    return await waitForGroup(child, signal, INTERRUPTION)
  } finally {
    await settle(drained, DRAIN_MS)
    child.stdout.destroy()
    child.stderr.destroy()
  }
}

/** The program waits if the log is slower. */
async function drain(pipe: Readable, onOutput: WorkflowProcess['onOutput']): Promise<void> {
  for await (const bytes of pipe) await onOutput(bytes)
}
