/** Current line: its programs, assembled from the folders below. */
import { parseArguments, renderMisuse, type Misuse } from '../../core/arguments.ts'
import { commandName } from '../../core/command.ts'
import { Fault, renderError } from '../../core/fault.ts'
import { readVersion } from '../../services/manifest.ts'
import { createLog, type Log } from '../../terminal/log.ts'
import { columnsOf, decideLook } from '../../terminal/look.ts'
import { renderHelp, renderUsage } from '../../terminal/usage.ts'
import type { Arguments, World } from './commands/session.ts'
import { dispatch } from './dispatch.ts'
import { COMMAND_LINE, completeArguments, type CommandName } from './rules/commands.ts'
import { exitCodeOf, FAILED, MISUSED, SUCCESS } from './rules/exit-codes.ts'

type Run = (world: World, given: Arguments) => Promise<number>

/** What each command starts; nothing of a command is loaded before it is called. */
const RUN: Readonly<Record<CommandName, () => Promise<Run>>> = {
  serve: async () => (await import('./serve.ts')).serve,
  export: async () => (await import('./commands/bundles.ts')).exportFleet,
  import: async () => (await import('./commands/bundles.ts')).importFleet,
  backup: async () => (await import('./commands/backups.ts')).backUp,
  restore: async () => (await import('./commands/backups.ts')).restore,
  password: async () => (await import('./commands/password.ts')).changePassword,
  'config-show': async () => (await import('./commands/config.ts')).showConfig,
  'config-check': async () => (await import('./commands/config.ts')).checkConfig,
  'config-reference': async () => (await import('./commands/config.ts')).printReference,
}
const RUNNERS = new Map<string, () => Promise<Run>>(Object.entries(RUN))

/** `flasher-web`; returns the exit code. */
export async function web(world: World): Promise<number> {
  const { stdout, stderr, env } = world
  const program = COMMAND_LINE.program
  const log = createLog({ program, stderr, look: decideLook(env, stderr.isTTY === true) })
  const reading = parseArguments(COMMAND_LINE, completeArguments(world.argv))
  if (!reading.ok) return failMisuse(reading.refusal, log)
  const meant = reading.value
  switch (meant.kind) {
    case 'help':
      stdout.write(renderHelp(COMMAND_LINE, meant.at, columnsOf(stdout.columns)))
      return SUCCESS
    case 'version':
      stdout.write(`${program} ${await readVersion()}\n`)
      return SUCCESS
    case 'run':
      return dispatch(COMMAND_LINE, meant.argv, (given) => run(world, given, log))
  }
}

async function run(world: World, given: Arguments, log: Log): Promise<number> {
  try {
    const load = RUNNERS.get(commandName(given.command))
    if (load === undefined) throw new Error(`no program for ${given.command.words.join(' ')}`)
    const command = await load()
    return await command(world, given)
  } catch (thrown) {
    return fail(thrown, world, log)
  }
}

function fail(thrown: unknown, { env, stderr }: World, log: Log): number {
  const isMeant = thrown instanceof Fault
  log.fail(
    renderError(thrown),
    isMeant ? thrown.hint : 'FLASHER_DEBUG=1 shows where this comes from.',
  )
  if (env['FLASHER_DEBUG'] === '1' && thrown instanceof Error) stderr.write(`${thrown.stack}\n`)
  return isMeant ? exitCodeOf(thrown.code) : FAILED
}

/** What was wrong, how it is called, and where to read more. */
function failMisuse(misuse: Misuse, log: Log): number {
  log.fail(renderMisuse(misuse))
  log.line(renderUsage(COMMAND_LINE, misuse.at))
  log.line(`"${[COMMAND_LINE.program, ...misuse.at].join(' ')} --help" says what there is.`)
  return MISUSED
}
