/** The current configuration: merged from its layers, edited in place, reloaded while running. */
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import { CONFIG_FILE, decideConfigPaths, type ConfigPath } from './rules/config-paths.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { refuse, type Result } from '#kit/foundation/result.ts'
import type { SettingsOf, SettingsTable } from './rules/setting.ts'
import type { ServerSettings } from './rules/shared-settings.ts'
import {
  keepStarted,
  listChanges,
  renderProblem,
  valueOf,
  type Origin,
  type Problem,
  type SettingsReading,
  type SettingsSources,
} from './rules/settings-parser.ts'
import { describeSettings, type EditPaths, type ShownSetting } from './rules/shown-setting.ts'
import {
  editConfig,
  type ConfigEdit,
  type ConfigEdited,
  type RefusedEdits,
} from './config-editor.ts'
import { isWritable, readConfigFiles, type ConfigFiles } from './config-files.ts'
import { createQueue } from '#kit/host/queue.ts'
import type { Environment } from '#kit/host/shell.ts'
import { defaultStateDir } from './state-dirs.ts'

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
export interface ServerConfig extends Omit<Config<SettingsTable>, 'current'> {
  current(): ServerSettings
}

interface ConfigEnvironment {
  readonly env: Environment
  readonly isRoot: boolean
  /** `/etc/flasher`. */
  readonly systemDir: string
}

const nothingSaved = (): Readonly<Record<string, string>> => ({})

/**
 * From the usual places or those that `--config` names. Rejects with a Fault that names the files
 * or values that cannot be used.
 */
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
