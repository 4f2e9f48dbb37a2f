/** One key of the configuration: its type, its default, and how it is displayed. */
import type { ZodType } from 'zod'
import { printable } from '../../foundation/printable.ts'
import { accept, refuse, type Result } from '../../foundation/result.ts'

/** A sort of value: how it is checked, and how it is written in TOML, a variable or a form. */
export interface Kind<T> {
  readonly schema: ZodType<T>
  /** What it must be, to follow "must be": `a whole number from 1 to 65535`. */
  readonly wants: string
  /** The value of a text (a variable's, a form field's), still to be checked by the schema. */
  readonly fromText: (text: string) => unknown
  /** As a TOML file writes it. */
  readonly toToml: (value: T) => TomlValue
}

/** What configuration files hold of what TOML can. */
export type TomlValue =
  | string
  | number
  | boolean
  | readonly TomlValue[]
  | { readonly [key: string]: TomlValue }

export interface Setting<T> {
  /** One sentence for the reference. */
  readonly help: string
  readonly fallback: T
  /** The fallback in words, where the value alone is not clear: `<state_dir>/boot`. */
  readonly fallbackWords: string | null
  /** A variable of its own beside `FLASHER_<SECTION>_<KEY>`. */
  readonly env: string | null
  /** Never shown, logged or edited in a browser. */
  readonly isSecret: boolean
  readonly reload: 'live' | 'restart'
  readonly wants: string
  /** Checks what a file holds; refused with what is wanted instead, in words. */
  readonly parse: (given: unknown) => Result<T, string>
  /** The value of a text; an empty text is no value and never gets here. */
  readonly fromText: (text: string) => unknown
  /** Null when `given` is not a value of this setting. */
  readonly toToml: (given: unknown) => TomlValue | null
}

interface SettingOptions {
  readonly secret?: true
  readonly restart?: true
  readonly env?: string
  readonly fallbackWords?: string
}

export function setting<T>(
  kind: Kind<T>,
  fallback: T,
  help: string,
  { secret, restart, env, fallbackWords }: SettingOptions = {},
): Setting<T> {
  const isSecret = secret === true
  const parse = (given: unknown): Result<T, string> => {
    const checked = kind.schema.safeParse(given)
    if (checked.success) return accept(checked.data)
    return refuse(
      isSecret ? `must be ${kind.wants}` : `must be ${kind.wants}, not ${renderGiven(given)}`,
    )
  }
  return {
    help,
    fallback,
    fallbackWords: fallbackWords ?? null,
    env: env ?? null,
    isSecret,
    reload: restart === true ? 'restart' : 'live',
    wants: kind.wants,
    parse,
    fromText: kind.fromText,
    toToml: (given) => {
      const parsed = parse(given)
      return parsed.ok ? kind.toToml(parsed.value) : null
    },
  }
}

/** Sections, and the keys in them. */
export type SettingsTable = Readonly<Record<string, Readonly<Record<string, Setting<unknown>>>>>

/** The values of a table: `settings.server.port`. */
export type SettingsOf<Table extends SettingsTable> = {
  readonly [Section in keyof Table]: {
    readonly [Key in keyof Table[Section]]: Table[Section][Key] extends Setting<infer Value>
      ? Value
      : never
  }
}

/** The variables that set it, the one to name first: its own, then `FLASHER_<SECTION>_<KEY>`. */
export const variablesOf = (
  section: string,
  key: string,
  { env }: Setting<unknown>,
): readonly [string, ...string[]] => {
  const regular = `FLASHER_${section}_${key}`.toUpperCase()
  return env === null ? [regular] : [env, regular]
}

/** Every setting with its place, in the table's order. */
export const listSettings = (table: SettingsTable) =>
  Object.entries(table).flatMap(([section, keys]) =>
    Object.entries(keys).map(([key, row]) => ({ section, key, row })),
  )

export const findSetting = (table: SettingsTable, section: string, key: string) =>
  Object.hasOwn(table, section) && Object.hasOwn(table[section] ?? {}, key)
    ? (table[section]?.[key] ?? null)
    : null

/** As a form's field holds it, so that the same text gives the same value back. */
export function renderText(value: TomlValue): string {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return value.map(renderText).join(', ')
  if (typeof value !== 'object') return String(value)
  return Object.keys(value).length === 0 ? '' : JSON.stringify(value)
}

const MAX_SHOWN = 60

/** What somebody wrote instead, short and safe for a terminal. */
const CREDENTIALS = /\/\/[^/\s"]*@/g

function renderGiven(given: unknown): string {
  const text = JSON.stringify(given, (_, value) =>
    typeof value === 'bigint' ? String(value) : value,
  )
  // Credentials in an address are shown to be there, but not which.
  const safe = printable(text ?? typeof given).replace(CREDENTIALS, '//***@')
  return safe.length > MAX_SHOWN ? `${safe.slice(0, MAX_SHOWN)}…` : safe
}
