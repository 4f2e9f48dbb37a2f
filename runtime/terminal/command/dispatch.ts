/** Takes a checked command line apart with sade and hands it to the command that it calls. */
import sade from 'sade'
import type { Command, CommandLine } from '../../core/command/command.ts'

/** A command line as its command reads it. */
export interface Arguments {
  readonly command: Command
  /** By flag, without dashes; every value that was given, or the default. */
  readonly values: Readonly<Record<string, readonly string[]>>
  readonly switches: ReadonlySet<string>
  readonly positionals: readonly string[]
}

/** `argv`: the unambiguous spelling that `parseArguments` gives, so that sade never says no. */
export function dispatch<T>(
  line: CommandLine,
  argv: readonly string[],
  run: (given: Arguments) => T,
): T {
  const app = sade(line.program)
  for (const command of line.commands) {
    const positionals = command.positionals.map(({ optional }, index) =>
      optional === true ? `[argument${index}]` : `<argument${index}>`,
    )
    app.command([...command.words, ...positionals].join(' '), command.summary)
    for (const { name, value, help } of command.flags) {
      app.option(`--${name}`, help, value?.default)
    }
    app.action((...given: unknown[]) => run(readArguments(command, given)))
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
function readArguments(command: Command, given: readonly unknown[]): Arguments {
  const options = new Map<string, unknown>(Object.entries(given.at(-1) ?? {}))
  // `--no-x` arrives as x: false.
  const isOn = (name: string) =>
    name.startsWith('no-') ? options.get(name.slice(3)) === false : options.get(name) === true
  const texts = (name: string) =>
    [options.get(name)].flat().filter((each) => typeof each === 'string')
  const withValue = command.flags.filter(({ value }) => value !== null)
  const switches = command.flags.filter(({ value }) => value === null)
  return {
    command,
    values: Object.fromEntries(withValue.map(({ name }) => [name, texts(name)])),
    switches: new Set(switches.map(({ name }) => name).filter(isOn)),
    // One that was left out is undefined.
    positionals: given.slice(0, -1).flatMap((each) => (each === undefined ? [] : [String(each)])),
  }
}
