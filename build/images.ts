/** `pnpm build:images [NAME…]`: makes what we ship into `dist/`. */
import { join, resolve } from 'node:path'
import process from 'node:process'
import { APPLIANCES, NAMED_APPLIANCES } from '#appliance/all.ts'
import { STICK_STEM } from '#appliance/assets.ts'
import { UsageError } from './arguments.ts'
import { readBuild, type BuildOptions } from './command.ts'
import { CHECKOUT, cacheFolder, readEpoch, readVersion } from './facts.ts'
import { compare, DIST, make } from './make.ts'
import { planImages } from './plan.ts'
import { renderPlan } from './plan-text.ts'
import { prepareHost } from './prepare.ts'
import { createJsonReport, createTextReport } from './report.ts'
import { readDurations } from './run.ts'
import { runScript, type Context } from './script.ts'
import { addImages, findRefusal } from '#build/stick/images.ts'

const version = readVersion(CHECKOUT)

await runScript({
  name: 'build:images',
  read: (argv) => readBuild(argv, APPLIANCES, version, NAMED_APPLIANCES),
  run: build,
})

async function build(options: BuildOptions, { voice, signal }: Context): Promise<number> {
  const { names, level, ipxeServer, ipxeSource, json } = options
  // Nobody waits for a build whose last step is refused.
  const refusal = await findRefusal(options.images)
  if (refusal !== null) throw new UsageError(refusal)
  const facts = { version, epoch: readEpoch(CHECKOUT, level, process.env), level }
  const appliances = [...APPLIANCES, ...NAMED_APPLIANCES].filter(({ name }) => names.includes(name))
  const source = ipxeSource === null ? null : resolve(ipxeSource)
  const plan = planImages({ appliances, facts, ipxeServer, ipxeSource: source })
  if (options.plan) {
    console.log(json ? JSON.stringify({ facts, ...plan }, null, 2) : renderPlan(plan))
    return 0
  }
  const cache = cacheFolder(process.env)
  const durations = await readDurations({ cache, pace: level })
  const { steps } = plan
  const title = `Flasher ${version}: ${appliances.map(({ name }) => name).join(', ')} at level ${level}`
  const report = json ? createJsonReport() : createTextReport({ voice, title, steps, durations })
  const makesTree = steps.some(({ name }) => name.endsWith('tree'))
  const makesArm64 = steps.some(({ name }) => /^arm64-.*base$/.test(name))
  const needs = { compilesIpxe: source !== null, makesTree, makesArm64 }
  const obstacle = await prepareHost(needs, report.note)
  if (obstacle !== null) {
    report.fail(obstacle)
    return 1
  }
  const work = { plan, cache, facts, report, signal }
  if (options.twice) return await compare(work)
  const code = await make(work)
  if (code === 0) await addImages(options.images, join(DIST, STICK_STEM), report.note)
  return code
}
