/** One run of a command: its arguments, its output, and its exit code on failure. */
import type { Arguments } from '../../kit/terminal/command/rules/arguments.ts'
import type { Command, CommandLine } from '../../kit/terminal/command/rules/command.ts'
import { Fault, hintOf, renderError } from '../../kit/foundation/fault.ts'
import { printableLines } from '../../kit/foundation/printable.ts'
import type { Environment } from '../../kit/host/shell.ts'
import type { SourcesOptions } from '../../engine/image/sources/sources.ts'
import { DEBUG_HINT } from '../../kit/terminal/command/program.ts'
import { createLog, type Log } from '../../kit/terminal/text/log.ts'
import {
  decideTerminalStyle,
  type TerminalStyle,
  type Output,
} from '../../kit/terminal/text/terminal-style.ts'
import type { ProgressMode } from '../text/progress.ts'
import { progressModeOf } from './rules/commands.ts'
import { errorFields, renderEnvelope, type DocumentFields } from './rules/envelope.ts'
import { EXIT, FAILED } from './rules/exit-codes.ts'

/** What a process hands to its program, and nothing else of the environment outside. */
export interface CommandEnvironment {
  /** The arguments without the program's own name. */
  readonly argv: readonly string[]
  readonly env: Environment
  readonly stdin: NonNullable<SourcesOptions['stdin']>
  readonly stdout: Output
  readonly stderr: Output
  readonly isRoot: boolean
  /** This signal is aborted when the process is asked to end. */
  readonly signal: AbortSignal
  /** Seconds on a steady clock. */
  readonly now: () => number
}

type Streams = Pick<CommandEnvironment, 'env' | 'stdout' | 'stderr' | 'signal'>

/** What a command says, and where: for a person, or for a program that reads a document. */
export interface CommandOutput {
  /** Whether stdout gets a document instead of text. */
  readonly json: boolean
  readonly progress: ProgressMode
  readonly log: Log
  /** The style of stderr. */
  readonly style: TerminalStyle
  /** The JSON document on stdout. */
  document(fields: DocumentFields): void
  /**
   * Reports why a command failed: on stderr, and with `--json` as a document with its `error`.
   * `known`: the document's fields as far as they were known by then. Returns the exit code.
   */
  fail(thrown: unknown, options?: FailOptions): number
}

export interface CommandSession extends CommandOutput {
  readonly given: Arguments
  readonly environment: CommandEnvironment
  /** Everything that the program offers. */
  readonly line: CommandLine
}

interface FailOptions {
  readonly known?: DocumentFields
  /** The message has been printed already: only the hint is missing. */
  readonly isPrinted?: boolean
}

/** Creates what a command gets: its arguments, its environment and its output. */
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

interface Speaker extends Pick<CommandOutput, 'json' | 'progress'>, Pick<Command, 'words'> {
  readonly program: string
}

/**
 * Creates the output of a command: its log on standard error, its document on standard output.
 * `fail` reports what was thrown and returns the exit code for it.
 */
export function createOutput(
  { program, words, json, progress }: Speaker,
  { stdout, stderr, env, signal }: Streams,
): CommandOutput {
  const style = decideTerminalStyle(env, stderr.isTTY === true)
  const log = createLog({ program, stderr, style })
  // The last line of a stream of JSON lines is one line too.
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

/**
 * Returns the Fault `cancelled` for whatever an abort broke off, in whichever words it came;
 * anything else stays as it is.
 */
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

/** The stack and those of all causes. */
function renderStack(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  const cause = thrown.cause === undefined ? '' : `\ncaused by: ${renderStack(thrown.cause)}`
  return `${thrown.stack ?? thrown.message}${cause}`
}
