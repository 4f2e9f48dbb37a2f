/** `flasher-web export` and `import`: the fleet's hardware to and from a folder ("Export bundle"). */
import { openBundles } from '../assembly/archives.ts'
import { COMMAND_LINE } from '../rules/commands.ts'
import { SUCCESS } from '../../../core/command/server-exit.ts'
import type { World } from '../assembly/process-environment.ts'
import { visitState } from './visit.ts'
import type { Arguments } from '../../../terminal/command/dispatch.ts'

const { program } = COMMAND_LINE

export async function exportFleet(world: World, given: Arguments): Promise<number> {
  const [folder = ''] = given.positionals
  await using visit = await visitState(world, given)
  const machines = await openBundles(visit.state, visit.release).exportTo(folder)
  world.stdout.write(`${program} export -> ${folder}: ${machines} machines\n`)
  return SUCCESS
}

export async function importFleet(world: World, given: Arguments): Promise<number> {
  const [folder = ''] = given.positionals
  await using visit = await visitState(world, given)
  const machines = await openBundles(visit.state, visit.release).importFrom(folder)
  world.stdout.write(`${program} import: ${machines} machines (as flasher-inventory)\n`)
  return SUCCESS
}
