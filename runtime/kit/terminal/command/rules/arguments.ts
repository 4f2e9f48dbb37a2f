/**
 * Parses a command line by its command table, and reports what is wrong with it. Commander, citty and
 * cleye make no manual page and no static completion; @bomb.sh/tab starts Node at each Tab.
 */
import { parseArgs } from 'node:util'
import { type Cases, decideCase } from '#kit/foundation/cases.ts'
import {
  commandsUnder,
  findCommand,
  nextWords,
  type Command,
  type CommandLine,
  type Flag,
  type Value,
} from './command.ts'
import { nearestOf } from '#kit/foundation/nearest.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

export type Misuse = {
  readonly at: readonly string[]
} & (
  | { readonly why: 'command-missing'; readonly known: readonly string[] }
  | { readonly why: 'unknown-command'; readonly given: string; readonly nearest: string | null }
  | { readonly why: 'unknown-flag'; readonly given: string; readonly nearest: string | null }
  | { readonly why: 'flag-too-early'; readonly given: string; readonly commands: readonly string[] }
  | { readonly why: 'value-missing'; readonly name: string; readonly value: string }
  | { readonly why: 'value-unwanted'; readonly name: string }
  | {
      readonly why: 'bad-choice'
      readonly name: string
      readonly given: string
      readonly choices: readonly string[]
      readonly nearest: string | null
    }
  | {
      readonly why: 'bad-shape'
      readonly name: string
      readonly given: string
      readonly expected: string
    }
  | { readonly why: 'repeated'; readonly name: string }
  | { readonly why: 'missing'; readonly names: readonly string[] }
  | { readonly why: 'extra'; readonly given: string }
)

export interface Arguments {
  readonly command: Command
  /** By flag, without dashes, as typed; the default of a flag that was not given. */
  readonly values: Readonly<Record<string, string>>
  /** The same for flags that may be repeated: every value, in the order given. */
  readonly lists: Readonly<Record<string, readonly string[]>>
  /** Switches that were given, without dashes. */
  readonly switches: ReadonlySet<string>
  readonly positionals: readonly string[]
}

type Reading =
  | { readonly kind: 'help'; readonly at: readonly string[] }
  | { readonly kind: 'version' }
  | { readonly kind: 'run'; readonly given: Arguments }

const isHelp = (word: string) => word === '--help' || word === '-h'

/**
 * `argv` has no program names; a refusal says what is wrong with it. No argument at all asks for
 * the main program, or else for help.
 */
export function parseArguments(
  line: CommandLine,
  argv: readonly string[],
): Result<Reading, Misuse> {
  if (line.main !== undefined && isForMain(line.main, argv)) return parseMain(line.main, argv)
  return argv.length === 0 ? accept({ kind: 'help', at: [] }) : parseCommand(line, argv)
}

function parseCommand(line: CommandLine, argv: readonly string[]): Result<Reading, Misuse> {
  const at: string[] = []
  for (const word of argv) {
    if (isHelp(word)) return accept({ kind: 'help', at })
    if (at.length === 0 && word === '--version') return accept({ kind: 'version' })
    const known = nextWords(line, at)
    if (word.startsWith('-')) return refuse(strayFlag(line, at, word))
    if (!known.includes(word)) {
      return refuse({ at, why: 'unknown-command', given: word, nearest: nearestOf(word, known) })
    }
    at.push(word)
    const command = findCommand(line, at)
    if (command !== null) return parseLeaf(command, argv.slice(at.length))
  }
  return refuse({ at, why: 'command-missing', known: nextWords(line, at) })
}

/** Nothing, or one of its flags in front. */
const isForMain = ({ flags }: Command, [first]: readonly string[]) =>
  first === undefined || flags.some(({ name }) => flagName(first) === `--${name}`)

function parseMain(main: Command, argv: readonly string[]): Result<Reading, Misuse> {
  return beforeDashes(argv).includes('--version')
    ? accept({ kind: 'version' })
    : parseLeaf(main, argv)
}

function strayFlag(line: CommandLine, at: readonly string[], given: string): Misuse {
  const name = flagName(given).slice(2)
  const takers = commandsUnder(line, at).filter(({ flags }) => flags.some((f) => f.name === name))
  const commands = takers.map(({ words }) => `"${[line.program, ...words].join(' ')}"`)
  return commands.length > 0
    ? { at, why: 'flag-too-early', given: `--${name}`, commands }
    : { at, why: 'unknown-flag', given, nearest: nearestOf(given, flagsOf(line)) }
}

const flagsOf = ({ main }: CommandLine) => [
  ...(main?.flags ?? []).map(({ name }) => `--${name}`),
  '--help',
  '--version',
]

interface GivenFlag {
  readonly flag: Flag
  /** Null: a switch. */
  readonly text: string | null
}

function parseLeaf(command: Command, words: readonly string[]): Result<Reading, Misuse> {
  if (beforeDashes(words).some(isHelp)) return accept({ kind: 'help', at: command.words })
  const flags: GivenFlag[] = []
  const positionals: string[] = []
  for (const token of tokenize(command, words)) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind !== 'option') continue
    const parsed = parseFlag(command, token, words[token.index] ?? '')
    if (!parsed.ok) return parsed
    flags.push(parsed.value)
  }
  const misuse = checkFlags(command, flags) ?? checkPositionals(command, positionals)
  return misuse === null
    ? accept({ kind: 'run', given: readArguments(command, flags, positionals) })
    : refuse(misuse)
}

/** Node splits the words; what they mean is ours to say. */
const tokenize = ({ flags }: Command, words: readonly string[]) =>
  parseArgs({
    args: [...words],
    options: Object.fromEntries(
      flags.map(({ name, value }) => [name, { type: value === null ? 'boolean' : 'string' }]),
    ),
    strict: false,
    tokens: true,
  }).tokens

