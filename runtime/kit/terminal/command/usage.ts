/** Usage lines, help screens and the manual page in roff, made from a command table. */
import { upperFirst } from '#kit/foundation/text.ts'
import {
  commandsUnder,
  findCommand,
  helpOf,
  nextWords,
  type Command,
  type CommandLine,
  type Flag,
  type Positional,
  type Entry,
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
  if (isWhole && line.main !== undefined) return mainHelp(line, line.main, commands, width)
  return [
    ...(isWhole ? [`${line.program}: ${line.summary}`, ''] : []),
    renderUsage(line, at),
    ...section('Commands', wrapColumns(commands, width)),
    ...section('Options', wrapColumns(isWhole ? [HELP, VERSION] : [HELP], width)),
    ...(isWhole ? section('Exit codes', wrapColumns(line.exitCodes, width)) : []),
    '',
    `Try "${line.program} COMMAND --help" for more about a command.`,
  ]
}

/** On one screen: the manual has the rest. */
const mainHelp = (
  line: CommandLine,
  { flags, about }: Command,
  commands: readonly Entry[],
  width: number,
): readonly string[] => [
  `${line.program}: ${line.summary}`,
  `Usage: ${[line.program, ...flags.map((flag) => `[${renderFlag(flag)}]`)].join(' ')} [--version] [--help]`,
  renderUsage(line, []).replace(/^Usage:/, '      '),
  ...about.flatMap((paragraph) => ['', ...wrap(paragraph, width)]),
  // One line less, for the screen.
  ...section('Commands', wrapColumns(commands, width)).slice(1),
  ...section('Options without a command', wrapColumns(flags.map(flagRow), width)),
  `More: "${line.program} COMMAND --help", "${line.program} manual | man -l -"`,
]

function commandHelp(line: CommandLine, command: Command, width: number): readonly string[] {
  const positionals = command.positionals.map(({ value, help }) => [value.name, help] as const)
  const flags = command.flags.map(flagRow)
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

const flagRow = (flag: Flag): Entry => [renderFlag(flag), helpOf(flag)]

const HELP = ['--help', 'show this help'] as const
const VERSION = ['--version', 'show the version'] as const

const section = (title: string, lines: readonly string[]) => ['', `${title}:`, ...lines]

// The manual page in roff, made from a command table.

/** For section 1. */
export function renderManual(line: CommandLine): string {
  const { program, summary, about, commands, main, mainTitle = 'WIZARD' } = line
  const { exitCodes, environment, files, revised } = line
  const all = main === undefined ? commands : [main, ...commands]
  return `${[
    `.\\" Made by "${program} manual"; do not edit.`,
    `.TH ${program.toUpperCase()} 1 ${revised} ${program} "User Commands"`,
    '.SH NAME',
    `${program} \\- ${escape(summary)}`,
    '.SH SYNOPSIS',
    ...all.flatMap((command, index) => [...(index > 0 ? ['.br'] : []), synopsis(program, command)]),
    '.SH DESCRIPTION',
    ...paragraphs(about),
    ...(main === undefined ? [] : [`.SH ${mainTitle}`, ...details(main)]),
    '.SH COMMANDS',
    ...commands.flatMap((command) => typesetCommand(program, command)),
    '.SH EXIT STATUS',
    ...entries(exitCodes),
    '.SH ENVIRONMENT',
    ...entries(environment),
    '.SH FILES',
    ...entries(files),
    '.SH EXAMPLES',
    ...all.flatMap(({ examples }) =>
      examples.flatMap(({ line: typed, does }) => ['.TP', bold(typed), sentence(does)]),
    ),
  ].join('\n')}\n`
}

function synopsis(program: string, { words, positionals, flags }: Command): string {
  const required = flags.filter((flag) => flag.required === true).map(typesetFlag)
  const names = positionals.map(({ value, optional }) =>
    optional === true ? `[${italic(value.name)}]` : italic(value.name),
  )
  const called = bold([program, ...words].join(' '))
  return [called, ...names, ...required, `[${italic('OPTION')}...]`].join(' ')
}

const typesetCommand = (program: string, command: Command): readonly string[] => [
  `.SS "${escape([program, ...command.words].join(' '))}"`,
  ...details(command),
]

const details = ({ about, positionals, flags }: Command): readonly string[] => [
  ...paragraphs(about),
  ...positionals.flatMap(({ value, help }) => ['.TP', italic(value.name), sentence(help)]),
  ...flags.flatMap((flag) => ['.TP', typesetFlag(flag), sentence(helpOf(flag))]),
]

function typesetFlag({ name, value }: Flag): string {
  const flag = bold(`--${name}`)
  if (value === null) return flag
  return value.choices === undefined
    ? `${flag} ${italic(value.name)}`
    : `${flag} {${value.choices.map(bold).join('|')}}`
}

const entries = (rows: readonly Entry[]) =>
  rows.flatMap(([name, meaning]) => ['.TP', bold(name), sentence(meaning)])

const paragraphs = (texts: readonly string[]) =>
  texts.flatMap((text, index) => [...(index > 0 ? ['.PP'] : []), ...filled(text)])

const sentence = (text: string) => filled(`${upperFirst(text)}.`).join('\n')

/** Short lines in the source; man fills them again. */
const filled = (text: string) => wrap(text, 66).map(escape)

const bold = (text: string) => `\\fB${escape(text)}\\fR`
const italic = (text: string) => `\\fI${escape(text)}\\fR`

/** groff reads plain ASCII, in which any other character stands as its code point in hexadecimal. */
const nameCharacter = (one: string) =>
  `\\[u${(one.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`

/** Backslashes, hyphens that are typed as such, and what a line must not begin with, and letters of the world. */
const escape = (text: string) =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('~', '\\(ti')
    .replaceAll('^', '\\(ha')
    .replaceAll(/\P{ASCII}/gu, nameCharacter)
    .replace(/^[.']/, '\\&$&')
