/** `pnpm build:release`: makes the folders of a release, one for each release line. */
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { ARCHS } from '#appliance/appliance.ts'
import { aptArchive, commonDebFiles, debFile } from '#appliance/assets.ts'
import { APPLIANCES, NAMED_APPLIANCES } from '#appliance/all.ts'
import { RELEASE_LINES, type ReleaseLine } from '#appliance/release.ts'
import { CHECKOUT, cacheFolder, listFiles, readEpoch, readVersion } from './facts.ts'
import { compare, DIST, make } from './make.ts'
import { planImages, type Plan } from './plan.ts'
import { renderPlan } from './plan-text.ts'
import { prepareHost } from './prepare.ts'
import { renderBytes } from './progress.ts'
import { packAptTree, writeAptTree } from '#build/release/apt.ts'
import { collectAssets, type Collection } from '#build/release/collect.ts'
import { readRelease, type ReleaseOptions } from './release-command.ts'
import { writeFolder } from '#build/release/folder.ts'
import { joinPlans, planParts } from './release-parts.ts'
import { createTextReport } from './report.ts'
import { readDurations } from './run.ts'
import { runScript, type Context } from './script.ts'
import type { BuildFacts } from '#build/steps/step.ts'

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
  options: ReleaseOptions,
  { epoch }: BuildFacts,
  say: Context['voice']['say'],
): Promise<number> {
  const { tag, key, url, isComplete } = options
  const built = new Set(await readdir(DIST))
  const template = await readFile(join(CHECKOUT, 'release.toml.in'), 'utf8')
  const lines = RELEASE_LINES.map((line) => ({ line, ...collectAssets(line, version, built) }))
  for (const found of lines) sayMissing(found, isComplete ? say.fail : say.warn)
  if (isComplete && lines.some(({ missing }) => missing.length > 0)) return 1
  if (url === null)
    say.warn(
      'Without --url, imager.json for Raspberry Pi Imager and the recipes for Homebrew, Nix and Arch Linux are left out.',
    )
  const apt = await makeApt(options, built, epoch, say)
  for (const { line, groups } of lines) {
    const to = join(DIST, 'release', line)
    const rest = {
      line,
      version,
      tag,
      epoch,
      template,
      key,
      url,
      apt: line === 'current' ? apt : null,
    }
    const files = await writeFolder({ ...rest, groups, from: DIST, to })
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
    const signed = key === null ? 'not signed' : 'signed'
    say.success(`dist/release/${line}: ${files.length} files, ${renderBytes(bytes)}, ${signed}`)
  }
  return 0
}

/** The archive of the apt repository; null: there is no key, or there are no packages. */
async function makeApt(
  { aptKey }: ReleaseOptions,
  built: ReadonlySet<string>,
  epoch: number,
  say: Context['voice']['say'],
): Promise<string | null> {
  if (aptKey === null) {
    say.warn('Without --apt-key, the apt repository is left out.')
    return null
  }
  const wanted = [...ARCHS.map((arch) => debFile(arch, version)), ...commonDebFiles(version)]
  const debs = wanted.filter((name) => built.has(name))
  if (debs.length < wanted.length) {
    say.warn(`The apt repository lacks ${wanted.filter((name) => !built.has(name)).join(', ')}.`)
  }
  if (debs.length === 0) return null
  const tree = join(DIST, 'release/apt')
  await mkdir(join(DIST, 'release'), { recursive: true })
  await writeAptTree({ debs: debs.map((name) => join(DIST, name)), to: tree, epoch, key: aptKey })
  await packAptTree(tree, join(DIST, aptArchive(version)), epoch)
  say.success(`dist/release/apt: ${debs.length} packages, for any web server`)
  return aptArchive(version)
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
