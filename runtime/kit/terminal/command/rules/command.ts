/** Describes a program's command line as data; parser, help, completion and manual are generated from it. */
import { DEFAULT_IMAGE_ROOT } from '#appliance/disk-images.ts'
import type { FaultCode } from '#kit/foundation/fault.ts'

export interface Value {
  /** As help shows it: `PATH`. */
  readonly name: string
  /** What shell completion offers for it. */
  readonly completes: 'choices' | 'file' | 'folder' | 'image' | 'disk' | 'nothing'
  /** The only values there are. */
  readonly choices?: readonly string[]
  readonly default?: string
  readonly shape?: { readonly pattern: RegExp; readonly words: string }
}

export interface Flag {
  /** The name without dashes. One that begins with `no-` is a switch that turns something off. */
  readonly name: string
  /** Null: a switch. */
  readonly value: Value | null
  readonly required?: true
  /** May be given more than once; every value is kept. */
  readonly repeatable?: true
  readonly help: string
}

export interface Positional {
  readonly value: Value
  /** May be left out; then those behind it are, too. */
  readonly optional?: true
  readonly help: string
}

interface Example {
  readonly line: string
  readonly does: string
}

export interface Command {
  /** The words that call it: `['list', 'disks']`. */
  readonly words: readonly string[]
  /** One clause, lower case, no full stop. */
  readonly summary: string
  readonly about: readonly string[]
  readonly positionals: readonly Positional[]
  readonly flags: readonly Flag[]
  readonly examples: readonly Example[]
}

/** A name and its meaning: an exit code, an environment variable, a file. */
export type Entry = readonly [name: string, meaning: string]

export interface CommandLine {
  readonly program: string
  readonly summary: string
  readonly about: readonly string[]
  readonly commands: readonly Command[]
  /** What runs where no command is named; its `words` are empty. */
  readonly main?: Command
  /** Its heading in the manual; absent: `WIZARD`. */
  readonly mainTitle?: string
  readonly exitCodes: readonly Entry[]
  readonly environment: readonly Entry[]
  readonly files: readonly Entry[]
  /** The day on which this table was last changed, for the manual: `2026-11-21`. */
  readonly revised: string
}

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type ShellName = (typeof SHELLS)[number]

/** As JSON documents have it: `list-disks`. */
export const commandName = ({ words }: Pick<Command, 'words'>): string => words.join('-')

/** `word` is what help calls the text: `URL`. */
export const textFlag = <const Name extends string>(name: Name, word: string, help: string) => ({
  name,
  value: { name: word, completes: 'nothing' as const },
  help,
})

/** With its default where it has one. */
export const helpOf = ({ value, help }: Flag): string =>
  value?.default === undefined ? help : `${help} (default: ${value.default})`

const startsWith = (words: readonly string[], first: readonly string[]) =>
  first.every((word, index) => words[index] === word)

/** By exactly these words; null when there is none. */
export const findCommand = (line: CommandLine, words: readonly string[]): Command | null =>
  line.commands.find(
    (command) => command.words.length === words.length && startsWith(command.words, words),
  ) ?? null

export const commandsUnder = (line: CommandLine, words: readonly string[]): readonly Command[] =>
  line.commands.filter((command) => startsWith(command.words, words))

/** Each once: `list` has `disks` and `images`. */
export const nextWords = (line: CommandLine, words: readonly string[]): readonly string[] => [
  ...new Set(
    commandsUnder(line, words).flatMap((command) => command.words.slice(words.length).slice(0, 1)),
  ),
]

/** The empty one first: `[]`, `['list']`, … */
export const groupsOf = (line: CommandLine): readonly (readonly string[])[] => [
  [],
  ...new Map(
    line.commands
      .flatMap(({ words }) => words.slice(1).map((_, index) => words.slice(0, index + 1)))
      .map((words) => [words.join(' '), words]),
  ).values(),
]

// Environment variables that are no settings; help, manuals and the reference are generated from these tables.

