/** Runs the program of one step: its output goes to a log, and nothing that it started outlives it. */
import { open, readFile } from 'node:fs/promises'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { $ } from 'zx/core'
import { INTERRUPTED } from './progress.ts'

interface ChildOptions {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly log: string
  /** A file that is locked while the program runs, so that two builders do not share a folder at once; null: none. */
  readonly lock: string | null
  /** Ends the program. */
  readonly signal: AbortSignal
}

/** How much of a log is shown when a step has failed. */
const TAIL = { lines: 25, bytes: 16 * 1024 }

/** Null when it succeeded; else the reason, for people. */
export async function runChild(options: ChildOptions): Promise<string | null> {
  const { argv, cwd, env, log, lock, signal } = options
  await using file = await open(log, 'w')
  await file.write(`${argv.join(' ')}\n\n`)
  const run = $({
    cwd,
    env: { ...process.env, TZ: 'UTC', LC_ALL: 'C.UTF-8', SOURCE_DATE_EPOCH: undefined, ...env },
    stdio: ['ignore', file.fd, file.fd],
    // A process group of its own, so that one signal reaches all that it started.
    detached: true,
    nothrow: true,
    quiet: true,
  })
  const child = run`${lock === null ? argv : ['flock', lock, ...argv]}`
  let ending: Promise<void> | null = null
  const end = () => {
    ending ??= child.pid === undefined ? null : endGroup(child.pid)
  }
  signal.addEventListener('abort', end)
  const { exitCode, signal: killer } = await child
  signal.removeEventListener('abort', end)
  if (ending !== null) await ending
  if (signal.aborted) return INTERRUPTED
  return describeEnd(argv[0] ?? '', exitCode, killer)
}

/** What a shell answers for a program that is not there, or cannot be run. */
const NOT_STARTED = [126, 127]

function describeEnd(program: string, code: number | null, signal: string | null): string | null {
  if (code === 0) return null
  if (code === null || signal !== null) return `was ended by ${signal ?? 'a signal'}`
  return NOT_STARTED.includes(code) ? `${program} did not start` : `ended with exit code ${code}`
}

/** Each signal, and for how long the programs may tidy up after it. */
const SIGNALS = [
  { signal: 'SIGTERM', milliseconds: 10_000 },
  { signal: 'SIGKILL', milliseconds: 2000 },
] as const
const POLL_MS = 50

async function endGroup(pid: number): Promise<void> {
  for (const { signal, milliseconds } of SIGNALS) {
    signalGroup(pid, signal)
    for (let waited = 0; waited < milliseconds; waited += POLL_MS) {
      if (!signalGroup(pid, 0)) return
      await pause(POLL_MS)
    }
  }
}

/** Whether anybody in the group was there to receive it. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

/** The last lines of a log, blank ones left out. */
export async function readTail(log: string): Promise<readonly string[]> {
  const text = await readFile(log, 'utf8').catch(() => '')
  const lines = text.slice(-TAIL.bytes).split(/[\r\n]+/)
  return lines.filter((line) => line.trim() !== '').slice(-TAIL.lines)
}
