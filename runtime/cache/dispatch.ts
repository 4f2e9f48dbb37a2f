/** Takes a checked command line of `flasher-cache` apart with sade and hands it to the command it calls. */
import sade from 'sade'
import type { Command, CommandLine } from '../core/command.ts'
import type { Arguments } from './commands/session.ts'

/** `argv`: the unambiguous spelling that `parseArguments` gives, so that sade never says no. */
export function dispatch<T>(
  line: CommandLine,
  argv: readonly string[],
  run: (given: Arguments) => T,
): T {
  const app = sade(line.program)
  for (const command of line.commands) {
    const places = command.positionals.map((_, index) => ` <word${index}>`).join('')
    app.command(`${command.words.join(' ')}${places}`, command.summary)
    app.action((...given: unknown[]) => run(readArguments(command, given)))
  }
  const flags = line.commands.flatMap((command) => command.flags)
  const string = flags.flatMap(({ name, value }) => (value === null ? [] : [name]))
  const boolean = flags.flatMap(({ name, value }) => (value === null ? [name] : []))
  // Without `string`, digits alone would become a number.
  const call = app.parse(['node', line.program, ...argv], { lazy: true, string, boolean })
  return call.handler(...call.args)
}

/** Positionals come one by one, the flags as one object behind them; `--no-x` as x: false. */
function readArguments(command: Command, given: readonly unknown[]): Arguments {
  const flags = new Map<string, unknown>(Object.entries(given.at(-1) ?? {}))
  const isOn = (name: string) =>
    name.startsWith('no-') ? flags.get(name.slice(3)) === false : flags.get(name) === true
  const texts = (name: string) =>
    [flags.get(name)].flat().filter((value) => typeof value === 'string')
  const names = (hasValue: boolean) =>
    command.flags.flatMap(({ name, value }) => ((value !== null) === hasValue ? [name] : []))
  return {
    command,
    values: Object.fromEntries(names(true).map((name) => [name, texts(name)])),
    switches: new Set(names(false).filter(isOn)),
    positionals: given.slice(0, -1).map(String),
  }
}
