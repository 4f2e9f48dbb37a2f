/** The arguments of a `build:*` script, read by sade: help, version, and an error that suggests the right word. */
import sade from 'sade'
import { nearestOf } from '#kit/foundation/nearest.ts'

interface Option {
  readonly help: string
  /** What stands for its value in the help; absent: a switch. */
  readonly value?: string
  readonly default?: string
}

export interface Script {
  /** As package.json calls it: `build:images`. */
  readonly name: string
  /** Sentences for the help. */
  readonly summary: readonly string[]
  readonly version: string
  /** What the positional arguments are; absent: the script takes none. */
  readonly positionals?: string
  /** By name, without dashes. */
  readonly options?: Readonly<Record<string, Option>>
  readonly examples?: readonly string[]
}

interface Given {
  readonly positionals: readonly string[]
  readonly switches: ReadonlySet<string>
  /** The values by name, the last one of an option that was repeated; an empty text is a missing value. */
  readonly values: Readonly<Record<string, string>>
  /** All values by name, in their order, of an option that may be repeated. */
  readonly lists: Readonly<Record<string, readonly string[]>>
}

/** A command line that asks for something that does not exist; the message is for people. */
export class UsageError extends Error {}

/**
 * @param argv without program and script.
 * @returns null when help or the version was asked for and printed.
 * @throws UsageError
 */
export function readArguments(script: Script, argv: readonly string[]): Given | null {
  const options = Object.entries(script.options ?? {})
  const namesOf = (hasValue: boolean) =>
    options.filter(([, { value }]) => (value !== undefined) === hasValue).map(([name]) => name)
  const found = createApp(script).parse(['node', script.name, ...argv], {
    lazy: true,
    string: namesOf(true),
    boolean: namesOf(false),
    unknown: (flag) => {
      throw new UsageError(
        describeUnknown(flag, ['help', 'version', ...options.map(([name]) => name)]),
      )
    },
  })
  // sade has printed the help or the version.
  if (found === undefined) return null
  const fields = new Map<string, unknown>(Object.entries(found.args.at(-1) ?? {}))
  const last = (name: string) => [fields.get(name)].flat().at(-1)
  const positionals = [...found.args.slice(0, -1), fields.get('_')].flat().filter(isText)
  const [stranger] = positionals
  if (script.positionals === undefined && stranger !== undefined) {
    throw new UsageError(`unexpected argument ${stranger}`)
  }
  const lists = Object.fromEntries(
    namesOf(true).map((name) => [name, [fields.get(name)].flat().filter(isText)]),
  )
  return {
    positionals,
    switches: new Set(namesOf(false).filter((name) => last(name) === true)),
    values: Object.fromEntries(
      namesOf(true).flatMap((name) => {
        const value = last(name)
        return isText(value) ? [[name, value]] : []
      }),
    ),
    lists,
  }
}

const isText = (value: unknown): value is string => typeof value === 'string'

function createApp({ name, summary, version, positionals, options = {}, examples = [] }: Script) {
  const usage = positionals === undefined ? name : `${name} [${positionals}...]`
  const app = sade(usage, true)
    .version(version)
    .describe([...summary])
  for (const [option, { help, value, default: usual }] of Object.entries(options)) {
    app.option(`--${option}`, value === undefined ? help : `${help} (${value})`, usual)
  }
  for (const example of examples) app.example(example)
  return app.action(() => undefined)
}

function describeUnknown(flag: string, known: readonly string[]): string {
  const [word = flag] = flag.split('=')
  const nearest = nearestOf(word.replace(/^-+/, ''), known)
  const hint = nearest === null ? '' : `; did you mean --${nearest}?`
  return `there is no option ${word}${hint}`
}
