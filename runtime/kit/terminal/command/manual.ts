/** The manual page in roff, made from a command table. */
import { helpOf, type Command, type CommandLine, type Entry, type Flag } from './rules/command.ts'
import { wrap } from '../text/columns.ts'

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
    ...commands.flatMap((command) => section(program, command)),
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
  const required = flags.filter((flag) => flag.required === true).map(renderFlag)
  const names = positionals.map(({ value, optional }) =>
    optional === true ? `[${italic(value.name)}]` : italic(value.name),
  )
  const called = bold([program, ...words].join(' '))
  return [called, ...names, ...required, `[${italic('OPTION')}...]`].join(' ')
}

const section = (program: string, command: Command): readonly string[] => [
  `.SS "${escape([program, ...command.words].join(' '))}"`,
  ...details(command),
]

const details = ({ about, positionals, flags }: Command): readonly string[] => [
  ...paragraphs(about),
  ...positionals.flatMap(({ value, help }) => ['.TP', italic(value.name), sentence(help)]),
  ...flags.flatMap((flag) => ['.TP', renderFlag(flag), sentence(helpOf(flag))]),
]

function renderFlag({ name, value }: Flag): string {
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

const sentence = (text: string) =>
  filled(`${text.charAt(0).toUpperCase()}${text.slice(1)}.`).join('\n')

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
