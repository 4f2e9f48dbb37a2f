/** Current line: the programs of this line, assembled from the folders below. */
import { runProgram, type RunCommand } from '#kit/terminal/command/program.ts'
import { completeArguments } from '#kit/terminal/command/rules/command.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import { COMMAND_LINE, type CommandName } from './commands/rules/commands.ts'

/** Loads a command only when it is called. */
const COMMANDS: Readonly<Record<CommandName, () => Promise<RunCommand<ProcessEnvironment>>>> = {
  serve: async () => (await import('./serve.ts')).serve,
  flash: async () => (await import('./commands/flash.ts')).flash,
  once: async () => (await import('./commands/once.ts')).once,
  export: async () => (await import('./commands/bundles.ts')).exportFleet,
  import: async () => (await import('./commands/bundles.ts')).importFleet,
  backup: async () => (await import('./backups/backup-commands.ts')).backUp,
  restore: async () => (await import('./backups/backup-commands.ts')).restore,
  password: async () => (await import('./people/password-commands.ts')).changePassword,
  'people-list': async () => (await import('./people/people-commands.ts')).listPeople,
  'people-add': async () => (await import('./people/people-commands.ts')).addPerson,
  'people-role': async () => (await import('./people/people-commands.ts')).setRole,
  'people-password': async () => (await import('./people/people-commands.ts')).setPassword,
  'people-remove': async () => (await import('./people/people-commands.ts')).removePerson,
  'database-status': async () => (await import('./commands/database.ts')).showDatabase,
  'database-import': async () => (await import('./commands/database.ts')).importDatabase,
  'database-detach': async () => (await import('./commands/database.ts')).detachDatabase,
  'database-accept-older': async () => (await import('./commands/database.ts')).acceptOlder,
  'database-forget': async () => (await import('./commands/database.ts')).forgetServer,
  'config-show': async () => (await import('./settings/config-commands.ts')).showConfig,
  'config-check': async () => (await import('./settings/config-commands.ts')).checkConfig,
  'config-reference': async () => (await import('./settings/config-commands.ts')).printReference,
}
/** Prints errors. Resolves to the exit code. */
export const web = (environment: ProcessEnvironment): Promise<number> =>
  runProgram(
    { line: COMMAND_LINE, commands: COMMANDS },
    { ...environment, argv: completeArguments(COMMAND_LINE, environment.argv) },
  )
