/** `flasher-web export` and `import`: the fleet's hardware to and from a folder ("Export bundle"). */
import { openBundles } from '../assembly/archives.ts'
import { COMMAND_LINE } from '../rules/commands.ts'
import { SUCCESS } from '../../../core/command/server-exit.ts'
import type { ProcessEnvironment } from '../assembly/process-environment.ts'
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
  environment.stdout.write(`${program} export -> ${folder}: ${machines} machines\n`)
  return SUCCESS
}

export async function importFleet(
  environment: ProcessEnvironment,
  given: Arguments,
): Promise<number> {
  const [folder = ''] = given.positionals
  await using visit = await visitState(environment, given)
  const machines = await openBundles(visit.state, visit.release).importFrom(folder)
  environment.stdout.write(`${program} import: ${machines} machines (as flasher-inventory)\n`)
  return SUCCESS
}
