/** Earlier line: `flasher-web`; apart from `flasher`, so that the live system does not carry a server. */
import { completeArguments } from '#kit/terminal/command/rules/command.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import { runProgram, type RunCommand } from '#kit/terminal/command/program.ts'
import { SERVER_LINE, type ServerCommandName } from './rules/server-commands.ts'

const COMMANDS: Readonly<Record<ServerCommandName, () => Promise<RunCommand<ProcessEnvironment>>>> =
  {
    serve: async () => (await import('./serve.ts')).serve,
  }

/** Prints errors. Resolves to the exit code. */
export const web = (environment: ProcessEnvironment): Promise<number> =>
  runProgram(
    { line: SERVER_LINE, commands: COMMANDS },
    { ...environment, argv: completeArguments(SERVER_LINE, environment.argv) },
  )
