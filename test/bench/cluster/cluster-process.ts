/** A program that is started again when it ends, as systemd does, and what it said of itself. */
import { fileURLToPath } from 'node:url'
import { linger } from '#kit/host/watch.ts'
import { readProcessorTimes, type ProcessorTimes } from '#test/support/processor-times.ts'
import { startFlasher, type Started } from '#test/support/terminal/flasher.ts'

const AGAIN_MS = 1000
const CLOCK = new URL('cluster-clock.ts', import.meta.url).href
const programOf = (name: string) =>
  fileURLToPath(new URL(`../../../runtime/bin/${name}.ts`, import.meta.url))

export type Role = 'away' | 'starts' | 'stands-by' | 'catches-up' | 'opens' | 'leads'

interface Program {
  readonly name: 'flasher-web' | 'flasher-cache'
  readonly env: Readonly<Record<string, string>>
  /** This is called at each change of what it does. */
  onRole?(role: Role, times: ProcessorTimes): void
}

export type KeptProcess = ReturnType<typeof keepRunning>

/** What a server says when its role changes. */
const SAYINGS: readonly (readonly [text: string, role: Role])[] = [
  ['standing by:', 'stands-by'],
  ['takes the lease', 'catches-up'],
  ['caught up in', 'opens'],
  ['Pages:', 'leads'],
]

const MAX_LINES = 4000

/** Starts it, and again a second after each end, until it is disposed of. */
export function keepRunning({ name, env, onRole }: Program) {
  const [ends, lines]: [string[], string[]] = [[], []]
  const over = new AbortController()
  let [role, clock, awayUntil]: [Role, number, number] = ['away', 0, 0]
  let started: Started = start()
  const kept = keep()

  function become(next: Role, times: ProcessorTimes) {
    role = next
    onRole?.(next, times)
  }

  function start(): Started {
    const made = startFlasher([], {
      program: programOf(name),
      env: { ...env, BENCH_CLOCK_STEP: String(clock) },
      nodeOptions: ['--import', CLOCK],
    })
    become('starts', readProcessorTimes(made.child.pid))
    for (const stream of [made.child.stdout, made.child.stderr]) {
      stream?.on('data', (text: string) => {
        const news = text.trimEnd().split('\n')
        lines.push(...news)
        lines.splice(0, Math.max(0, lines.length - MAX_LINES))
        for (const line of news) {
          const said = SAYINGS.find(([saying]) => line.includes(saying))
          if (said !== undefined && made === started)
            become(said[1], readProcessorTimes(made.child.pid))
        }
      })
    }
    return made
  }

  async function keep(): Promise<void> {
    while (!over.signal.aborted) {
      const { code } = await started.ended
      become('away', readProcessorTimes(started.child.pid))
      ends.push(String(code))
      lines.push(`--- ended with ${code}`)
      await linger(Math.max(AGAIN_MS, awayUntil - performance.now()), over.signal)
      if (!over.signal.aborted) started = start()
    }
  }

  return {
    pid: () => started.child.pid ?? 0,
    role: () => role,
    /** The exit codes so far. */
    ends: (): readonly string[] => ends,
    lines: (): readonly string[] => lines,
    kill: (signal: NodeJS.Signals) => started.child.kill(signal),
    /** Ends it, and starts it again after so many seconds. */
    end(signal: NodeJS.Signals, seconds: number) {
      awayUntil = performance.now() + seconds * 1000
      started.child.kill(signal)
    },
    setClock() {
      clock += 1
      started.child.kill('SIGUSR2')
    },
    async [Symbol.asyncDispose]() {
      over.abort()
      started.child.kill('SIGCONT')
      started.child.kill('SIGTERM')
      const end = setTimeout(() => started.child.kill('SIGKILL'), 20_000)
      await kept
      clearTimeout(end)
    },
  }
}