/** How images and catalogs are fetched, by every program. */
export const SOURCE_ENVIRONMENT: readonly Entry[] = [
  [
    'http_proxy, https_proxy, no_proxy',
    'proxies for downloads; no_proxy lists names (and all below them), addresses and networks',
  ],
  ['FLASHER_CA_FILE', 'additional certificate authorities to trust'],
  [
    'FLASHER_REGISTRY_HOST, FLASHER_REGISTRY_USER, FLASHER_REGISTRY_PASSWORD',
    'user and password for one registry; no other registry gets them',
  ],
  ['FLASHER_REGISTRY_HTTP', 'registries that speak plain http, separated by commas'],
  [
    'AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN',
    'keys for s3:// images; without them buckets are read anonymously',
  ],
  [
    'AWS_ENDPOINT_URL_S3, AWS_REGION',
    'the service that holds the buckets and its region (default: AWS in us-east-1)',
  ],
]

const DEBUG_ENVIRONMENT: Entry = ['FLASHER_DEBUG', 'when 1, unexpected errors show their stack']

export const COMMAND_ENVIRONMENT: readonly Entry[] = [
  [
    'FLASHER_IMAGE_ROOT',
    `the image folder, unless --image-root is given (default: ${DEFAULT_IMAGE_ROOT})`,
  ],
  ['FLASHER_UPLOAD_TOKEN', 'the token of "capture" for an upload, unless --token is given'],
  DEBUG_ENVIRONMENT,
  ...SOURCE_ENVIRONMENT,
  ['NO_COLOR, TERM, LC_ALL', 'control colours and line drawing'],
]

export const WIZARD_ENVIRONMENT: readonly Entry[] = [
  ['FLASHER_DEFAULT_CATALOG', 'the catalog that the wizard offers as the default'],
  [
    'FLASHER_REGISTER_UEFI_BOOT',
    'when 1, the firmware boots a flashed disk once, on the next boot',
  ],
  ['FLASHER_PXE_TOKEN', 'token with which the machine server recognises this machine'],
  ['FLASHER_OFFER_LOOP', 'loop devices to offer as disks, for tests; 1 for all'],
  [
    'FLASHER_RELEASES_BASE_URL',
    'where the default catalog is, unless FLASHER_DEFAULT_CATALOG names one',
  ],
]

/** What the live system sets for the wizard. */
export const LIVE_ENVIRONMENT: readonly Entry[] = [
  ['FLASHER_LIVE', '1 in the live system: the machine may be restarted'],
  ['FLASHER_LIVE_SERVER', 'the server that booted this machine'],
  ['FLASHER_LIVE_SERVERS', 'the other servers of the site, with commas between them'],
  ['FLASHER_LIVE_MAC', 'the MAC address by which that server knows this machine'],
]

/** What the server programs read besides their settings. */
export const SERVER_ENVIRONMENT: readonly Entry[] = [
  ['FLASHER_CONFIG_FILE, FLASHER_CONFIG_DIR', 'a file or folder to read instead of the usual ones'],
  DEBUG_ENVIRONMENT,
  ['FLASHER_LINE', 'the release line to serve: current (the default) or earlier'],
]

/** The variables of `flasher-web flash`, which asks a server that runs. */
export const ORDER_ENVIRONMENT: readonly Entry[] = [['FLASHER_TOKEN', 'the API token of "flash"']]

// The commands that every program gets from its command table alone: `completion` and `manual`.

/** `flags` are those that every command of the program takes. */
export const createTextCommands = (program: string, flags: readonly Flag[] = []) =>
  ({
    completion: {
      words: ['completion'],
      summary: 'print a completion script for a shell',
      about: ['Prints a script that lets the shell complete commands, flags and their values.'],
      positionals: [
        {
          value: { name: 'SHELL', completes: 'choices', choices: SHELLS },
          help: 'bash, zsh or fish',
        },
      ],
      flags,
      examples: [
        {
          line: `${program} completion bash > /etc/bash_completion.d/${program}`,
          does: 'install it for bash',
        },
        { line: `source <(${program} completion bash)`, does: 'try it in this shell' },
      ],
    },
    manual: {
      words: ['manual'],
      summary: 'print the manual page',
      about: ['Prints the manual page in roff, as man reads it.'],
      positionals: [],
      flags,
      examples: [{ line: `${program} manual | man -l -`, does: 'read it' }],
    },
  }) as const satisfies Readonly<Record<string, Command>>

/** The arguments were checked. */
export const shellOf = ([named]: readonly string[]): ShellName =>
  SHELLS.find((name) => name === named) ?? 'bash'

// The parts that the command lines of both servers share: flags, files, and `serve` as the default command.

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

/** `--config` before the command goes behind it; without any command it is `serve`. */
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
