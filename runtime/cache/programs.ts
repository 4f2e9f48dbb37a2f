/** `flasher-cache`: maps its commands to what they run. */
import { completeArguments } from '#kit/terminal/command/rules/command.ts'
import { runProgram, type RunCommand } from '#kit/terminal/command/program.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import { COMMAND_LINE, type CacheCommand } from '#cache/rules/commands.ts'

/** Lazy: a command is loaded when it is called. */
const COMMANDS: Readonly<Record<CacheCommand, () => Promise<RunCommand<ProcessEnvironment>>>> = {
  serve: async () => (await import('#cache/commands/serve.ts')).serve,
  add: async () => (await import('#cache/commands/operator.ts')).add,
  list: async () => (await import('#cache/commands/operator.ts')).list,
  fetch: async () => (await import('#cache/commands/operator.ts')).fetchImage,
  remove: async () => (await import('#cache/commands/operator.ts')).remove,
  token: async () => (await import('#cache/commands/operator.ts')).makeToken,
}
export const cache = (environment: ProcessEnvironment): Promise<number> =>
  runProgram(
    { line: COMMAND_LINE, commands: COMMANDS },
    { ...environment, argv: completeArguments(COMMAND_LINE, environment.argv) },
  )
