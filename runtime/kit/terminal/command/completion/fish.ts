/** The completion script for fish. */
import {
  findCommand,
  groupsOf,
  nextWords,
  type CommandLine,
  type Flag,
  type Value,
} from '../rules/command.ts'
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import { LIST_DISKS, script } from './script.ts'

export function renderFishCompletion(line: CommandLine): string {
  const me = `__${line.program}`
  const add = `complete -c ${line.program}`
  return script(
    `# fish completion of ${line.program}, made by "${line.program} completion fish"`,
    '# The words typed so far, without the program and up to the first flag.',
    `function ${me}_words`,
    '  for word in (commandline -opc)[2..-1]',
    "    string match -q -- '-*' $word; and break",
    '    echo $word',
    '  end',
    'end',
    `function ${me}_at; test (string join " " (${me}_words) | string collect) = "$argv"; end`,
    `function ${me}_in; string match -q -- "$argv *" (string join " " (${me}_words))" "; end`,
    `${add} -f`,
    `${add} -l help -d 'show help'`,
    `${add} -n '${me}_at' -l version -d 'show the version'`,
    ...groupsOf(line).flatMap((words) => group(line, words, `${add} -n ${at(me, words)}`)),
    ...(line.main?.flags ?? []).map((flag) => `${add} -n '${me}_at' ${renderFlag(flag)}`),
    ...line.commands.flatMap(({ words, flags, positionals }) => {
      const here = `${add} -n '${me}_in ${words.join(' ')}'`
      return [
        ...flags.map((flag) => `${here} ${renderFlag(flag)}`),
        ...positionals.map(({ value }) => `${here} ${call(value).replace(/^-[xr] /, '')}`),
      ]
    }),
  )
}

const renderFlag = ({ name, value, help }: Flag) =>
  `-l ${name}${value === null ? '' : ` ${call(value)}`} -d ${quote(help)}`

const at = (me: string, words: readonly string[]) => quote([`${me}_at`, ...words].join(' '))

function group(line: CommandLine, words: readonly string[], add: string): readonly string[] {
  return nextWords(line, words).map((word) => {
    const summary = findCommand(line, [...words, word])?.summary
    return `${add} -a ${word}${summary === undefined ? '' : ` -d ${quote(summary)}`}`
  })
}

const SUFFIXES = IMAGE_FORMATS.map((format) => `.${format}`).join(' ')

const call = ({ completes, choices = [] }: Value): string =>
  ({
    choices: `-x -a ${quote(choices.join(' '))}`,
    file: '-r -F',
    folder: "-x -a '(__fish_complete_directories)'",
    image: `-x -a '(__fish_complete_suffix ${SUFFIXES})'`,
    disk: `-x -a '(${LIST_DISKS})'`,
    nothing: '-x',
  })[completes]

/** fish knows `\'` within single quotes, unlike the other shells. */
const quote = (text: string) => `'${text.replaceAll(/['\\]/g, String.raw`\$&`)}'`
