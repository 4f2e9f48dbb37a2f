/** Runs a program: parses its arguments, starts the command that they name, and reports errors. */
import { parseArguments, renderMisuse, type Arguments, type Misuse } from './rules/arguments.ts'
import {
  commandName,
  type CommandLine,
  shellOf,
  exitCodeOf,
  FAILED,
  MISUSED,
  SUCCESS,
} from './rules/command.ts'
import { Fault, hintOf, renderError } from '#kit/foundation/fault.ts'
import { readVersion } from '#kit/host/package-manifest.ts'
import type { Environment } from '#kit/host/shell.ts'
import { columnsOf, decideTerminalStyle, type Output } from '../text/terminal-style.ts'

interface ProgramEnvironment {
  readonly argv: readonly string[]
  readonly env: Environment
  readonly stdout: Output
  readonly stderr: Output
}

/** What a program that has a terminal for itself gets of its process, and nothing else of the environment outside. */
export interface TerminalEnvironment extends ProgramEnvironment {
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  readonly isRoot: boolean
  /** It is aborted when the process is asked to end. */
  readonly signal: AbortSignal
  /** Seconds on a steady clock. */
  readonly now: () => number
}

/** Resolves to the exit code. */
export type RunCommand<ProcessEnvironment> = (
  environment: ProcessEnvironment,
  given: Arguments,
  line: CommandLine,
) => Promise<number>

export interface Program<ProcessEnvironment> {
  readonly line: CommandLine
  /** By command name, the main program under the empty name; `completion` and `manual` may be left out. Nothing is loaded before it is called. */
  readonly commands: Readonly<Record<string, () => Promise<RunCommand<ProcessEnvironment>>>>
  /** Hears of wrong arguments, besides what is printed. */
  readonly onMisuse?: (environment: ProcessEnvironment, report: MisuseReport) => void
}

export interface MisuseReport {
  readonly at: readonly string[]
  readonly message: string
  readonly hint: string
}

/** Resolves to the exit code. What the command throws is printed, and becomes an exit code, too. */
export async function runProgram<ProcessEnvironment extends ProgramEnvironment>(
  program: Program<ProcessEnvironment>,
  environment: ProcessEnvironment,
): Promise<number> {
  const { line } = program
  const { argv, stdout } = environment
  const reading = parseArguments(line, argv)
  if (!reading.ok) return failMisuse(program, reading.refusal, environment)
  const asked = reading.value
  switch (asked.kind) {
    case 'help': {
      const { renderHelp } = await import('./usage.ts')
      stdout.write(renderHelp(line, asked.at, columnsOf(stdout.columns)))
      return SUCCESS
    }
    case 'version':
      stdout.write(`${line.program} ${await readVersion()}\n`)
      return SUCCESS
    case 'run':
      try {
        const run = await load(program, asked.given)
        return await run(environment, asked.given, line)
      } catch (thrown) {
        return fail(line, thrown, environment)
      }
  }
}

/** What the command does not need is not loaded. */
async function load<ProcessEnvironment extends ProgramEnvironment>(
  { commands }: Program<ProcessEnvironment>,
  { command }: Arguments,
): Promise<RunCommand<ProcessEnvironment>> {
  const loads = new Map(Object.entries({ ...TEXTS, ...commands }))
  const found = loads.get(commandName(command))
  if (found === undefined) throw new Error(`no program for ${commandName(command)}`)
  return found()
}

/** Made from the table alone, so that no program has to bring them. */
const TEXTS: Program<ProgramEnvironment>['commands'] = {
  async completion() {
    const { renderCompletion } = await import('./completion.ts')
    return async ({ stdout }, { positionals }, line) => {
      stdout.write(renderCompletion(line, shellOf(positionals)))
      return SUCCESS
    }
  },
  async manual() {
    const { renderManual } = await import('./usage.ts')
    return async ({ stdout }, _given, line) => {
      stdout.write(renderManual(line))
      return SUCCESS
    }
  },
}

async function fail(
  { program }: CommandLine,
  failure: unknown,
  environment: ProgramEnvironment,
): Promise<number> {
  const thrown = firstOf(failure)
  const isExpected = thrown instanceof Fault
  const log = await openLog(program, environment)
  log.fail(renderError(thrown), hintOf(thrown) ?? (isExpected ? undefined : DEBUG_HINT))
  const isDebug = environment.env['FLASHER_DEBUG'] === '1'
  if (isDebug && thrown instanceof Error) environment.stderr.write(`${thrown.stack}\n`)
  return isExpected ? exitCodeOf(thrown.code) : FAILED
}

/** Not an error that came up while it was tidied up afterwards. */
const firstOf = (thrown: unknown): unknown =>
  thrown instanceof SuppressedError ? firstOf(thrown.suppressed) : thrown

export const DEBUG_HINT = 'Set FLASHER_DEBUG=1 to see where this comes from.'

/** What was wrong, how the command is called, and where to read more. */
async function failMisuse<ProcessEnvironment extends ProgramEnvironment>(
  { line, onMisuse }: Program<ProcessEnvironment>,
  misuse: Misuse,
  environment: ProcessEnvironment,
): Promise<number> {
  const { at } = misuse
  const message = renderMisuse(misuse)
  const hint = `Try "${[line.program, ...at].join(' ')} --help" for more information.`
  const [log, { renderUsage }] = await Promise.all([
    openLog(line.program, environment),
    import('./usage.ts'),
  ])
  log.fail(message)
  log.line(renderUsage(line, at))
  log.line(hint)
  onMisuse?.(environment, { at, message, hint })
  return MISUSED
}

async function openLog(program: string, { env, stderr }: ProgramEnvironment) {
  const { createLog } = await import('../text/log.ts')
  return createLog({ program, stderr, style: decideTerminalStyle(env, stderr.isTTY === true) })
}
