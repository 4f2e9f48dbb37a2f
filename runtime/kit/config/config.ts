/** The current configuration: merged from its layers, edited in place, reloaded while running. */
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import {
  CONFIG_FILE,
  type ConfigLayer,
  type ConfigPath,
  decideConfigPaths,
  describeSettings,
  type EditPaths,
  findLayer,
  keepStarted,
  listChanges,
  type Origin,
  type Problem,
  renderProblem,
  type SettingsReading,
  type SettingsSources,
  type ShownSetting,
  valueOf,
} from './rules/settings-parser.ts'
import { Fault, isMissing, renderError, systemCodeOf } from '#kit/foundation/fault.ts'
import { refuse, type Result, accept } from '#kit/foundation/result.ts'
import {
  type SettingsOf,
  type SettingsTable,
  findSetting,
  type Setting,
  type TomlValue,
} from './rules/setting.ts'
import type { ServerSettings } from './rules/shared-settings.ts'
import { createQueue } from '#kit/host/queue.ts'
import type { Environment } from '#kit/host/shell.ts'
import { defaultStateDir } from './state-dirs.ts'
import { editToml, locateTomlKey, type TomlEditRefusal, parseToml } from './rules/toml.ts'
import { removeName, moveName } from '#kit/host/folders.ts'
import { randomBytes } from 'node:crypto'
import { access, constants, open, readdir, readFile, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

interface ConfigRules<Table extends SettingsTable> {
  readonly table: Table
  readonly parse: (sources: SettingsSources) => SettingsReading<Table>
}

export interface Reloaded {
  /** What is different now and in effect, as `section.key`. */
  readonly changed: readonly string[]
  /** What is different from what runs, and waits for a restart. */
  readonly pending: readonly string[]
  readonly problems: readonly Problem[]
}

export interface Config<Table extends SettingsTable> {
  readonly stateDir: string
  /** From memory. Values that need a restart are those of the start. */
  current(): SettingsOf<Table>
  /** Makes a reader of what follows from the settings: worked out once for each change of them. */
  derive<Value>(from: (settings: SettingsOf<Table>) => Value): () => Value
  originOf(section: string, key: string): Origin | null
  list(): readonly ShownSetting[]
  problems(): readonly Problem[]
  /** The winner first. */
  paths(): readonly string[]
  /** Where what pages saved comes from from now on; reads it. */
  useSaved(list: () => Readonly<Record<string, string>>): Reloaded
  readSaved(): Reloaded
  /** Reads the files again. When they cannot be used it throws, and all stays as it is. */
  reload(): Promise<Reloaded>
  listEditPaths(): Promise<EditPaths>
  /**
   * All of the changes or none, one call after the other; the result is in effect, or waits for a
   * restart, when it resolves.
   *
   * @throws {Fault} A file cannot be read or written.
   */
  edit(
    changes: readonly ConfigEdit[],
    /** What speaks against them, given the settings as the files have them right before the change. */
    check?: (present: readonly ShownSetting[]) => RefusedEdits,
  ): Promise<Result<Reloaded & { readonly edited: readonly ConfigEdited[] }, RefusedEdits>>
  /** After every change of what is in effect. */
  listen(listener: (reloaded: Reloaded) => void): void
}

/** The configuration of a machine server, whichever its release line. */
export interface ServerConfig extends Omit<Config<SettingsTable>, 'current' | 'derive'> {
  current(): ServerSettings
  derive<Value>(from: (settings: ServerSettings) => Value): () => Value
}

interface ConfigEnvironment {
  readonly env: Environment
  readonly isRoot: boolean
  /** `/etc/flasher`. */
  readonly systemDir: string
}

const nothingSaved = (): Readonly<Record<string, string>> => ({})

/** From the usual places or those of `--config`. A Fault names what cannot be used. */
export async function readConfig<Table extends SettingsTable>(
  { table, parse }: ConfigRules<Table>,
  environment: ConfigEnvironment,
  given: Pick<Arguments, 'lists'>,
): Promise<Config<Table>> {
  const { env } = environment
  const { configPaths, stateDir } = await settlePaths(
    parse,
    environment,
    given.lists['config'] ?? [],
  )
  let saved = nothingSaved
  let files = await readConfigFiles(configPaths)
  let reading = parse({ env, saved: saved(), layers: files.layers })
  refuseErrors(reading.problems)
  let started = reading.settings
  let effective = keepStarted(table, reading.settings, started)
  const listeners = new Set<(reloaded: Reloaded) => void>()
  const inTurn = createQueue(1)

  function apply(next: ConfigFiles): Reloaded {
    const read = parse({ env, saved: saved(), layers: next.layers })
    refuseErrors(read.problems)
    const before = effective.settings
    ;[files, reading] = [next, read]
    effective = keepStarted(table, read.settings, started)
    const changed = listChanges(table, before, effective.settings)
    const reloaded = { changed, pending: effective.pending, problems: read.problems }
    for (const listener of listeners) listener(reloaded)
    return reloaded
  }

  const originOf = (section: string, key: string) =>
    reading.origins.get(`${section}.${key}`) ?? null

  return {
    stateDir,
    current: () => effective.settings,
    derive(from) {
      let known = effective.settings
      let value = from(known)
      return () => {
        if (known !== effective.settings)
          [known, value] = [effective.settings, from(effective.settings)]
        return value
      }
    },
    originOf,
    list: () => describeSettings(table, reading.settings, reading.origins, effective.pending),
    problems: () => reading.problems,
    paths: () => files.layers.map(({ path }) => path),
    useSaved(list) {
      saved = list
      // Nothing has been started with anything else yet.
      started = parse({ env, saved: saved(), layers: files.layers }).settings
      return apply(files)
    },
    readSaved: () => apply(files),
    reload: () => inTurn(async () => apply(await readConfigFiles(configPaths))),
    async listEditPaths() {
      const { paths } = files
      const verdicts = await Promise.all(paths.map(isWritable))
      return { paths, writable: paths.filter((_, at) => verdicts[at] === true) }
    },
    edit: (changes, check) =>
      inTurn(async () => {
        const present = await readConfigFiles(configPaths)
        const read = parse({ env, saved: saved(), layers: present.layers })
        const rows = describeSettings(table, read.settings, read.origins, effective.pending)
        const refused = check?.(rows)
        if (refused !== undefined && refused.size > 0) return refuse(refused)
        const made = await editConfig(table, present, originOf, changes)
        if (!made.ok) return made
        const reloaded = apply(await readConfigFiles(configPaths))
        return { ok: true, value: { edited: made.value, ...reloaded } }
      }),
    listen(listener) {
      listeners.add(listener)
    },
  }
}

/** The state directory may hold the last file, and the files before that one name it. */
async function settlePaths(
  parse: ConfigRules<SettingsTable>['parse'],
  { env, isRoot, systemDir }: ConfigEnvironment,
  named: readonly string[],
): Promise<{ configPaths: readonly ConfigPath[]; stateDir: string }> {
  const { configPaths, withStateFile } = decideConfigPaths(named, env, systemDir)
  const { layers } = await readConfigFiles(configPaths)
  const { settings, problems } = parse({ env, saved: {}, layers })
  refuseErrors(problems)
  const given = valueOf(settings, 'paths', 'state_dir')
  const isGiven = typeof given === 'string' && given !== ''
  const stateDir = isGiven ? given : defaultStateDir(env, isRoot)
  const last = { kind: 'file', path: `${stateDir}/${CONFIG_FILE}`, isNamed: false } as const
  return { stateDir, configPaths: withStateFile ? [...configPaths, last] : configPaths }
}

function refuseErrors(problems: readonly Problem[]): void {
  const [first, ...more] = problems.filter(({ level }) => level === 'error').map(renderProblem)
  if (first === undefined) return
  throw new Fault('input-invalid', [first, ...more].join('\n'), {
    hint: 'flasher-web config check looks at all of the configuration.',
  })
}

// Changes keys in configuration files and keeps their author's formatting.

type ConfigEditRefusal =
  | { readonly why: 'unknown' }
  | { readonly why: 'secret' }
  /** A variable or a settings page overrides every file. */
  | { readonly why: 'overruled'; readonly by: Origin }
  /** `must be a whole number from 1 to 65535, not "x"`. */
  | { readonly why: 'invalid'; readonly message: string }
  /** Somebody else changed it meanwhile; as a form shows what it is now. */
  | { readonly why: 'stale'; readonly present: string }
  | { readonly why: 'not-writable'; readonly paths: readonly string[] }
  | { readonly why: 'not-editable'; readonly path: string; readonly cause: TomlEditRefusal }

interface ConfigEdited {
  /** `server.port` */
  readonly name: string
  readonly path: string
  /** Where the key is now; null when it was removed. */
  readonly line: number | null
}

export interface ConfigEdit {
  readonly section: string
  readonly key: string
  /** The value as a form's field holds it; an empty one removes the key. */
  readonly text: string
}

export type RefusedEdits = ReadonlyMap<string, ConfigEditRefusal>

/**
 * All of the edits or none. Files are read afresh, and only what reads back as exactly what was
 * asked for is written.
 */
async function editConfig(
  table: SettingsTable,
  files: ConfigFiles,
  originOf: (section: string, key: string) => Origin | null,
  edits: readonly ConfigEdit[],
): Promise<Result<readonly ConfigEdited[], RefusedEdits>> {
  const refused = new Map<string, ConfigEditRefusal>()
  const texts = new Map(files.layers.map(({ path, text }) => [path, text]))
  const located: { readonly edit: ConfigEdit; readonly path: string }[] = []
  for (const edit of edits) {
    const { section, key, text } = edit
    const checked = checkEdit(findSetting(table, section, key), originOf(section, key), text)
    const changed = checked.ok ? await changeText(files, texts, edit, checked.value) : checked
    if (changed.ok) located.push({ edit, path: changed.value })
    else refused.set(`${section}.${key}`, changed.refusal)
  }
  if (refused.size > 0) return refuse(refused)
  await writeAll(files, texts)
  return accept(
    located.map(({ edit: { section, key }, path }) => ({
      name: `${section}.${key}`,
      path,
      line: locateTomlKey(texts.get(path) ?? '', { section, key }),
    })),
  )
}

/** Writes the files whose text changes. Where one cannot be written, those before it are as they were. */
async function writeAll(files: ConfigFiles, texts: ReadonlyMap<string, string>): Promise<void> {
  const written: string[] = []
  try {
    for (const [path, text] of texts) {
      if (text === textIn(files, path)) continue
      await writeConfigFile(path, text)
      written.push(path)
    }
  } catch (thrown) {
    for (const path of written) {
      const isNew = !files.layers.some((layer) => layer.path === path)
      await (isNew ? removeName(path) : writeConfigFile(path, textIn(files, path)))
    }
    throw thrown
  }
}

const textIn = ({ layers }: ConfigFiles, path: string): string =>
  layers.find((layer) => layer.path === path)?.text ?? ''

/** Returns which of `texts` it is in. */
async function changeText(
  files: ConfigFiles,
  texts: Map<string, string>,
  { section, key }: ConfigEdit,
  value: TomlValue | null,
): Promise<Result<string, ConfigEditRefusal>> {
  // The file that holds the key, else the first that can be written.
  const holder = findLayer(files.layers, section, key)
  const paths = holder === null ? files.paths : [holder.path]
  const path = await findWritable(paths)
  if (path === undefined) return refuse({ why: 'not-writable', paths })
  const edited = editToml(texts.get(path) ?? '', { section, key }, value)
  if (!edited.ok) return refuse({ why: 'not-editable', path, cause: edited.refusal })
  texts.set(path, edited.value)
  return accept(path)
}

/** The value to write; null: the key is to be removed. */
function checkEdit(
  row: Setting<unknown> | null,
  origin: Origin | null,
  text: string,
): Result<TomlValue | null, ConfigEditRefusal> {
  if (row === null || origin === null) return refuse({ why: 'unknown' })
  if (row.isKept) return refuse({ why: 'secret' })
  if (origin.by === 'environment' || origin.by === 'settings-page') {
    return refuse({ why: 'overruled', by: origin })
  }
  if (text.trim() === '') return accept(null)
  const parsed = row.parse(row.fromText(text))
  return parsed.ok
    ? accept(row.toToml(parsed.value))
    : refuse({ why: 'invalid', message: parsed.refusal })
}

async function findWritable(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) if (await isWritable(path)) return path
  return undefined
}

