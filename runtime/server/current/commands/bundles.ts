/** `flasher-web export` and `import`: write and read the fleet's hardware as a folder ("Export bundle"). */
import { openBundles } from '../assembly/state.ts'
import { COMMAND_LINE } from './rules/commands.ts'
import { SUCCESS } from '#kit/terminal/command/rules/command.ts'
import type { RunCommand } from '#kit/terminal/command/program.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { visitState } from './visit.ts'

const { program } = COMMAND_LINE

export const exportFleet: RunCommand<ProcessEnvironment> = async (environment, given) => {
  const [folder = ''] = given.positionals
  await using visit = await visitState(environment, given)
  const machines = await openBundles(visit.state, visit.release).exportTo(folder)
  visit.success(`${program} export -> ${folder}: ${machines} machines`)
  return SUCCESS
}

/** All or none. Rejects with a Fault for a bad bundle or state, or a missing `--from earlier`. */
export const importFleet: RunCommand<ProcessEnvironment> = async (environment, given, line) => {
  if (given.values['from'] === 'earlier') {
    const { importEarlier } = await import('./earlier-import.ts')
    return importEarlier(environment, given, line)
  }
  const unused = ['dry-run', 'json'].find((name) => given.switches.has(name))
  if (unused !== undefined) throw new Fault('misuse', `--${unused} needs --from earlier`)
  const [folder = ''] = given.positionals
  await using visit = await visitState(environment, given)
  const machines = await openBundles(visit.state, visit.release).importFrom(folder)
  visit.success(`${program} import: ${machines} machines (as flasher-inventory)`)
  return SUCCESS
}
