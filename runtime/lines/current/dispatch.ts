/** Current line: takes a checked command line apart with sade and hands it to the command it calls. */
import sade from 'sade'
import type { Command, CommandLine } from '../../core/command.ts'
import type { Arguments } from './commands/session.ts'

/** `argv`: the unambiguous spelling that `parseArguments` gives, so that sade never says no. */
export function dispatch<T>(
  line: CommandLine,
  argv: readonly string[],
  run: (given: Arguments) => T,
): T {
  const app = sade(line.program)
  for (const command of line.commands) {
    const positionals = command.positionals.map((_, index) => `<argument${index}>`)
    app.command([...command.words, ...positionals].join(' '), command.summary)
    app.action((...given: unknown[]) => run(toArguments(command, given)))
  }
  const { handler, args } = app.parse(['node', line.program, ...argv], {
    lazy: true,
    // Digits alone would become a number otherwise.
    string: namesOf(line, true),
    boolean: namesOf(line, false),
  })
  return handler(...args)
}

const namesOf = (line: CommandLine, hasValue: boolean) =>
  line.commands.flatMap(({ flags }) =>
    flags.filter(({ value }) => (value !== null) === hasValue).map(({ name }) => name),
  )

/** sade passes the positionals one by one, and all flags as one object behind them. */
function toArguments(command: Command, given: readonly unknown[]): Arguments {
  const options = new Map<string, unknown>(Object.entries(given.at(-1) ?? {}))
  const withValue = command.flags.filter(({ value }) => value !== null)
  const switches = command.flags.filter(({ value }) => value === null)
  return {
    command,
    values: Object.fromEntries(withValue.map(({ name }) => [name, listOf(options.get(name))])),
    switches: new Set(
      switches.map(({ name }) => name).filter((name) => options.get(name) === true),
    ),
    positionals: given.slice(0, -1).map(String),
  }
}

/** One text, several, or none. */
const listOf = (given: unknown): readonly string[] =>
  [given].flat().filter((each) => typeof each === 'string')
