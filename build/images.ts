/** `pnpm build:images [NAME…]`: makes what we ship into `dist/`. */
import { rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { APPLIANCES } from '../appliance/all.ts'
import { parseBuild, USAGE, type BuildOptions } from './command.ts'
import { CHECKOUT, cacheFolder, readEpoch, readVersion } from './facts.ts'
import { readContents } from './pack/read.ts'
import { writeRelease, type Released } from './pack/release.ts'
import { planImages, type Plan } from './plan.ts'
import { renderPlan } from './plan-text.ts'
import { prepareHost } from './prepare.ts'
import { readDurations, runSteps } from './run.ts'
import { createReport, type Report } from './report.ts'
import type { BuildFacts } from './steps/step.ts'
import { buildTwice } from './twice.ts'

const options = parseBuild(process.argv.slice(2), APPLIANCES)
if (!options.ok) {
  console.error(`build:images: ${options.why}\n\n${USAGE}`)
  process.exitCode = 2
} else if (options.help) {
  console.log(USAGE)
} else {
  process.exitCode = await build(options).catch((error: unknown) => {
    console.error(`build:images: ${error instanceof Error ? error.message : String(error)}`)
    return 1
  })
}

async function build(wanted: BuildOptions): Promise<number> {
  const { names, level, ipxeServer, ipxeSource } = wanted
  const version = readVersion(CHECKOUT)
  const facts = { version, epoch: readEpoch(CHECKOUT, level, process.env), level }
  const appliances = APPLIANCES.filter(({ name }) => names.includes(name))
  const source = ipxeSource === null ? null : resolve(ipxeSource)
  const plan = planImages({ appliances, facts, ipxeServer, ipxeSource: source })
  if (wanted.plan) {
    console.log(wanted.json ? JSON.stringify({ facts, ...plan }, null, 2) : renderPlan(plan))
    return 0
  }
  const cache = cacheFolder(process.env)
  const durations = await readDurations({ cache, pace: level })
  const report = createReport({ json: wanted.json, steps: plan.steps, durations })
  const makesTree = plan.steps.some(({ name }) => name === 'tree')
  const obstacle = await prepareHost({ compilesIpxe: source !== null, makesTree }, report.note)
  if (obstacle !== null) {
    report.fail(obstacle)
    return 1
  }
  const work = { plan, cache, facts, report }
  return wanted.twice ? await compare(work) : await make(work)
}

interface Work {
  readonly plan: Plan
  readonly cache: string
  readonly facts: BuildFacts
  readonly report: Report
}

async function make({ plan, cache, facts, report }: Work): Promise<number> {
  const outcome = await runSteps({
    steps: plan.steps,
    checkout: CHECKOUT,
    cache,
    pace: facts.level,
    // What is handed over is worth the seconds that reading the cache takes.
    proof: facts.level === 'release' ? 'content' : 'listing',
    say: report.say,
  })
  if (!outcome.ok) return 1
  const folder = join(CHECKOUT, 'dist')
  const all: Released[] = []
  for (const bundle of plan.bundles) {
    const files = bundle.files.map(({ asset, from }) => ({ asset, path: outcome.pathOf(from) }))
    const contents = await readContents(bundle, outcome.pathOf)
    all.push(...(await writeRelease({ ...bundle, ...facts, folder, files, contents })))
  }
  report.finish(all, folder)
  return 0
}

async function compare({ plan, cache, facts, report }: Work): Promise<number> {
  const comparisons = await buildTwice({
    plan,
    checkout: CHECKOUT,
    cache,
    pace: facts.level,
    say: report.say,
  })
  if (comparisons === null) return 1
  const same = comparisons.every(({ digests: [one, another] }) => one === another)
  report.compare(comparisons)
  // What differs stays to be looked at.
  if (same) await rm(join(cache, 'twice'), { recursive: true })
  else report.fail(`both builds lie in ${join(cache, 'twice')}`)
  return same ? 0 : 1
}
