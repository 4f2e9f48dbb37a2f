/** Resolves the configuration key by key: the layers of files, the value, its source, problems with it, and how it is shown. */
import { nearestOf } from '#kit/foundation/nearest.ts'
import {
  findSetting,
  listSettings,
  renderText,
  type Setting,
  type SettingsOf,
  type SettingsTable,
  variablesOf,
} from './setting.ts'
import { isSameToml, isTable, locateTomlKey, locateTomlSection } from './toml.ts'

/** Where a value comes from, strongest first (docs/decisions/0014). */
export type Origin =
  | { readonly by: 'environment'; readonly variable: string }
  /** Saved on a page of the server, kept in its database. */
  | { readonly by: 'settings-page' }
  | { readonly by: 'file'; readonly path: string }
  | { readonly by: 'default' }

export interface Problem {
  /** An `error` leaves the value unusable. */
  readonly level: 'error' | 'warning'
  /** `/etc/flasher/flasher.toml:12` or `FLASHER_SERVER_PORT`. */
  readonly where: string
  /** One clause; never a secret. */
  readonly message: string
}

export interface SettingsSources {
  readonly env: Readonly<Record<string, string | undefined>>
  /** What pages saved, as text, by `section.key`. */
  readonly saved: Readonly<Record<string, string>>
  /** The winner first. */
  readonly layers: readonly ConfigLayer[]
}

export interface SettingsReading<Table extends SettingsTable> {
  readonly settings: SettingsOf<Table>
  /** Where each value comes from, by `section.key`; every setting has an entry. */
  readonly origins: ReadonlyMap<string, Origin>
  readonly problems: readonly Problem[]
}

/** Keys that are not this program's, or not any more, and what to do about them; null: nothing. */
export type KnownElsewhere = Readonly<Record<string, string | null>>

/**
 * Reads every setting of `table`: its variable, else what a page saved, else the first file, else
 * the default. A value that cannot be used is an error (a warning where a page saved it), and the
 * default stands in for it.
 */
export function parseSettings<Table extends SettingsTable>(
  table: Table,
  sources: SettingsSources,
  elsewhere: KnownElsewhere = {},
): SettingsReading<Table> {
  const origins = new Map<string, Origin>()
  const problems: Problem[] = []
  const settings = mapSettings(table, (section, key, row) => {
    const { origin, given, where } = findGiven(sources, section, key, row)
    origins.set(`${section}.${key}`, origin)
    if (origin.by === 'default') return row.fallback
    const parsed = row.parse(given)
    if (parsed.ok) return parsed.value
    // A page's value must not keep the server, and with it that page, from starting.
    const level = origin.by === 'settings-page' ? 'warning' : 'error'
    problems.push({ level, where: where(), message: `${section}.${key} ${parsed.refusal}` })
    return row.fallback
  })
  problems.push(
    ...findHidden(table, sources.layers, origins),
    ...findStrays(table, sources, elsewhere),
  )
  return { settings, origins, problems }
}

/**
 * The value of `started` where a change needs a restart, else that of `next`. `pending` names the
 * settings that wait for one, as `section.key`.
 */
export function keepStarted<Table extends SettingsTable>(
  table: Table,
  next: SettingsOf<Table>,
  started: SettingsOf<Table>,
): { readonly settings: SettingsOf<Table>; readonly pending: readonly string[] } {
  const pending: string[] = []
  const settings = mapSettings(table, (section, key, row) => {
    const [value, before] = [valueOf(next, section, key), valueOf(started, section, key)]
    if (row.reload === 'live' || isSameToml(value, before)) return value
    pending.push(`${section}.${key}`)
    return before
  })
  return { settings, pending }
}

/** As `section.key`. */
export const listChanges = (table: SettingsTable, one: object, two: object): readonly string[] =>
  listSettings(table)
    .filter(
      ({ section, key }) => !isSameToml(valueOf(one, section, key), valueOf(two, section, key)),
    )
    .map(({ section, key }) => `${section}.${key}`)

