/** Usage lines and help screens, made from a command table. */
import {
  commandsUnder,
  findCommand,
  helpOf,
  nextWords,
  type Command,
  type CommandLine,
  type Flag,
  type Positional,
} from './rules/command.ts'
import { wrap, wrapColumns } from '../text/columns.ts'

/** `--image IMAGE`, `--json`; choices in braces. */
function renderFlag({ name, value }: Flag): string {
  if (value === null) return `--${name}`
  return `--${name} ${value.choices === undefined ? value.name : `{${value.choices.join(',')}}`}`
}

/** In brackets where it may be left out. */
const renderPositional = ({ value, optional }: Positional) =>
  optional === true ? `[${value.name}]` : value.name

export function renderUsage(line: CommandLine, at: readonly string[]): string {
  const words = [line.program, ...at].join(' ')
  const command = findCommand(line, at)
  if (command === null) return `Usage: ${words} ${nextInWords(line, at)}`
  const required = command.flags.filter((flag) => flag.required === true).map(renderFlag)
  const positionals = command.positionals.map(renderPositional)
  return ['Usage:', words, ...positionals, ...required, '[OPTION...]'].join(' ')
}

const nextInWords = (line: CommandLine, at: readonly string[]) =>
  at.length === 0 ? 'COMMAND [OPTION...]' : `{${nextWords(line, at).join(',')}} [OPTION...]`

/** Of a command, of a group of commands, or of the whole program. */
export function renderHelp(line: CommandLine, at: readonly string[], columns: number): string {
  const width = Math.min(columns, 100)
  const command = findCommand(line, at)
  const lines = command === null ? groupHelp(line, at, width) : commandHelp(line, command, width)
  return `${lines.join('\n')}\n`
}

function groupHelp(line: CommandLine, at: readonly string[], width: number): readonly string[] {
  const commands = commandsUnder(line, at).map(
    ({ words, summary }) => [words.join(' '), summary] as const,
  )
  const isWhole = at.length === 0
  const main = isWhole ? line.main : undefined
  return [
    ...(isWhole ? [`${line.program}: ${line.summary}`, ''] : []),
    ...(main === undefined ? [] : [renderMainUsage(line, main)]),
    renderUsage(line, at).replace(/^Usage:/, main === undefined ? 'Usage:' : '      '),
    ...(main?.about ?? []).flatMap((paragraph) => ['', ...wrap(paragraph, width)]),
    ...section('Commands', wrapColumns(commands, width)),
    ...section('Options', wrapColumns(optionRows(main, isWhole), width)),
    ...(main === undefined ? [] : section('Options of the commands', optionsOf(line, width))),
    ...(isWhole ? section('Exit codes', wrapColumns(line.exitCodes, width)) : []),
    '',
    `Try "${line.program} COMMAND --help" for more about a command.`,
  ]
}

/** Without a command: every flag at a glance. */
const renderMainUsage = ({ program }: CommandLine, { flags }: Command) =>
  ['Usage:', program, ...flags.map((flag) => `[${renderFlag(flag)}]`), '[--version] [--help]'].join(
    ' ',
  )

const optionRows = (main: Command | undefined, isWhole: boolean) => [
  ...(main?.flags ?? []).map((flag) => [renderFlag(flag), helpOf(flag)] as const),
  HELP,
  ...(isWhole ? [VERSION] : []),
]

const optionsOf = ({ commands }: CommandLine, width: number) =>
  wrapColumns(
    commands.map(({ words, positionals, flags }) => [
      words.join(' '),
      [...positionals.map(renderPositional), ...flags.map(renderFlag)].join(' '),
    ]),
    width,
  )

function commandHelp(line: CommandLine, command: Command, width: number): readonly string[] {
  const positionals = command.positionals.map(({ value, help }) => [value.name, help] as const)
  const flags = command.flags.map((flag) => [renderFlag(flag), helpOf(flag)] as const)
  return [
    renderUsage(line, command.words),
    ...command.about.flatMap((paragraph) => ['', ...wrap(paragraph, width)]),
    ...(positionals.length === 0 ? [] : section('Arguments', wrapColumns(positionals, width))),
    ...section('Options', wrapColumns([...flags, HELP], width)),
    ...section(
      'Examples',
      command.examples.flatMap((example) => [`  # ${example.does}`, `  ${example.line}`]),
    ),
  ]
}

const HELP = ['--help', 'show this help'] as const
const VERSION = ['--version', 'show the version'] as const

const section = (title: string, lines: readonly string[]) => ['', `${title}:`, ...lines]
