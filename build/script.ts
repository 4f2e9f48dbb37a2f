/** What every `build:*` script does: read its arguments, end on a signal, report failures, set the exit code. */
import { constants } from 'node:os'
import process from 'node:process'
import type { WriteStream } from 'node:tty'
import { hintOf, renderError } from '#kit/foundation/fault.ts'
import { UsageError } from './arguments.ts'
import { createVoice, type Voice } from '#build/voice/voice.ts'

export interface Context {
  readonly voice: Voice
  /** Aborted by Ctrl-C, by SIGTERM, and when the terminal closes. */
  readonly signal: AbortSignal
}

interface ScriptOptions<Options> {
  readonly name: string
  /** Absent: standard output. */
  readonly output?: WriteStream
  /** Null: help or the version was printed, and nothing is left to do. */
  readonly read: (argv: readonly string[]) => Options | null
  /** A signal is how it usually ends: what `run` resolves to is the exit code then, too. */
  readonly endsBySignal?: true
  /** Resolves to the exit code. */
  readonly run: (options: Options, context: Context) => Promise<number>
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Exit codes: 0 success, 1 failure, 2 wrong arguments, 128 and the signal's number when interrupted. */
export async function runScript<Options>(options: ScriptOptions<Options>): Promise<void> {
  const { name, output = process.stdout } = options
  const { stderr, env } = process
  const voice = createVoice({ stdout: output, stderr, env })
  const interruption = new AbortController()
  let code: number | null = null
  for (const signal of SIGNALS) {
    // Once: a second Ctrl-C ends the script where it stands.
    process.once(signal, () => {
      code = 128 + constants.signals[signal]
      interruption.abort()
    })
  }
  try {
    const read = options.read(process.argv.slice(2))
    const context = { voice, signal: interruption.signal }
    const result = read === null ? 0 : await options.run(read, context)
    process.exitCode = options.endsBySignal === true ? result : (code ?? result)
  } catch (error) {
    voice.line.stop()
    voice.say.error(describe(name, error))
    process.exitCode = code ?? (error instanceof UsageError ? 2 : 1)
  }
}

function describe(name: string, error: unknown): string {
  const hint = error instanceof UsageError ? `See: npx pnpm ${name} --help` : hintOf(error)
  return `${name}: ${renderError(error)}${hint === undefined ? '' : `\n  ${hint}`}`
}