/** A form says by itself what has changed meanwhile. */
export function renderEditRefusal(
  refusal: Exclude<ConfigEditRefusal, { readonly why: 'stale' }>,
): string {
  switch (refusal.why) {
    case 'unknown':
      return 'no such setting'
    case 'secret':
      return 'it is a security setting: change it in the configuration file'
    case 'overruled':
      return refusal.by.by === 'environment'
        ? `it is set by the environment variable ${refusal.by.variable}`
        : 'it is saved on a settings page, which overrides files'
    case 'invalid':
      return refusal.message
    case 'not-writable':
      return `no file can be written: ${refusal.paths.join(', ') || 'none is read'}`
    case 'not-editable':
      return `${refusal.path}: ${renderCause(refusal.cause)}`
  }
}

function renderCause(cause: TomlEditRefusal): string {
  switch (cause.why) {
    case 'not-toml':
      return `line ${cause.problem.line}, column ${cause.problem.column}: ${cause.problem.message}`
    case 'not-a-section':
      return 'its section is not a table there'
    case 'too-unusual':
      return 'it can only be changed by hand'
  }
}

interface ConfigFiles {
  /** Those that exist, the winner first. */
  readonly layers: readonly ConfigLayer[]
  /** Those and the ones that could be made, in the same order: where an edit may go. */
  readonly paths: readonly string[]
}

