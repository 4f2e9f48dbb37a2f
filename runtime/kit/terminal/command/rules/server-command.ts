/** The parts that the command lines of both servers share: flags, files, and `serve` as the default command. */
import type { CommandLine, Entry, Flag } from './command.ts'
import type { FaultCode } from '#kit/foundation/fault.ts'

export const CONFIG: Flag = {
  name: 'config',
  value: { name: 'PATH', completes: 'file' },
  repeatable: true,
  help: 'a TOML file, or a folder of them, to read instead of the usual ones; the first one wins',
}

export const JSON_FLAG: Flag = {
  name: 'json',
  value: null,
  help: 'print one JSON document on stdout',
}

export const CONFIG_FILES: readonly Entry[] = [
  ['/etc/flasher/conf.d/*.toml', 'configuration; the first file that sets a key wins'],
  ['/etc/flasher/flasher.toml', 'configuration'],
  ['<state_dir>/flasher.toml', 'configuration'],
]

/**
 * `--config` that stands before the command goes behind it, and without any command it is `serve`.
 */
export function completeArguments(line: CommandLine, argv: readonly string[]): readonly string[] {
  const [first] = argv
  if (first === '--version' || first === '--help' || first === '-h') return argv
  const end = countLeadingOptions(argv)
  const command = argv[end]
  if (command === undefined || command.startsWith('-')) return ['serve', ...argv]
  const words = line.commands.some(({ words: [one, two] }) => one === command && two) ? 2 : 1
  const behind = argv.slice(end + words)
  return [...argv.slice(end, end + words), ...argv.slice(0, end), ...behind]
}

/** How many arguments before the command belong to `--config`. */
function countLeadingOptions(argv: readonly string[]): number {
  let index = 0
  while (index < argv.length) {
    const word = argv[index] ?? ''
    if (word === '--config') index += 2
    else if (word.startsWith('--config=')) index += 1
    else return index
  }
  return index
}

// Maps faults to exit codes for the servers: `flasher-web` and `flasher-cache`.

export const SUCCESS = 0
/** Also what any surprise without a code of its own ends with. */
export const FAILED = 1
/** The arguments or the configuration are invalid. */
export const MISUSED = 2

const MISUSES: ReadonlySet<FaultCode> = new Set(['misuse', 'input-invalid'])

export const exitCodeOf = (code: FaultCode): number => (MISUSES.has(code) ? MISUSED : FAILED)

/** `what` is the program in a word. */
export const listExitCodes = (what: string): readonly Entry[] => [
  ['0', `success; the ${what} was asked to stop and did`],
  ['1', `failure: a file, the network or the ${what}'s data could not be used`],
  ['2', 'misuse: wrong arguments or an invalid configuration'],
]
