/** `flasher-cache`: which command is meant, and what it says when it cannot. */
import { parseArguments, renderMisuse, type Misuse } from '../core/arguments.ts'
import { Fault, renderError } from '../core/fault.ts'
import { readVersion } from '../services/manifest.ts'
import { createLog, type Log } from '../terminal/log.ts'
import { columnsOf, decideLook } from '../terminal/look.ts'
import { renderHelp, renderUsage } from '../terminal/usage.ts'
import type { CacheHandler } from './commands/serve.ts'
import type { Arguments, World } from './commands/session.ts'
import { dispatch } from './dispatch.ts'
import {
  COMMAND_LINE,
  type CommandName,
  completeArguments,
  exitCodeOf,
  FAILED,
  MISUSED,
  SUCCESS,
} from './rules/commands.ts'

type Run = (world: World<CacheHandler>, given: Arguments) => Promise<number>

/** What each command starts; nothing of a command is loaded before it is called. */
const RUN: Readonly<Record<CommandName, () => Promise<Run>>> = {
  serve: async () => (await import('./commands/serve.ts')).serve,
  add: async () => (await import('./commands/operator.ts')).add,
  list: async () => (await import('./commands/operator.ts')).list,
  fetch: async () => (await import('./commands/operator.ts')).fetchImage,
  remove: async () => (await import('./commands/operator.ts')).remove,
}
const RUNNERS = new Map<string, () => Promise<Run>>(Object.entries(RUN))

/** Returns the exit code. */
export async function cache(world: World<CacheHandler>): Promise<number> {
  const { stdout, stderr, env } = world
  const { program } = COMMAND_LINE
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

async function run(world: World<CacheHandler>, given: Arguments, log: Log): Promise<number> {
  try {
    const load = RUNNERS.get(given.command.words.join(' '))
    if (load === undefined) throw new Error(`no program for ${given.command.words.join(' ')}`)
    const command = await load()
    return await command(world, given)
  } catch (thrown) {
    const isMeant = thrown instanceof Fault
    log.fail(renderError(thrown), isMeant ? thrown.hint : undefined)
    const isDebug = world.env['FLASHER_DEBUG'] === '1' && thrown instanceof Error
    if (isDebug) world.stderr.write(`${thrown.stack}\n`)
    return isMeant ? exitCodeOf(thrown.code) : FAILED
  }
}

/** What was wrong, how it is called, and where to read more. */
function failMisuse(misuse: Misuse, log: Log): number {
  log.fail(renderMisuse(misuse))
  log.line(renderUsage(COMMAND_LINE, misuse.at))
  log.line(`"${[COMMAND_LINE.program, ...misuse.at].join(' ')} --help" says what there is.`)
  return MISUSED
}
