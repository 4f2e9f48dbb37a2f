/** Builds twice, independently, and compares the bytes. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { digestFile } from '#build/cache/digest.ts'
import { listFiles } from './facts.ts'
import type { Bundle } from './bundles.ts'
import type { Plan } from './plan.ts'
import type { BuildEvent } from './progress.ts'
import { runSteps } from './run.ts'

interface TwiceOptions {
  readonly plan: Plan
  readonly checkout: string
  /** The two builds share its downloads, and nothing else. */
  readonly cache: string
  readonly pace: string
  readonly say: (event: BuildEvent) => void
  readonly signal: AbortSignal
}

export interface Comparison {
  readonly asset: string
  readonly digests: readonly [string, string]
}

/**
 * Each builds from nothing, in a folder of its own.
 * @returns null when a step failed or was interrupted; `say` has reported it.
 */
export async function buildTwice(options: TwiceOptions): Promise<readonly Comparison[] | null> {
  const { plan, checkout, cache, pace, say, signal } = options
  const work = join(cache, 'twice')
  mkdirSync(work, { recursive: true })
  const folder = mkdtempSync(join(work, 'run-'))
  // Copies, so that edits in the checkout meanwhile reach neither build.
  const builds = ['one', 'another/place'].map((place) => ({
    checkout: join(folder, place, 'checkout'),
    cache: join(folder, place, 'cache'),
  }))
  for (const build of builds) copyCheckout(checkout, build.checkout)
  const made: (readonly string[])[] = []
  for (const build of builds) {
    const outcome = await runSteps({
      ...build,
      steps: plan.steps,
      shared: cache,
      pace,
      say,
      signal,
    })
    if (signal.aborted) rmSync(folder, { recursive: true })
    if (!outcome.ok) return null
    const paths = filesOf(plan.bundles).map(({ from }) => outcome.pathOf(from))
    made.push(await Promise.all(paths.map(digestFile)))
  }
  const [one = [], another = []] = made
  return filesOf(plan.bundles).map(({ asset }, at) => ({
    asset,
    digests: [one[at] ?? '', another[at] ?? ''],
  }))
}

const filesOf = (bundles: readonly Bundle[]) => bundles.flatMap(({ files }) => files)

/** Copies all files that a commit would hold, and links the installed packages. */
export function copyCheckout(from: string, to: string): void {
  for (const file of listFiles(from)) {
    mkdirSync(dirname(join(to, file)), { recursive: true })
    cpSync(join(from, file), join(to, file), { verbatimSymlinks: true })
  }
  symlinkSync(join(from, 'node_modules'), join(to, 'node_modules'))
}