/** A file that cannot be read or is not TOML is a Fault: part of a configuration is not used. */
async function readConfigFiles(configPaths: readonly ConfigPath[]): Promise<ConfigFiles> {
  const paths = (await Array.fromAsync(configPaths, listFiles)).flat()
  const named = new Set(configPaths.filter(({ isNamed }) => isNamed).map(({ path }) => path))
  const layers = await Array.fromAsync(paths, (path) => readLayer(path, named.has(path)))
  return { layers: layers.filter((layer) => layer !== null), paths }
}

async function listFiles({ kind, path, isNamed }: ConfigPath): Promise<readonly string[]> {
  const isFolder = isNamed
    ? (await readListed(path, isNamed, stat))?.isDirectory() === true
    : kind === 'folder'
  if (!isFolder) return [path]
  const names = (await readListed(path, isNamed, (folder) => readdir(folder))) ?? []
  const files = names.filter((name) => name.endsWith('.toml') && !name.startsWith('.')).toSorted()
  // A named folder without files still has a place for an edit.
  const all = isNamed && files.length === 0 ? [CONFIG_FILE] : files
  return all.map((name) => join(path, name))
}

async function readLayer(path: string, isNamed: boolean): Promise<ConfigLayer | null> {
  const text = await readListed(path, isNamed, (file) => readFile(file, 'utf8'))
  if (text === null) return null
  const parsed = parseToml(text)
  if (parsed.ok) return { path, text, values: parsed.value }
  const { line, column, message, frame } = parsed.refusal
  throw new Fault('input-invalid', `${path}:${line}:${column}: ${message}\n${frame}`)
}