/** For settings whose table is not known here; undefined when there is none. */
export function valueOf(settings: object, section: string, key: string): unknown {
  const keys = isTable(settings) && Object.hasOwn(settings, section) ? settings[section] : undefined
  return isTable(keys) ? keys[key] : undefined
}

function mapSettings<Table extends SettingsTable>(
  table: Table,
  choose: (section: string, key: string, row: Setting<unknown>) => unknown,
): SettingsOf<Table> {
  const values: Record<string, Record<string, unknown>> = {}
  for (const { section, key, row } of listSettings(table)) {
    values[section] = { ...values[section], [key]: choose(section, key, row) }
  }
  if (!isComplete(table, values)) throw new Error('a setting has no value')
  return values
}

/** True because the loop above has filled every row; said to the compiler this way. */
const isComplete = <Table extends SettingsTable>(
  table: Table,
  values: object,
): values is SettingsOf<Table> =>
  Object.keys(table).every((section) => Object.hasOwn(values, section))

interface Given {
  readonly given: unknown
  readonly origin: Origin
  /** Searched only for what is wrong. */
  where(): string
}

function findGiven(
  sources: SettingsSources,
  section: string,
  key: string,
  row: Setting<unknown>,
): Given {
  // An empty variable counts as none at all.
  const isSet = (name: string) => (sources.env[name] ?? '').trim() !== ''
  const variable = variablesOf(section, key, row).find(isSet)
  if (variable !== undefined) {
    const given = row.fromText(sources.env[variable] ?? '')
    return { given, origin: { by: 'environment', variable }, where: () => variable }
  }
  const saved = sources.saved[`${section}.${key}`]
  if (saved !== undefined) {
    const given = row.fromText(saved)
    return { given, origin: { by: 'settings-page' }, where: () => 'settings page' }
  }
  const layer = findLayer(sources.layers, section, key)
  if (layer === null) {
    return { given: row.fallback, origin: { by: 'default' }, where: () => 'default' }
  }
  const where = () => renderKeyLocation(layer, section, key)
  return { given: valueIn(layer, section, key), origin: { by: 'file', path: layer.path }, where }
}

/** Unusable values in files that are overruled at present. */
const findHidden = (
  table: SettingsTable,
  layers: readonly ConfigLayer[],
  origins: ReadonlyMap<string, Origin>,
): readonly Problem[] =>
  listSettings(table).flatMap(({ section, key, row }) => {
    const origin = origins.get(`${section}.${key}`)
    return layers.flatMap((layer): readonly Problem[] => {
      const given = valueIn(layer, section, key)
      const isDecider = origin?.by === 'file' && origin.path === layer.path
      const parsed = given === undefined || isDecider ? null : row.parse(given)
      if (parsed === null || parsed.ok) return []
      const message = `${section}.${key} ${parsed.refusal} (overridden)`
      return [{ level: 'warning', where: renderKeyLocation(layer, section, key), message }]
    })
  })

function findStrays(
  table: SettingsTable,
  { layers, env }: SettingsSources,
  elsewhere: KnownElsewhere,
): readonly Problem[] {
  const isOthers = (name: string) => Object.hasOwn(elsewhere, name) && elsewhere[name] === null
  const isKnown = (section: string, key: string | null) =>
    key === null
      ? Object.hasOwn(table, section) || Object.hasOwn(elsewhere, `${section}.*`)
      : findSetting(table, section, key) !== null ||
        isOthers(`${section}.*`) ||
        isOthers(`${section}.${key}`)
  const inFiles = listStrays(layers, isKnown).map(({ layer, section, key }): Problem => ({
    level: 'warning',
    where: renderKeyLocation(layer, section, key),
    message: describeStray(table, elsewhere, section, key),
  }))
  return [...inFiles, ...findStrayVariables(table, env, elsewhere)]
}

