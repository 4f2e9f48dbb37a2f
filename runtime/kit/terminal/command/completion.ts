/** Completion scripts made from a command table, one renderer per shell. */
import {
  type CommandLine,
  type ShellName,
  groupsOf,
  nextWords,
  type Command,
  type Value,
  findCommand,
  type Flag,
} from './rules/command.ts'
import { renderZshCompletion } from './completion/zsh.ts'
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import { flagNames, indent, LIST_DISKS, quoteWord, script, topFlags } from './completion/script.ts'

/** The completion script for fish. */
function renderFishCompletion(line: CommandLine): string {
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

/** The completion script for bash; it needs no bash-completion package. */
function renderBashCompletion(line: CommandLine): string {
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
    return `${quoteWord(words.join(' '))}) ${me}_words ${quoteWord(next.join(' '))} ;;`
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
  flags.flatMap(({ name, value }) =>
    value === null ? [] : [`--${name}) ${bashCall(me, value)} ;;`],
  )

function leaf(me: string, command: Command): readonly string[] {
  const [positional] = command.positionals
  const flags = `${me}_flags ${flagNames(command).join(' ')}`
  const rest =
    positional === undefined
      ? [`*) ${flags} ;;`]
      : [`*) if [[ $cur == -* ]]; then ${flags}; else ${bashCall(me, positional.value)}; fi ;;`]
  return [
    `${quoteWord(`${command.words.join(' ')} `)}*)`,
    '  case "$prev" in',
    ...indent(indent([...valueCases(me, command), ...rest])),
    '  esac',
    '  ;;',
  ]
}

function bashCall(me: string, { completes, choices = [] }: Value): string {
  if (completes === 'nothing') return 'COMPREPLY=()'
  return completes === 'choices'
    ? `${me}_words ${quoteWord(choices.join(' '))}`
    : `${me}_${completes}`
}

const RENDERERS = {
  bash: renderBashCompletion,
  zsh: renderZshCompletion,
  fish: renderFishCompletion,
} as const satisfies Record<ShellName, (line: CommandLine) => string>

export const renderCompletion = (line: CommandLine, shell: ShellName): string =>
  RENDERERS[shell](line)
