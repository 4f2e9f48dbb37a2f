/** The completion script for bash; it needs no bash-completion package. */
import {
  groupsOf,
  nextWords,
  type Command,
  type CommandLine,
  type Value,
} from '../rules/command.ts'
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import { flagNames, indent, LIST_DISKS, quote, script, topFlags } from './script.ts'

export function renderBashCompletion(line: CommandLine): string {
  const me = `_${line.program}`
  return script(
    `# bash completion of ${line.program}, made by "${line.program} completion bash"`,
    ...parts(me),
    `${me}() {`,
    '  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} said="" i',
    '  COMPREPLY=()',
    '  # --flag=value comes as three words.',
    '  [[ $prev == "=" ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}',
    '  [[ $cur == "=" ]] && cur=""',
    '  for ((i = 1; i < COMP_CWORD; i++)); do',
    '    [[ ${COMP_WORDS[i]} == -* ]] && break',
    '    said+="${said:+ }${COMP_WORDS[i]}"',
    '  done',
    '  case "$said" in',
    ...indent(indent(groups(me, line))),
    '  esac',
    ...(line.main === undefined ? [] : mainValues(me, line.main)),
    '  case "$said " in',
    ...indent(indent(line.commands.flatMap((command) => leaf(me, command)))),
    '  esac',
    '}',
    `complete -F ${me} ${line.program}`,
  )
}

/** What is called for each kind of value. */
const parts = (me: string): readonly string[] => [
  `${me}_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }`,
  `${me}_paths() {`,
  '  compopt -o filenames 2>/dev/null',
  '  mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")',
  '}',
  `${me}_file() { ${me}_paths -f; }`,
  `${me}_folder() { ${me}_paths -d; }`,
  `${me}_image() {`,
  '  local at found=()',
  `  ${me}_paths -f`,
  '  for at in "${COMPREPLY[@]}"; do',
  '    case "${at,,}" in',
  `      ${IMAGE_FORMATS.map((format) => `*.${format}`).join(' | ')}) found+=("$at") ;;`,
  '      *) [[ -d $at ]] && found+=("$at") ;;',
  '    esac',
  '  done',
  '  COMPREPLY=("${found[@]}")',
  '}',
  `${me}_disk() {`,
  `  ${me}_words "$(${LIST_DISKS})"`,
  `  [[ \${#COMPREPLY[@]} -gt 0 ]] || ${me}_file`,
  '}',
  '# Flags that were not given yet.',
  `${me}_flags() {`,
  '  local flag left=""',
  '  for flag in "$@"; do',
  '    [[ " ${COMP_WORDS[*]:0:COMP_CWORD} " == *" $flag "* ]] || left+=" $flag"',
  '  done',
  `  ${me}_words "$left"`,
  '}',
]

const groups = (me: string, line: CommandLine): readonly string[] =>
  groupsOf(line).map((words) => {
    const next = [...nextWords(line, words), ...topFlags(line, words)]
    return `${quote(words.join(' '))}) ${me}_words ${quote(next.join(' '))} ;;`
  })

/** Flags without a command in front: what their values may be, and which are left. */
const mainValues = (me: string, main: Command): readonly string[] => [
  '  if [[ -z $said && COMP_CWORD -gt 1 ]]; then',
  '    case "$prev" in',
  ...indent(indent(indent(valueCases(me, main)))),
  `      *) ${me}_flags ${flagNames(main).join(' ')} ;;`,
  '    esac',
  '  fi',
]

const valueCases = (me: string, { flags }: Command) =>
  flags.flatMap(({ name, value }) => (value === null ? [] : [`--${name}) ${call(me, value)} ;;`]))

function leaf(me: string, command: Command): readonly string[] {
  const [positional] = command.positionals
  const flags = `${me}_flags ${flagNames(command).join(' ')}`
  const rest =
    positional === undefined
      ? [`*) ${flags} ;;`]
      : [`*) if [[ $cur == -* ]]; then ${flags}; else ${call(me, positional.value)}; fi ;;`]
  return [
    `${quote(`${command.words.join(' ')} `)}*)`,
    '  case "$prev" in',
    ...indent(indent([...valueCases(me, command), ...rest])),
    '  esac',
    '  ;;',
  ]
}

function call(me: string, { completes, choices = [] }: Value): string {
  if (completes === 'nothing') return 'COMPREPLY=()'
  return completes === 'choices' ? `${me}_words ${quote(choices.join(' '))}` : `${me}_${completes}`
}
