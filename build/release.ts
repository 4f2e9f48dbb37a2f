/** `pnpm build:release`: makes the folders of a release, one for each release line. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { APPLIANCES, NAMED_APPLIANCES } from '../appliance/all.ts'
import { RELEASE_LINES, type ReleaseLine } from '../appliance/release.ts'
import { CHECKOUT, cacheFolder, listFiles, readEpoch, readVersion } from './facts.ts'
import { compare, DIST, make } from './make.ts'
import { planImages, type Plan } from './plan.ts'
import { renderPlan } from './plan-text.ts'
import { prepareHost } from './prepare.ts'
import { renderBytes } from './progress.ts'
import { collectAssets, type Collection } from './release/collect.ts'
import { readRelease, type ReleaseOptions } from './release-command.ts'
import { writeFolder } from './release/folder.ts'
import { joinPlans, planParts } from './release-parts.ts'
import { createTextReport } from './report.ts'
import { readDurations } from './run.ts'
import { runScript, type Context } from './script.ts'
import type { BuildFacts } from './steps/step.ts'

const version = readVersion(CHECKOUT)

await runScript({ name: 'build:release', read: (argv) => readRelease(argv, version), run: release })

async function release(options: ReleaseOptions, { voice, signal }: Context): Promise<number> {
  const { level } = options
  const facts = { version, epoch: readEpoch(CHECKOUT, level, process.env), level }
  const plan = planAll(options, facts)
  if (options.plan) {
    console.log(renderPlan(plan))
    return 0
  }
  const cache = cacheFolder(process.env)
  const durations = await readDurations({ cache, pace: level })
  const title = `Flasher ${version}: release ${options.tag} at level ${level}`
  const report = createTextReport({ voice, title, steps: plan.steps, durations })
  const obstacle = await prepareHost(
    { compilesIpxe: false, makesTree: true, makesArm64: options.buildsImages },
    report.note,
  )
  if (obstacle !== null) {
    report.fail(obstacle)
    return 1
  }
  const work = { plan, cache, facts, report, signal }
  if (options.twice) return await compare(work)
  const code = await make(work)
  return code === 0 ? await writeFolders(options, facts, voice.say) : code
}

function planAll({ buildsImages }: ReleaseOptions, facts: BuildFacts): Plan {
  // The names at the top are enough: folders are inputs as a whole.
  const sources = new Set(listFiles(CHECKOUT).map((path) => path.split('/')[0] ?? path))
  const parts = planParts(facts, [...sources].toSorted())
  if (!buildsImages) return parts
  const appliances = [...APPLIANCES, ...NAMED_APPLIANCES]
  return joinPlans(planImages({ appliances, facts, ipxeServer: null, ipxeSource: null }), parts)
}

async function writeFolders(
  { tag, key, url, isComplete }: ReleaseOptions,
  { epoch }: BuildFacts,
  say: Context['voice']['say'],
): Promise<number> {
  const built = new Set(await readdir(DIST))
  const template = await readFile(join(CHECKOUT, 'release.toml.in'), 'utf8')
  const lines = RELEASE_LINES.map((line) => ({ line, ...collectAssets(line, version, built) }))
  for (const found of lines) sayMissing(found, isComplete ? say.fail : say.warn)
  if (isComplete && lines.some(({ missing }) => missing.length > 0)) return 1
  if (url === null) say.warn('Without --url, imager.json for Raspberry Pi Imager is left out.')
  for (const { line, groups } of lines) {
    const to = join(DIST, 'release', line)
    const rest = { line, version, tag, epoch, template, key, url }
    const files = await writeFolder({ ...rest, groups, from: DIST, to })
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
    const signed = key === null ? 'not signed' : 'signed'
    say.success(`dist/release/${line}: ${files.length} files, ${renderBytes(bytes)}, ${signed}`)
  }
  return 0
}

function sayMissing(
  { line, missing }: Collection & { readonly line: ReleaseLine },
  say: (text: string) => void,
): void {
  if (missing.length === 0) return
  say(
    `The ${line} line lacks ${missing.length} files:\n${missing.map((name) => `  ${name}`).join('\n')}`,
  )
}
