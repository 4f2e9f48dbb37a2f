/** Earlier line: its programs, assembled from the folders below. */
import { parseArguments, renderMisuse, type Misuse } from '../../core/command/arguments.ts'
import { commandName, findCommand, type CommandLine } from '../../core/command/command.ts'
import { readVersion } from '../../services/host/package-manifest.ts'
import { createLog } from '../../terminal/text/log.ts'
import { columnsOf, decideTerminalStyle } from '../../terminal/text/terminal-style.ts'
import { renderHelp, renderUsage } from '../../terminal/command/usage.ts'
import {
  createSession,
  PROGRAM,
  type Session,
  type ProcessEnvironment,
} from './commands/session.ts'
import { dispatch } from './dispatch.ts'
import { COMMAND_LINE, type CommandName } from './rules/commands.ts'
import { errorFields, renderEnvelope } from './rules/envelope.ts'
import { EXIT, SUCCESS } from './rules/exit-codes.ts'

type Run = (session: Session) => Promise<number>

/** What each command starts; nothing of a command is loaded before it is called. */
const RUN: Readonly<Record<CommandName, () => Promise<Run>>> = {
  'list-disks': async () => (await import('./commands/list.ts')).listDisks,
  'list-images': async () => (await import('./commands/list.ts')).listImages,
  'inspect-image': async () => (await import('./commands/inspect.ts')).inspectImage,
  flash: async () => (await import('./commands/flash.ts')).flash,
  completion: async () => (await import('./commands/texts.ts')).completion,
  manual: async () => (await import('./commands/texts.ts')).manual,
}
const RUNNERS = new Map<string, () => Promise<Run>>(Object.entries(RUN))

/** `flasher` with subcommands ("Command line"); returns the exit code. */
export async function cli(
  environment: ProcessEnvironment,
  more: MainProgram = NO_MAIN,
): Promise<number> {
  const { argv, stdout } = environment
  const line = withMain(more)
  const reading = parseArguments(line, argv)
  if (!reading.ok) return failMisuse(line, reading.refusal, environment)
  const meant = reading.value
  switch (meant.kind) {
    case 'help':
      stdout.write(renderHelp(line, meant.at, columnsOf(stdout.columns)))
      return SUCCESS
    case 'version':
      stdout.write(`${PROGRAM} ${await readVersion()}\n`)
      return SUCCESS
    case 'run':
      return dispatch(line, meant.argv, (given) => run(createSession(given, environment, line)))
  }
}

/** What the same program does without a command, for its help, completion and manual. */
export interface MainProgram extends Pick<CommandLine, 'main' | 'environment'> {}

const NO_MAIN: MainProgram = { environment: [] }

const withMain = ({ main, environment }: MainProgram): CommandLine => ({
  ...COMMAND_LINE,
  ...(main === undefined ? {} : { main }),
  environment: [...environment, ...COMMAND_LINE.environment],
})

async function run(session: Session): Promise<number> {
  try {
    const load = RUNNERS.get(commandName(session.given.command))
    if (load === undefined)
      throw new Error(`no program for ${session.given.command.words.join(' ')}`)
    const command = await load()
    return await command(session)
  } catch (thrown) {
    return session.fail(thrown)
  }
}

/** What was wrong, how it is called, and where to read more; with `--json` the document too. */
function failMisuse(
  line: CommandLine,
  misuse: Misuse,
  { argv, env, stdout, stderr }: ProcessEnvironment,
): number {
  const message = renderMisuse(misuse)
  const called = [PROGRAM, ...misuse.at].join(' ')
  const hint = `"${called} --help" says what there is.`
  const log = createLog({
    program: PROGRAM,
    stderr,
    look: decideTerminalStyle(env, stderr.isTTY === true),
  })
  log.fail(message)
  log.line(renderUsage(line, misuse.at))
  log.line(hint)
  const command = findCommand(line, misuse.at)
  if (command !== null && argv.includes('--json')) {
    const oneLine =
      argv.includes('--progress=ndjson') || argv[argv.indexOf('--progress') + 1] === 'ndjson'
    stdout.write(renderEnvelope(command, errorFields('misuse', message, hint), { oneLine }))
  }
  return EXIT.misuse
}
