/** One run of a command: its arguments, its output, and its exit code on failure. */
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import type { Command, CommandLine } from '#kit/terminal/command/rules/command.ts'
import { Fault, hintOf, renderError } from '#kit/foundation/fault.ts'
import { printableLines } from '#kit/foundation/printable.ts'
import type { Environment } from '#kit/host/shell.ts'
import type { SourcesOptions } from '#engine/image/sources/sources.ts'
import { DEBUG_HINT } from '#kit/terminal/command/program.ts'
import { createLog, type Log } from '#kit/terminal/text/log.ts'
import {
  decideTerminalStyle,
  type TerminalStyle,
  type Output,
} from '#kit/terminal/text/terminal-style.ts'
import type { ProgressMode } from '#flasher/text/progress.ts'
import { progressModeOf } from './rules/commands.ts'
import {
  errorFields,
  renderEnvelope,
  type DocumentFields,
  EXIT,
  FAILED,
} from './rules/exit-codes.ts'

export interface CommandEnvironment {
  /** Without the program's own name. */
  readonly argv: readonly string[]
  readonly env: Environment
  readonly stdin: NonNullable<SourcesOptions['stdin']>
  readonly stdout: Output
  readonly stderr: Output
  readonly isRoot: boolean
  /** Aborted when the process is asked to end. */
  readonly signal: AbortSignal
  /** Seconds on a steady clock. */
  readonly now: () => number
}

export interface CommandOutput {
  /** Stdout gets a document instead of text. */
  readonly json: boolean
  readonly progress: ProgressMode
  readonly log: Log
  /** The style of stderr. */
  readonly style: TerminalStyle
  document(fields: DocumentFields): void
  /** Reports on stderr, with `--json` also as a document. Returns the exit code. */
  fail(
    thrown: unknown,
    options?: {
      readonly known?: DocumentFields
      /** The message is printed already; only the hint is missing. */
      readonly isPrinted?: boolean
    },
  ): number
}

export interface CommandSession extends CommandOutput {
  readonly given: Arguments
  readonly environment: CommandEnvironment
  readonly line: CommandLine
}

export function createSession(
  given: Arguments,
  environment: CommandEnvironment,
  line: CommandLine,
): CommandSession {
  const { words } = given.command
  const json = given.switches.has('json')
  const progress = progressModeOf(given)
  const output = createOutput({ program: line.program, words, json, progress }, environment)
  return { ...output, given, environment, line }
}

export function createOutput(
  {
    program,
    words,
    json,
    progress,
  }: Pick<CommandOutput, 'json' | 'progress'> &
    Pick<Command, 'words'> & { readonly program: string },
  { stdout, stderr, env, signal }: Pick<CommandEnvironment, 'env' | 'stdout' | 'stderr' | 'signal'>,
): CommandOutput {
  const style = decideTerminalStyle(env, stderr.isTTY === true)
  const log = createLog({ program, stderr, style })
  // The last line of a stream of JSON lines is one line, too.
  const oneLine = progress === 'ndjson'
  const document = (fields: DocumentFields) => {
    stdout.write(renderEnvelope({ words }, fields, { oneLine }))
  }
  return {
    json,
    progress,
    log,
    style,
    document,
    fail(thrown, { known = {}, isPrinted = false } = {}) {
      const { code, message, hint } = describe(asCancel(thrown, signal))
      if (!isPrinted) log.fail(message, hint)
      else if (hint !== undefined) log.line(`  ${hint}`)
      if (env['FLASHER_DEBUG'] === '1') printableLines(renderStack(thrown)).forEach(log.line)
      if (json) document({ ...known, ...errorFields(code, message, hint) })
      return code === 'unexpected' ? FAILED : EXIT[code]
    },
  }
}

/** After an abort any error becomes the Fault `cancelled`; other errors stay. */
export const asCancel = (thrown: unknown, signal: AbortSignal): unknown =>
  signal.aborted && !(thrown instanceof Fault)
    ? new Fault('cancelled', 'cancelled', { cause: thrown })
    : thrown

const describe = (thrown: unknown) =>
  thrown instanceof Fault
    ? { code: thrown.code, message: thrown.message, hint: hintOf(thrown) }
    : {
        code: 'unexpected' as const,
        message: renderError(thrown),
        hint: hintOf(thrown) ?? DEBUG_HINT,
      }

function renderStack(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  const cause = thrown.cause === undefined ? '' : `\ncaused by: ${renderStack(thrown.cause)}`
  return `${thrown.stack ?? thrown.message}${cause}`
}
