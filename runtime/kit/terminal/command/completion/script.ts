/** Pieces that the completion scripts of all shells are built from. */
import type { Command, CommandLine } from '../rules/command.ts'

/** Disks, without memory, loop and optical ones: those can be typed. */
export const LIST_DISKS = 'lsblk -dpnro NAME -e 1,7,11 2>/dev/null'

/** In single quotes, as bash and zsh read them; what is quoted here holds no line ends. */
export const quote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

export const flagNames = (command: Command): readonly string[] => [
  ...command.flags.map(({ name }) => `--${name}`),
  '--help',
]

/** Flags that may stand where the next word of a command could. */
export const topFlags = ({ main }: CommandLine, words: readonly string[]): readonly string[] => [
  ...(words.length === 0 ? (main?.flags ?? []).map(({ name }) => `--${name}`) : []),
  '--help',
  ...(words.length === 0 ? ['--version'] : []),
]

export const indent = (lines: readonly string[]): readonly string[] =>
  lines.map((line) => `  ${line}`)

export const script = (...lines: readonly string[]): string => `${lines.join('\n')}\n`
