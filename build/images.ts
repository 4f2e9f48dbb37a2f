/** `pnpm build:images [NAME…]`: makes what we ship into `dist/`. */
import { rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { APPLIANCES, NAMED_APPLIANCES } from '../appliance/all.ts'
import { ownerOf } from './cache/key.ts'
import { readBuild, type BuildOptions } from './command.ts'
import { CHECKOUT, cacheFolder, readEpoch, readVersion } from './facts.ts'
import { readContents } from './pack/read.ts'
import { writeRelease } from './pack/release.ts'
import { planImages, type Plan } from './plan.ts'
import { renderPlan } from './plan-text.ts'
import { prepareHost } from './prepare.ts'
import type { BuildEvent } from './progress.ts'
import { createJsonReport, createTextReport, type Finished, type Report } from './report.ts'
import { readDurations, runSteps } from './run.ts'
import { runScript, type Context } from './script.ts'
import type { BuildFacts } from './steps/step.ts'
import { buildTwice } from './twice.ts'

const version = readVersion(CHECKOUT)

await runScript({
  name: 'build:images',
  read: (argv) => readBuild(argv, APPLIANCES, version, NAMED_APPLIANCES),
  run: build,
})

async function build(options: BuildOptions, { voice, signal }: Context): Promise<number> {
  const { names, level, ipxeServer, ipxeSource, json } = options
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
  const obstacle = await prepareHost({ compilesIpxe: source !== null, makesTree }, report.note)
  if (obstacle !== null) {
    report.fail(obstacle)
    return 1
  }
  const work = { plan, cache, facts, report, signal }
  return options.twice ? await compare(work) : await make(work)
}

interface Work {
  readonly plan: Plan
  readonly cache: string
  readonly facts: BuildFacts
  readonly report: Report
  readonly signal: AbortSignal
}

async function make({ plan, cache, facts, report, signal }: Work): Promise<number> {
  /** Seconds that each step took, of those that ran. */
  const seconds = new Map<string | null, number>()
  const say = (event: BuildEvent) => {
    if (event.event === 'made') seconds.set(event.step, event.seconds)
    report.say(event)
  }
  const outcome = await runSteps({
    steps: plan.steps,
    checkout: CHECKOUT,
    cache,
    pace: facts.level,
    // For a release it is worth the seconds that reading the cache takes.
    proof: facts.level === 'release' ? 'content' : 'listing',
    say,
    signal,
  })
  if (!outcome.ok) {
    if (signal.aborted) report.note('Finished steps stay in the cache.')
    return 1
  }
  const folder = join(CHECKOUT, 'dist')
  const finished: Finished[] = []
  for (const bundle of plan.bundles) {
    const files = bundle.files.map(({ asset, from }) => ({ asset, path: outcome.pathOf(from) }))
    const contents = await readContents(bundle, outcome.pathOf)
    const released = await writeRelease({ ...bundle, ...facts, folder, files, contents })
    const owners = bundle.files.map(({ from }) => ownerOf(from))
    finished.push(
      ...released.map((file, at) => ({
        ...file,
        seconds: seconds.get(owners[at] ?? null) ?? null,
      })),
    )
  }
  report.finish(finished, folder)
  return 0
}

async function compare({ plan, cache, facts, report, signal }: Work): Promise<number> {
  const comparisons = await buildTwice({
    plan,
    checkout: CHECKOUT,
    cache,
    pace: facts.level,
    say: report.say,
    signal,
  })
  if (comparisons === null) return 1
  const same = comparisons.every(({ digests: [one, another] }) => one === another)
  report.compare(comparisons)
  // What differs is kept for a closer look.
  if (same) await rm(join(cache, 'twice'), { recursive: true })
  else report.fail(`Both builds are kept in ${join(cache, 'twice')}`)
  return same ? 0 : 1
}
