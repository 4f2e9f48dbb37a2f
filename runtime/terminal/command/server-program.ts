/** Runs a program that serves: which command is meant, and what is said when it cannot be run. */
import { parseArguments, renderMisuse, type Misuse } from '../../core/command/arguments.ts'
import { commandName, type CommandLine } from '../../core/command/command.ts'
import { Fault, renderError } from '../../core/foundation/fault.ts'
import { completeArguments } from '../../core/command/server-command.ts'
import { exitCodeOf, FAILED, MISUSED, SUCCESS } from '../../core/command/server-exit.ts'
import { shellOf } from '../../core/command/text-commands.ts'
import { readVersion } from '../../services/host/package-manifest.ts'
import type { Environment } from '../../services/host/shell.ts'
import { dispatch, type Arguments } from './dispatch.ts'
import { createLog, type Log } from '../text/log.ts'
import { columnsOf, decideTerminalStyle, type Output } from '../text/terminal-style.ts'
import { renderHelp, renderUsage } from './usage.ts'

/** What of a process every command needs. */
interface ProgramEnvironment {
  readonly env: Environment
  readonly stdout: Output
  readonly stderr: Output
}

export type Run<ProcessEnvironment> = (
  environment: ProcessEnvironment,
  given: Arguments,
) => Promise<number>

interface ServerProgram<ProcessEnvironment> {
  readonly line: CommandLine
  /** By command name, without `completion` and `manual`; nothing is loaded before it is called. */
  readonly commands: Readonly<Record<string, () => Promise<Run<ProcessEnvironment>>>>
}

/** `argv` without program names. Returns the exit code. */
export async function runServerProgram<ProcessEnvironment extends ProgramEnvironment>(
  { line, commands }: ServerProgram<ProcessEnvironment>,
  argv: readonly string[],
  environment: ProcessEnvironment,
): Promise<number> {
  const { stdout, stderr, env } = environment
  const log = createLog({
    program: line.program,
    stderr,
    look: decideTerminalStyle(env, stderr.isTTY === true),
  })
  const reading = parseArguments(line, completeArguments(line, argv))
  if (!reading.ok) return failMisuse(line, reading.refusal, log)
  const meant = reading.value
  switch (meant.kind) {
    case 'help':
      stdout.write(renderHelp(line, meant.at, columnsOf(stdout.columns)))
      return SUCCESS
    case 'version':
      stdout.write(`${line.program} ${await readVersion()}\n`)
      return SUCCESS
    case 'run':
      return dispatch(line, meant.argv, async (given) => {
        try {
          const load = findProgram(commands, commandName(given.command))
          const command = await load(line)
          return await command(environment, given)
        } catch (thrown) {
          return fail(thrown, environment, log)
        }
      })
  }
}

/** Resolves once the program is asked to end. */
export const awaitEnding = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

type Load<ProcessEnvironment> = (line: CommandLine) => Promise<Run<ProcessEnvironment>>

function findProgram<ProcessEnvironment extends ProgramEnvironment>(
  commands: ServerProgram<ProcessEnvironment>['commands'],
  name: string,
): Load<ProcessEnvironment> {
  const load = new Map<string, Load<ProcessEnvironment>>(
    Object.entries({ ...TEXTS, ...commands }),
  ).get(name)
  if (load === undefined) throw new Error(`no program for ${name}`)
  return load
}

/** Made from the table alone, so that no program has to bring them. */
const TEXTS: Readonly<Record<string, Load<ProgramEnvironment>>> = {
  async completion(line) {
    const { renderCompletion } = await import('./completion.ts')
    return async ({ stdout }, { positionals }) => {
      stdout.write(renderCompletion(line, shellOf(positionals)))
      return SUCCESS
    }
  },
  async manual(line) {
    const { renderManual } = await import('./manual.ts')
    return async ({ stdout }) => {
      stdout.write(renderManual(line))
      return SUCCESS
    }
  },
}

function fail(thrown: unknown, { env, stderr }: ProgramEnvironment, log: Log): number {
  const isMeant = thrown instanceof Fault
  const hint = isMeant ? thrown.hint : 'FLASHER_DEBUG=1 shows where this comes from.'
  log.fail(renderError(thrown), hint)
  if (env['FLASHER_DEBUG'] === '1' && thrown instanceof Error) stderr.write(`${thrown.stack}\n`)
  return isMeant ? exitCodeOf(thrown.code) : FAILED
}

/** What was wrong, how it is called, and where to read more. */
function failMisuse(line: CommandLine, misuse: Misuse, log: Log): number {
  log.fail(renderMisuse(misuse))
  log.line(renderUsage(line, misuse.at))
  log.line(`"${[line.program, ...misuse.at].join(' ')} --help" says what there is.`)
  return MISUSED
}
