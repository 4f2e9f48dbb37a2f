/** `flasher-web export` and `import`: write and read the fleet's hardware as a folder ("Export bundle"). */
import { openBundles } from '../assembly/archives.ts'
import { openVoice } from '../../../terminal/text/voice.ts'
import { COMMAND_LINE } from '../rules/commands.ts'
import { SUCCESS } from '../../../core/command/server-exit.ts'
import type { ProcessEnvironment } from '../../../program/process-environment.ts'
import { Fault } from '../../../core/foundation/fault.ts'
import { visitState } from './visit.ts'
import type { Arguments } from '../../../core/command/arguments.ts'

const { program } = COMMAND_LINE

export async function exportFleet(
  environment: ProcessEnvironment,
  given: Arguments,
): Promise<number> {
  const [folder = ''] = given.positionals
  await using visit = await visitState(environment, given)
  const machines = await openBundles(visit.state, visit.release).exportTo(folder)
  const { success } = openVoice(environment.stdout, environment.env)
  success(`${program} export -> ${folder}: ${machines} machines`)
  return SUCCESS
}

export async function importFleet(
  environment: ProcessEnvironment,
  given: Arguments,
): Promise<number> {
  if (given.values['from'] === 'earlier') {
    const { importEarlier } = await import('./earlier-import.ts')
    return importEarlier(environment, given)
  }
  const unused = ['dry-run', 'json'].find((name) => given.switches.has(name))
  if (unused !== undefined) throw new Fault('misuse', `--${unused} needs --from earlier`)
  const [folder = ''] = given.positionals
  await using visit = await visitState(environment, given)
  const machines = await openBundles(visit.state, visit.release).importFrom(folder)
  const { success } = openVoice(environment.stdout, environment.env)
  success(`${program} import: ${machines} machines (as flasher-inventory)`)
  return SUCCESS
}
