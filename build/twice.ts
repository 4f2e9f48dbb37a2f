/** Whether two builds that know nothing of each other make the same bytes. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { digestFile } from './cache/digest.ts'
import type { Bundle, Plan } from './plan.ts'
import type { BuildEvent } from './progress.ts'
import { runSteps } from './run.ts'

interface TwiceOptions {
  readonly plan: Plan
  readonly checkout: string
  /** Only what was fetched is shared with it. */
  readonly cache: string
  readonly pace: string
  readonly say: (event: BuildEvent) => void
}

export interface Comparison {
  readonly asset: string
  readonly digests: readonly [string, string]
}

/** Null: a step failed, which was said. Each builds from nothing, in a folder of its own. */
export async function buildTwice(options: TwiceOptions): Promise<readonly Comparison[] | null> {
  const { plan, checkout, cache, pace, say } = options
  const work = join(cache, 'twice')
  mkdirSync(work, { recursive: true })
  const folder = mkdtempSync(join(work, 'run-'))
  // Copies: whoever edits the checkout meanwhile changes neither.
  const builds = ['one', 'another/place'].map((place) => ({
    checkout: join(folder, place, 'checkout'),
    cache: join(folder, place, 'cache'),
  }))
  for (const build of builds) copyCheckout(checkout, build.checkout)
  const made: (readonly string[])[] = []
  for (const build of builds) {
    const outcome = await runSteps({ ...build, steps: plan.steps, shared: cache, pace, say })
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

/** All that a commit would hold, with the packages that are installed. */
export function copyCheckout(from: string, to: string): void {
  const args = [
    '-c',
    `safe.directory=${from}`,
    '-C',
    from,
    'ls-files',
    '-z',
    '--cached',
    '--others',
    '--exclude-standard',
  ]
  const files = execFileSync('git', args, { encoding: 'utf8' }).split('\0').filter(Boolean)
  for (const file of files) {
    mkdirSync(dirname(join(to, file)), { recursive: true })
    cpSync(join(from, file), join(to, file), { verbatimSymlinks: true })
  }
  symlinkSync(join(from, 'node_modules'), join(to, 'node_modules'))
}
