/** The completion script for zsh: a file of `fpath`, or sourced. */
import {
  groupsOf,
  nextWords,
  type Command,
  type CommandLine,
  type Value,
} from '../rules/command.ts'
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import { indent, LIST_DISKS, quote, script, topFlags } from './script.ts'

/** zsh sources it, or finds it in its `fpath`. */
export function renderZshCompletion(line: CommandLine): string {
  const me = `_${line.program}`
  return script(
    `#compdef ${line.program}`,
    `# zsh completion of ${line.program}, made by "${line.program} completion zsh"`,
    `${me}_disk() {`,
    '  local -a disks',
    `  disks=(\${(f)"$(${LIST_DISKS})"})`,
    '  compadd -a disks || _files',
    '}',
    `${me}() {`,
    ...indent(groupsOf(line).flatMap((words) => group(line, words))),
    ...indent(line.commands.flatMap((command) => leaf(me, command))),
    ...(line.main === undefined ? [] : indent(mainLeaf(me, line.main))),
    '}',
    `if [[ "\${funcstack[1]}" == ${me} ]]; then ${me} "$@"; else compdef ${me} ${line.program}; fi`,
  )
}

/** Whether the words typed behind the program's name begin with these. */
const isTyped = (words: readonly string[]) =>
  `[[ "\${words[2,${words.length + 1}]}" == ${quote(words.join(' '))} ]]`

function group(line: CommandLine, words: readonly string[]): readonly string[] {
  const next = [...nextWords(line, words), ...topFlags(line, words)]
  return [
    `if (( CURRENT == ${words.length + 2} )) && ${isTyped(words)}; then`,
    `  compadd -- ${next.join(' ')}`,
    '  return',
    'fi',
  ]
}

/** `_arguments` wants to see the command's last word where the program's name stands. */
const leaf = (me: string, command: Command): readonly string[] => [
  `if ${isTyped(command.words)}; then`,
  `  shift ${command.words.length} words`,
  `  (( CURRENT -= ${command.words.length} ))`,
  `  _arguments ${specs(me, command).map(quote).join(' ')}`,
  '  return',
  'fi',
]

const mainLeaf = (me: string, main: Command): readonly string[] => [
  `_arguments ${specs(me, main).map(quote).join(' ')}`,
]

function specs(me: string, command: Command): readonly string[] {
  const flags = command.flags.map(({ name, value, help }) =>
    value === null
      ? `--${name}[${escape(help)}]`
      : `--${name}=[${escape(help)}]:${escape(value.name)}:${call(me, value)}`,
  )
  const positionals = command.positionals.map(
    ({ value, optional }, index) =>
      `${index + 1}:${optional === true ? ':' : ''}${escape(value.name)}:${call(me, value)}`,
  )
  return [...flags, '--help[show help]', ...positionals]
}

const call = (me: string, { completes, choices = [] }: Value): string =>
  ({
    choices: `(${choices.join(' ')})`,
    file: '_files',
    folder: '_files -/',
    image: `_files -g "*.(${IMAGE_FORMATS.join('|')})(-.)"`,
    disk: `${me}_disk`,
    nothing: ' ',
  })[completes]

const escape = (text: string) => text.replaceAll(/[\\[\]:]/g, String.raw`\$&`)
