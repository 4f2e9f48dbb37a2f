/** What speaks against a command that a page shows: by the command tables, the variables and the routes that there are. */
import { COMMAND_LINE as CACHE } from '../../../runtime/cache/rules/commands.ts'
import { WIZARD } from '../../../runtime/flasher/wizard/options.ts'
import { COMMAND_LINE as FLASHER } from '../../../runtime/flasher/commands/rules/commands.ts'
import { TUI_LINE as TUI } from '../../../runtime/flasher/panes/rules/tui-commands.ts'
import {
  parseArguments,
  renderMisuse,
} from '../../../runtime/kit/terminal/command/rules/arguments.ts'
import { completeArguments } from '../../../runtime/kit/terminal/command/rules/server-command.ts'
import { COMMAND_LINE as WEB } from '../../../runtime/server/current/rules/commands.ts'
import { renderReference } from '../../../runtime/server/current/rules/settings-reference.ts'
import { readTexts } from '../arrows.ts'

/** What reads like a command: the boot entry of a disk, a row of figures. */
const NAMES: ReadonlySet<string> = new Set(['flasher flashed', 'flasher (read back)'])

const PROGRAMS = {
  flasher: { ...FLASHER, main: WIZARD },
  'flasher-web': WEB,
  'flasher-cache': CACHE,
  'flasher-tui': TUI,
}
/** A command's name alone is no mistake: what it needs is left to the reader. */
const WRONG: ReadonlySet<string> = new Set(['unknown-command', 'unknown-flag', 'bad-choice'])

/** What is wrong with a line that begins with one of our programs; null: nothing, or it is another program. */
export function misuseOfLine(line: string): string | null {
  const [, program = '', rest = ''] =
    /^(?:npx pnpm |sudo |\$ |# |[A-Z_]+=\S* )*(flasher(?:-web|-cache|-tui)?)((?: [^\s|#;&>]+)*)/.exec(
      line.trim(),
    ) ?? []
  return program === '' || NAMES.has(line) ? null : misuseOf(program, rest.trim().split(' '))
}

function misuseOf(program: string, given: readonly string[]): string | null {
  const words = given
    .map((word) => word.replaceAll(/^\[|\]$/g, ''))
    .filter((word) => /\w/.test(word))
  const [, line] = Object.entries(PROGRAMS).find(([name]) => name === program) ?? []
  if (line === undefined || words.includes('COMMAND')) return null
  const argv = line.main !== undefined ? words : completeArguments(line, words)
  const reading = parseArguments(line, argv)
  return reading.ok || !WRONG.has(reading.refusal.why) ? null : renderMisuse(reading.refusal)
}

/** Each command of a script by itself: lines that end with a backslash go on. */
const commandsOf = (script: string): readonly string[] =>
  script
    .replaceAll(/\s*\\\n\s*/g, ' ')
    .split(/\n|&&|\|\|?|;| -- (?=\w)|\benv (?=[A-Z])/)
    .map((command) => command.trim())

const ROUTE_FILES = ['runtime/{server,cache,kit/web}/**/*.ts', 'runtime/bin/*.ts']
/** A path that begins with a name of the code may have anything before its words. */
const PATH = /['`](\$\{[\w.]+\})?(\/[^'`\s]*)['`]/g
const patterns = [...readTexts(ROUTE_FILES).values()]
  .flatMap((text) => [...text.matchAll(PATH)])
  .map(([, before, path = '']) => {
    const steps = path.replaceAll(/:\w+|\{\w+\}|\$\{[^}]+\}/g, '*')
    const prefix = before !== undefined && /\/[a-z]{4}/.test(steps) ? '.*' : ''
    return `^${prefix}${RegExp.escape(steps).replaceAll(RegExp.escape('*'), '[^/]+')}/?$`
  })
// What is nothing but names of a route could be any path.
const routes = [...new Set(patterns.filter((pattern) => /[a-z]{3}/.test(pattern)))].map(
  (pattern) => new RegExp(pattern),
)

const isRoute = (path: string) => routes.some((pattern) => pattern.test(path))

const OURS =
  /(?:\$(?:flasher|cache|server)|https?:\/\/(?:127\.0\.0\.1|[\w.-]*flasher[\w.-]*|192\.0\.2\.10):\d+)(\/[^\s"'?\\)]*)/g

const known = new Set(
  [
    renderReference(),
    ...readTexts([
      '{runtime,appliance}/**/*.ts',
      'overlays/**/*.{sh,service,env,conf}',
      'overlays/**/{bin,sbin}/flasher*',
    ]).values(),
  ].flatMap((text) => text.match(/\bFLASHER_[A-Z_]+/g) ?? []),
)

/** What speaks against the commands of a fenced block for a shell, without running any of them. */
export function listMistakes(script: string): readonly string[] {
  const withoutComments = script.replaceAll(/(^|\s)#.*$/gm, '')
  return [
    ...commandsOf(withoutComments).flatMap((command) => {
      const wrong = misuseOfLine(command)
      return wrong === null ? [] : [`${command}: ${wrong}`]
    }),
    ...[...withoutComments.matchAll(OURS)]
      .map(([, path = '']) => path)
      .filter((path) => !isRoute(path))
      .map((path) => `no route answers ${path}`),
    ...(withoutComments.match(/\bFLASHER_[A-Z_]+/g) ?? [])
      .filter((name) => !known.has(name))
      .map((name) => `nothing reads ${name}`),
  ]
}