function describeStray(
  table: SettingsTable,
  elsewhere: KnownElsewhere,
  section: string,
  key: string | null,
): string {
  const name = key === null ? `[${section}]` : `${section}.${key}`
  const advice = elsewhere[name] ?? elsewhere[`${section}.*`]
  if (advice !== undefined && advice !== null) return `${name}: ${advice}`
  const known = key === null ? Object.keys(table) : Object.keys(table[section] ?? {})
  return `no such setting: ${name}${guess(nearestOf(key ?? section, known))}`
}

/** Only names in one of the table's sections are looked at: other FLASHER_ names have other readers. */
function findStrayVariables(
  table: SettingsTable,
  env: SettingsSources['env'],
  elsewhere: KnownElsewhere,
): readonly Problem[] {
  const known = listSettings(table).flatMap(({ section, key, row }) =>
    variablesOf(section, key, row),
  )
  const lowered = known.map((name) => name.toLowerCase())
  const prefixes = Object.keys(table)
    .filter((section) => elsewhere[`${section}.*`] !== null)
    .map((section) => `FLASHER_${section.toUpperCase()}_`)
  return Object.keys(env)
    .filter((name) => prefixes.some((prefix) => name.startsWith(prefix)) && !known.includes(name))
    .map((name) => ({
      level: 'warning',
      where: name,
      message: `no such setting${guess(nearestOf(name, lowered)?.toUpperCase())}`,
    }))
}

const guess = (nearest: string | null | undefined) => (nearest ? `; did you mean ${nearest}?` : '')

/** As pages and `config show` name it: a path, a variable, `default`. */
export function renderOrigin(origin: Origin): string {
  switch (origin.by) {
    case 'environment':
      return `environment variable ${origin.variable}`
    case 'settings-page':
      return 'settings page'
    case 'file':
      return origin.path
    case 'default':
      return 'default'
  }
}

export const renderProblem = ({ where, message }: Problem): string => `${where}: ${message}`

export interface ConfigLayer {
  readonly path: string
  readonly text: string
  readonly values: Readonly<Record<string, unknown>>
}

/** A place in a file that no setting knows; `key` null: the section itself. */
interface Stray {
  readonly layer: ConfigLayer
  readonly section: string
  readonly key: string | null
}

/** `layers` with the winner first. Null: none holds it. */
export const findLayer = (
  layers: readonly ConfigLayer[],
  section: string,
  key: string,
): ConfigLayer | null => layers.find((layer) => valueIn(layer, section, key) !== undefined) ?? null

/** Undefined: nothing. */
function valueIn({ values }: ConfigLayer, section: string, key: string): unknown {
  const keys = Object.hasOwn(values, section) ? values[section] : undefined
  return isTable(keys) && Object.hasOwn(keys, key) ? keys[key] : undefined
}

const listStrays = (
  layers: readonly ConfigLayer[],
  isKnown: (section: string, key: string | null) => boolean,
): readonly Stray[] =>
  layers.flatMap((layer) =>
    Object.entries(layer.values).flatMap(([section, keys]): readonly Stray[] => {
      if (!isTable(keys) || !isKnown(section, null)) return [{ layer, section, key: null }]
      return Object.keys(keys)
        .filter((key) => !isKnown(section, key))
        .map((key) => ({ layer, section, key }))
    }),
  )

/** `/etc/flasher/flasher.toml:12`, or the path alone. */
function renderKeyLocation(
  { path, text }: ConfigLayer,
  section: string,
  key: string | null,
): string {
  const line =
    key === null ? locateTomlSection(text, section) : locateTomlKey(text, { section, key })
  return line === null ? path : `${path}:${line}`
}

// Lists the places of configuration files (docs/decisions/0014): the one that is named, or the usual ones.

export interface ConfigPath {
  readonly kind: 'file' | 'folder'
  readonly path: string
  /** Somebody named it, so that it must be there. */
  readonly isNamed: boolean
}

