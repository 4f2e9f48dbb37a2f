/** Earlier line: `flasher`, assembled from the folders below. */
import {
  findCommand,
  shellOf,
  type Command,
  type Entry,
} from '#kit/terminal/command/rules/command.ts'
import {
  runProgram,
  type MisuseReport,
  type Program,
  type RunCommand,
} from '#kit/terminal/command/program.ts'
import type { CommandSession, CommandEnvironment } from '#flasher/commands/session.ts'
import { COMMAND_LINE, type FlasherCommand } from '#flasher/commands/rules/commands.ts'
import { TUI_LINE } from '#flasher/panes/rules/tui-commands.ts'
import type { TuiEnvironment } from '#flasher/panes/program.ts'
import { errorFields, renderEnvelope, SUCCESS } from '#flasher/commands/rules/exit-codes.ts'

/** Lazy: a command is loaded when it is called. */
const COMMANDS: Readonly<Record<FlasherCommand, () => Promise<RunCommand<CommandEnvironment>>>> = {
  'list-disks': async () => inSession((await import('#flasher/commands/list.ts')).listDisks),
  'list-images': async () => inSession((await import('#flasher/commands/list.ts')).listImages),
  'inspect-image': async () => inSession((await import('#flasher/commands/list.ts')).inspectImage),
  pack: async () => inSession((await import('#flasher/commands/pack.ts')).pack),
  push: async () => inSession((await import('#flasher/commands/push.ts')).push),
  capture: async () => inSession((await import('#flasher/commands/capture.ts')).capture),
  flash: async () => inSession((await import('#flasher/commands/flash.ts')).flash),
  verify: async () => inSession((await import('#flasher/commands/verify.ts')).verify),
  completion: async () => {
    const { renderCompletion } = await import('#kit/terminal/command/completion.ts')
    return inSession(async (session) => {
      const shell = shellOf(session.given.positionals)
      const script = renderCompletion(session.line, shell)
      return print(session, script, { shell, script })
    })
  },
  manual: async () => {
    const { renderManual } = await import('#kit/terminal/command/usage.ts')
    return inSession(async (session) => {
      const manual = renderManual(session.line)
      return print(session, manual, { manual })
    })
  },
}

const inSession =
  (command: (session: CommandSession) => Promise<number>): RunCommand<CommandEnvironment> =>
  async (environment, given, line) => {
    const { createSession } = await import('#flasher/commands/session.ts')
    const session = createSession(given, environment, line)
    try {
      return await command(session)
    } catch (thrown) {
      return session.fail(thrown)
    }
  }

function print({ environment, json, document }: CommandSession, text: string, fields: object) {
  if (json) document({ ...fields })
  else environment.stdout.write(text)
  return SUCCESS
}

/** Runs where no command is named. */
interface MainProgram<Environment> {
  readonly main: Command
  readonly environment: readonly Entry[]
  readonly about: readonly string[]
  readonly load: () => Promise<RunCommand<Environment>>
}

/** Returns the exit code. */
export const tui = (environment: TuiEnvironment): Promise<number> =>
  runProgram(
    {
      line: TUI_LINE,
      commands: { '': async () => (await import('#flasher/panes/program.ts')).tui },
    },
    environment,
  )

/** `more` runs where no subcommand is given. */
export function cli<Environment extends CommandEnvironment>(
  environment: Environment,
  more?: MainProgram<Environment>,
): Promise<number> {
  const program: Program<Environment> = { line: COMMAND_LINE, commands: COMMANDS, onMisuse }
  return runProgram(more === undefined ? program : withMain(program, more), environment)
}

const withMain = <Environment>(
  program: Program<Environment>,
  { main, environment, about, load }: MainProgram<Environment>,
): Program<Environment> => ({
  ...program,
  line: {
    ...program.line,
    main,
    environment: [...environment, ...program.line.environment],
    about: [...about, ...program.line.about],
  },
  commands: { ...program.commands, '': load },
})

/** With `--json` the error is a document, too. */
function onMisuse({ argv, stdout }: CommandEnvironment, { at, message, hint }: MisuseReport): void {
  const command = findCommand(COMMAND_LINE, at)
  if (command === null || !argv.includes('--json')) return
  const oneLine =
    argv.includes('--progress=ndjson') || argv[argv.indexOf('--progress') + 1] === 'ndjson'
  stdout.write(renderEnvelope(command, errorFields('misuse', message, hint), { oneLine }))
}