/** Null: nothing is there, and it was not named. */
async function readListed<T>(
  path: string,
  isNamed: boolean,
  read: (path: string) => Promise<T>,
): Promise<T | null> {
  try {
    return await read(path)
  } catch (cause) {
    if (!isNamed && isMissing(cause)) return null
    throw new Fault(
      'input-missing',
      `the configuration ${path} cannot be read: ${renderError(cause)}`,
      {
        cause,
        hint: 'Make it readable for the user who runs this, or name another with --config.',
      },
    )
  }
}

/** Whether a file can be changed or, where it is missing, made. */
async function isWritable(path: string): Promise<boolean> {
  const refusal = await tryWriting(path)
  if (refusal === null) return true
  return isMissing(refusal) && (await tryWriting(dirname(path))) === null
}

/** Null: it can be written. */
const tryWriting = (path: string): Promise<unknown> =>
  access(path, constants.W_OK).then(
    () => null,
    (thrown: unknown) => thrown,
  )

/**
 * Replaces a file's text whole: owner, group and mode stay, a link stays a link. Where the file
 * cannot be replaced (it is mounted by itself, its folder is read-only) it is rewritten in place.
 */
async function writeConfigFile(path: string, text: string): Promise<void> {
  const target = await realpath(path).catch(() => path)
  const before = await stat(target).catch(() => null)
  const temporary = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString('hex')}`)
  try {
    await writeWhole(temporary, text, before)
    await moveName(temporary, target)
  } catch (thrown) {
    // Best effort: it may never have been made.
    await removeName(temporary).catch(() => {})
    if (before === null || !isNotReplaceable(thrown)) throw unwritable(path, thrown)
    await rewrite(target, text).catch((cause: unknown) => {
      throw unwritable(path, cause)
    })
  }
}

const NOT_REPLACEABLE = ['EBUSY', 'EXDEV', 'EACCES', 'EPERM', 'EROFS']

const isNotReplaceable = (thrown: unknown) => NOT_REPLACEABLE.includes(systemCodeOf(thrown) ?? '')

/** What a new file gets: it may come to hold secrets. */
const FRESH_MODE = 0o640

async function writeWhole(
  path: string,
  text: string,
  like: { readonly mode: number; readonly uid: number; readonly gid: number } | null,
): Promise<void> {
  await using file = await open(path, 'wx', 0o600)
  await file.writeFile(text)
  if (like !== null) await file.chown(like.uid, like.gid)
  await file.chmod(like === null ? FRESH_MODE : like.mode & 0o7777)
  await file.sync()
}

async function rewrite(path: string, text: string): Promise<void> {
  await using file = await open(path, 'r+')
  const bytes = Buffer.from(text)
  // Shortened last: at no moment does the file hold less than the whole new text needs.
  await file.write(bytes, 0, bytes.length, 0)
  await file.truncate(bytes.length)
  await file.sync()
}

const unwritable = (path: string, cause: unknown) =>
  new Fault('write-failed', `${path} cannot be written: ${renderError(cause)}`, { cause })