interface ConfigPaths {
  /** The winner first. `kind` of named ones is still to be looked up. */
  readonly configPaths: readonly ConfigPath[]
  /** Whether `<state_dir>/flasher.toml` comes last. */
  readonly withStateFile: boolean
}

export const CONFIG_FILE = 'flasher.toml'

/**
 * `named`: what `--config` said, in its order. Else `FLASHER_CONFIG_FILE` and `FLASHER_CONFIG_DIR`.
 * `systemDir`: `/etc/flasher`.
 */
export function decideConfigPaths(
  named: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  systemDir: string,
): ConfigPaths {
  const variables = [env['FLASHER_CONFIG_FILE'], env['FLASHER_CONFIG_DIR']]
  const paths = named.length > 0 ? named : variables.flatMap((path) => path || [])
  if (paths.length > 0) {
    const configPaths = paths.map((path) => ({ kind: 'file', path, isNamed: true }) as const)
    return { configPaths, withStateFile: false }
  }
  return {
    configPaths: [
      { kind: 'folder', path: `${systemDir}/conf.d`, isNamed: false },
      { kind: 'file', path: `${systemDir}/${CONFIG_FILE}`, isNamed: false },
    ],
    withStateFile: true,
  }
}

export type ShownSetting = ReturnType<typeof describeSettings>[number]

/** In the table's order; `configured` is the configuration as it is now. */
export const describeSettings = (
  table: SettingsTable,
  configured: object,
  origins: ReadonlyMap<string, Origin>,
  pending: readonly string[],
) =>
  listSettings(table).map(({ section, key, row }) => {
    const name = `${section}.${key}`
    const origin: Origin = origins.get(name) ?? { by: 'default' }
    const value = valueOf(configured, section, key)
    const text = textOf(row, value)
    return {
      section,
      key,
      /** `server.port` */
      name,
      setting: row,
      /** Null for secrets. */
      value: row.isSecret ? null : value,
      /** The text as a file or variable holds it; it is empty for secrets and defaults. */
      text: row.isSecret || origin.by === 'default' ? '' : text,
      /** For people: `set` or `unset` for secrets, a default in words where its value is not clear. */
      shown: renderShown(row, text, origin),
      origin,
      /** Changed, and in effect from the next start on. */
      isPending: pending.includes(name),
      variable: variablesOf(section, key, row)[0],
    }
  })

export type Lock =
  | { readonly why: 'environment'; readonly variable: string }
  | { readonly why: 'kept' }
  /** The file that holds it, or those that could: none may be written. */
  | { readonly why: 'read-only'; readonly paths: readonly string[] }

/** Where edits may go: the files that count, the winner first, and those of them that can be written. */
export interface EditPaths {
  readonly paths: readonly string[]
  readonly writable: readonly string[]
}

/** Null when a page can change it. */
export function decideLock(
  { origin, setting }: ShownSetting,
  { paths, writable }: EditPaths,
): Lock | null {
  if (origin.by === 'environment') return { why: 'environment', variable: origin.variable }
  if (setting.isKept) return { why: 'kept' }
  // It is saved in the database.
  if (setting.card !== null) return null
  const holders = origin.by === 'file' ? [origin.path] : paths
  return holders.some((path) => writable.includes(path))
    ? null
    : { why: 'read-only', paths: holders }
}

/** Markdown, for the reference. */
export const renderFallback = (row: Setting<unknown>): string =>
  row.fallbackWords ??
  (textOf(row, row.fallback) === '' ? 'none' : `\`${textOf(row, row.fallback)}\``)

function textOf(row: Setting<unknown>, value: unknown): string {
  const toml = row.toToml(value)
  return toml === null ? '' : renderText(toml)
}

function renderShown(row: Setting<unknown>, text: string, origin: Origin): string {
  if (row.isSecret) return text === '' ? 'unset' : 'set'
  if (origin.by !== 'default' || text !== '') return text
  return row.fallbackWords?.replaceAll('`', '') ?? ''
}