type Token = Extract<ReturnType<typeof tokenize>[number], { readonly kind: 'option' }>

function readArguments(
  command: Command,
  given: readonly GivenFlag[],
  positionals: readonly string[],
): Arguments {
  const textsOf = (flag: Flag) =>
    given.flatMap((one) => (one.flag === flag && one.text !== null ? [one.text] : []))
  const named = command.flags.filter(({ value }) => value !== null)
  const single = named.flatMap((flag) => {
    const text = textsOf(flag)[0] ?? flag.value?.default
    return flag.repeatable === true || text === undefined ? [] : [[flag.name, text] as const]
  })
  const repeated = named.filter(({ repeatable }) => repeatable === true)
  const switches = given.flatMap(({ flag, text }) => (text === null ? [flag.name] : []))
  return {
    command,
    values: Object.fromEntries(single),
    lists: Object.fromEntries(repeated.map((flag) => [flag.name, textsOf(flag)])),
    switches: new Set(switches),
    positionals,
  }
}

/** Everything behind the first `--` is a positional, whatever it looks like. */
const beforeDashes = (words: readonly string[]) =>
  words.includes('--') ? words.slice(0, words.indexOf('--')) : words

/** The name keeps its dashes; a value may be joined to it. */
const flagName = (word: string): string => word.split('=', 1)[0] ?? ''

/** `word`: as it was typed. */
function parseFlag(command: Command, token: Token, word: string): Result<GivenFlag, Misuse> {
  const at = command.words
  const name = flagName(word)
  const flag = command.flags.find((one) => `--${one.name}` === name)
  if (flag === undefined) {
    const known = [...command.flags.map((one) => `--${one.name}`), '--help']
    return refuse({ at, why: 'unknown-flag', given: name, nearest: nearestOf(name, known) })
  }
  const { value: text = '', inlineValue: isJoined = false } = token
  if (flag.value === null) {
    return isJoined ? refuse({ at, why: 'value-unwanted', name }) : accept({ flag, text: null })
  }
  // A lone dash, or one dash and letters, may be a value; what looks like a flag is none.
  return text === '' || (!isJoined && text.startsWith('--'))
    ? refuse({ at, why: 'value-missing', name, value: flag.value.name })
    : accept({ flag, text })
}

function checkFlags({ words: at, flags }: Command, given: readonly GivenFlag[]): Misuse | null {
  const seen = new Set<Flag>()
  for (const { flag, text } of given) {
    const name = `--${flag.name}`
    if (seen.has(flag) && flag.repeatable !== true) return { at, why: 'repeated', name }
    seen.add(flag)
    const misuse = checkValue(at, name, flag.value, text)
    if (misuse !== null) return misuse
  }
  const names = flags
    .filter((flag) => flag.required === true && !seen.has(flag))
    .map(({ name, value }) => (value === null ? `--${name}` : `--${name} ${value.name}`))
  return names.length === 0 ? null : { at, why: 'missing', names }
}

function checkPositionals(
  { words: at, positionals }: Command,
  given: readonly string[],
): Misuse | null {
  const extra = given[positionals.length]
  if (extra !== undefined) return { at, why: 'extra', given: extra }
  const names = positionals
    .slice(given.length)
    .filter(({ optional }) => optional !== true)
    .map(({ value }) => value.name)
  if (names.length > 0) return { at, why: 'missing', names }
  for (const [index, { value }] of positionals.entries()) {
    const misuse = checkValue(at, value.name, value, given[index] ?? null)
    if (misuse !== null) return misuse
  }
  return null
}

function checkValue(
  at: readonly string[],
  name: string,
  value: Value | null,
  given: string | null,
): Misuse | null {
  if (value === null || given === null) return null
  const { choices, shape } = value
  if (given === '') return { at, why: 'value-missing', name, value: value.name }
  if (choices !== undefined && !choices.includes(given)) {
    return { at, why: 'bad-choice', name, given, choices, nearest: nearestOf(given, choices) }
  }
  return shape === undefined || shape.pattern.test(given)
    ? null
    : { at, why: 'bad-shape', name, given, expected: shape.words }
}

const guess = (nearest: string | null) => (nearest === null ? '' : `; did you mean ${nearest}?`)

const MESSAGES: Cases<'why', Misuse, string> = {
  'command-missing': ({ at, known }) => `${at.join(' ')} needs one of: ${known.join(', ')}`,
  'unknown-command': ({ at, given, nearest }) =>
    `unknown command: ${[...at, given].join(' ')}${guess(nearest)}`,
  'unknown-flag': ({ given, nearest }) => `unknown flag: ${given}${guess(nearest)}`,
  'flag-too-early': ({ given, commands: [first, second, third, ...more] }) =>
    `${given} goes after its command: ${[first, second, third].filter(Boolean).join(', ')}${more.length === 0 ? '' : ', …'}`,
  'value-missing': ({ name, value }) => `${name} needs a value: ${value}`,
  'value-unwanted': ({ name }) => `${name} does not take a value`,
  'bad-choice': ({ name, given, choices, nearest }) =>
    `${name} must be one of ${choices.join(', ')}, not ${given}${guess(nearest)}`,
  'bad-shape': ({ name, given, expected }) => `${name} must be ${expected}, not ${given}`,
  repeated: ({ name }) => `${name} is given more than once`,
  missing: ({ names }) => `missing: ${names.join(', ')}`,
  extra: ({ given }) => `unexpected argument: ${given}`,
}

export const renderMisuse = (misuse: Misuse): string => decideCase(MESSAGES, 'why', misuse)
