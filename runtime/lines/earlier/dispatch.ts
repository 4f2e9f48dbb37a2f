/** Earlier line: takes a checked command line apart with sade and hands it to the command it calls. */
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
    const positionals = command.positionals.map(({ value }) => `<${value.name}>`)
    app.command([...command.words, ...positionals].join(' '), command.summary)
    for (const { name, value, help } of command.flags) {
      app.option(`--${name}`, help, value?.default)
    }
    app.action((...given: unknown[]) => run(toArguments(command, given)))
  }
  const { handler, args } = app.parse(['node', line.program, ...argv], {
    lazy: true,
    // Digits alone would become a number otherwise.
    string: flagsWhere(line, (value) => value !== null),
    boolean: flagsWhere(line, (value) => value === null),
  })
  return handler(...args)
}

const flagsWhere = (line: CommandLine, wanted: (value: object | null) => boolean) =>
  line.commands.flatMap(({ flags }) =>
    flags.filter(({ value }) => wanted(value)).map(({ name }) => name),
  )

/** sade passes the positionals one by one, and all flags as one object behind them. */
function toArguments(command: Command, given: readonly unknown[]): Arguments {
  const options = new Map<string, unknown>(Object.entries(given.at(-1) ?? {}))
  const values = command.flags.flatMap(({ name, value }) => {
    const found = value === null ? undefined : options.get(name)
    return typeof found === 'string' ? [[name, found] as const] : []
  })
  const switches = command.flags.filter(
    // `--no-x` arrives as x: false.
    ({ name, value }) =>
      value === null &&
      (name.startsWith('no-') ? options.get(name.slice(3)) === false : options.get(name) === true),
  )
  return {
    command,
    values: Object.fromEntries(values),
    switches: new Set(switches.map(({ name }) => name)),
    positionals: given.slice(0, -1).map(String),
  }
}
