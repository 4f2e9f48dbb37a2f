/** `flasher-web config show` and `config check`: print the configuration and its problems. */
import { renderError } from '#kit/foundation/fault.ts'
import {
  renderOrigin,
  renderProblem,
  type ShownSetting,
} from '#kit/config/rules/settings-parser.ts'
import { createSettingsStore } from '#fleet/state/settings-store.ts'
import { createDatabase } from '#fleet/state/database.ts'
import { readVersion } from '#kit/host/package-manifest.ts'
import { isThere } from '#kit/config/state-dirs.ts'
import { renderTable } from '#kit/terminal/text/columns.ts'
import { tableRoomOf } from '#kit/terminal/text/terminal-style.ts'
import { decideFolders, readConfiguration, type LineConfig } from '../assembly/configuration.ts'
import { SUCCESS } from '#kit/terminal/command/rules/command.ts'
import { renderReference } from './rules/settings.ts'
import type { RunCommand } from '#kit/terminal/command/program.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'

/** Of secrets, prints only whether they are set. */
export const showConfig: RunCommand<ProcessEnvironment> = async (environment, given) => {
  const config = await readConfiguration(environment, given)
  await takeSaved(config, environment)
  for (const problem of config.problems()) environment.stderr.write(`${renderProblem(problem)}\n`)
  const [settings, files] = [config.list(), config.paths()]
  const { stdout, env } = environment
  if (given.switches.has('json')) {
    const document = { state_dir: config.stateDir, files, settings: settings.map(toJson) }
    stdout.write(`${JSON.stringify(document, null, 2)}\n`)
    return SUCCESS
  }
  stdout.write(`State directory: ${config.stateDir}\n`)
  stdout.write(`Files: ${files.join(', ') || 'none'}\n\n`)
  stdout.write(renderTable(settings.map(toRow), COLUMNS, tableRoomOf(stdout, env)))
  return SUCCESS
}

/** Warnings leave the exit code 0; errors are a Fault, exit code 2. */
export const checkConfig: RunCommand<ProcessEnvironment> = async (environment, given) => {
  const config = await readConfiguration(environment, given)
  const problems = config.problems()
  for (const problem of problems) environment.stderr.write(`${renderProblem(problem)}\n`)
  const files = config.paths()
  const read = files.length === 0 ? 'No configuration file' : files.join(', ')
  const verdict = problems.length === 0 ? 'valid' : `${problems.length} warnings`
  environment.stdout.write(`${read}: ${verdict}\n`)
  return SUCCESS
}

export async function printReference({ stdout }: ProcessEnvironment): Promise<number> {
  stdout.write(renderReference())
  return SUCCESS
}

/** Only where there is a database. */
async function takeSaved(config: LineConfig, { stderr }: ProcessEnvironment): Promise<void> {
  const path = decideFolders(config).database
  if (!(await isThere(path))) return
  try {
    const release = await readVersion()
    await using database = await createDatabase({ path, release, line: 'current', visit: true })
    const saved = createSettingsStore(database).list()
    config.useSaved(() => saved)
  } catch (thrown) {
    // A user who may not read the state sees the rest.
    stderr.write(`settings saved in the browser are not shown: ${renderError(thrown)}\n`)
  }
}

const COLUMNS = [
  { key: 'setting', least: 12, tells: true },
  { key: 'value', least: 12, cut: 'middle' },
  { key: 'from', least: 8, drops: 1 },
] as const

const toRow = ({ section, key, shown, origin }: ShownSetting) => ({
  setting: `${section}.${key}`,
  value: shown,
  from: renderOrigin(origin),
})

const toJson = ({ section, key, shown, origin, setting, variable }: ShownSetting) => ({
  section,
  key,
  value: shown,
  origin,
  reload: setting.reload,
  variable,
})
