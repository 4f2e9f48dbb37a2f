/** Earlier line: hands a checked command line to the command it calls; no flag comes twice here. */
import type { CommandLine } from '../../core/command/command.ts'
import { dispatch as dispatchAll } from '../../terminal/command/dispatch.ts'
import type { Arguments } from './commands/session.ts'

/** `argv`: the unambiguous spelling that `parseArguments` gives. */
export const dispatch = <T>(
  line: CommandLine,
  argv: readonly string[],
  run: (given: Arguments) => T,
): T =>
  dispatchAll(line, argv, (given) => {
    const values = Object.entries(given.values).flatMap(([name, [value]]) =>
      value === undefined ? [] : [[name, value] as const],
    )
    return run({ ...given, values: Object.fromEntries(values) })
  })
