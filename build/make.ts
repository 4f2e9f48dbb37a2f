/** Carries out a plan: into `dist`, or twice to compare the bytes. */
import { cp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { ownerOf } from '#build/cache/key.ts'
import { CHECKOUT } from './facts.ts'
import { readContents } from '#build/pack/read.ts'
import { writeRelease } from '#build/pack/release.ts'
import type { Plan } from './plan.ts'
import type { BuildEvent } from './progress.ts'
import type { Finished, Report } from './report.ts'
import { runSteps } from './run.ts'
import type { BuildFacts } from '#build/steps/step.ts'
import { buildTwice } from './twice.ts'

/** Where finished files are handed over. */
export const DIST: string = join(CHECKOUT, 'dist')

interface Work {
  readonly plan: Plan
  readonly cache: string
  readonly facts: BuildFacts
  readonly report: Report
  readonly signal: AbortSignal
}

/** Resolves to the exit code. */
export async function make({ plan, cache, facts, report, signal }: Work): Promise<number> {
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
    // A release is worth the seconds that reading the cache takes.
    proof: facts.level === 'release' ? 'content' : 'listing',
    say,
    signal,
  })
  if (!outcome.ok) {
    if (signal.aborted) report.note('Finished steps stay in the cache.')
    return 1
  }
  const folder = DIST
  const finished: Finished[] = []
  for (const bundle of plan.bundles) {
    const files = bundle.files.map(({ asset, from }) => ({ asset, path: outcome.pathOf(from) }))
    const contents = await readContents(bundle, outcome.pathOf)
    const released = await writeRelease({ ...bundle, ...facts, folder, files, contents })
    for (const { name, from } of bundle.folders ?? []) {
      await handOver(outcome.pathOf(from), join(folder, name))
    }
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

/** Replaces a folder by a copy of another one; a rename completes it. */
async function handOver(from: string, to: string): Promise<void> {
  const part = `${to}.${process.pid}.part`
  await cp(from, part, { recursive: true, preserveTimestamps: true })
  await rm(to, { recursive: true, force: true })
  await rename(part, to)
}

/** Resolves to the exit code. */
export async function compare({ plan, cache, facts, report, signal }: Work): Promise<number> {
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
