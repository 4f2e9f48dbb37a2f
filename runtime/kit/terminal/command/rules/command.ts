/** Describes a program's command line as data; parser, help, completion and manual are generated from it. */

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
