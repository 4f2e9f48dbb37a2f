/** Fetches Debian packages of any release and architecture with the host's apt, in a state folder of its own. */
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { $ } from 'zx/core'
import { parseTargets, renderSources, TARGET_FORMAT, type HostSources } from './sources.ts'

interface AptOptions {
  readonly suite: string
  /** Debian's name of it: `amd64`. */
  readonly arch: string
  /** Holds the package indexes; kept between runs. */
  readonly state: string
}

const run = $({ quiet: true, env: { ...process.env, LC_ALL: 'C.UTF-8' } })

/**
 * Renders sources for `suite` in deb822 format, derived from those of this host. Rejects when apt
 * knows no Debian archive.
 */
export async function readSources(suite: string, backports = false): Promise<string> {
  const known = await readHostSources()
  // A host that never ran `apt-get update` has no index to list.
  if (known.targets.length === 0) await run`apt-get update -qq`
  const host = known.targets.length === 0 ? await readHostSources() : known
  const sources = renderSources({ ...host, suite, backports })
  if (!sources.ok) throw new Error(sources.why)
  return sources.text
}

/** Reads the Debian archives among this host's apt sources; fetches nothing. */
export async function readHostSources(): Promise<HostSources> {
  return { targets: await listTargets(), host: await readCodename() }
}

/**
 * Fetches packages into `folder`, without their dependencies, and returns the paths of the files.
 * Rejects where apt fails.
 */
export async function fetchPackages(
  { suite, arch, state }: AptOptions,
  names: readonly string[],
  folder: string,
): Promise<readonly string[]> {
  const options = await openState({ suite, arch, state })
  await run`apt-get ${options} update -qq`
  await mkdir(folder, { recursive: true })
  await run({ cwd: folder })`apt-get ${options} download ${names}`
  const files = await readdir(folder)
  return files.filter((file) => file.endsWith('.deb')).map((file) => join(folder, file))
}

/** Reads name, version and architecture of a package file. Rejects where it is none. */
export async function readPackage(file: string) {
  const { stdout } =
    await run`dpkg-deb --show --showformat ${'${Package} ${Version} ${Architecture}'} ${file}`
  const [name = '', version = '', architecture = ''] = stdout.trim().split(' ')
  return { name, version, architecture }
}

/** Unpacks a package below `root`; none of its scripts run. */
export const unpackPackage = async (file: string, root: string) => {
  await run`dpkg-deb --extract ${file} ${root}`
}

async function listTargets() {
  const debian = ['Created-By: Packages', 'Origin: Debian']
  const { stdout } = await run`apt-get indextargets --format ${TARGET_FORMAT} ${debian}`
  return parseTargets(stdout)
}

async function openState({ suite, arch, state }: AptOptions): Promise<readonly string[]> {
  const sources = join(state, 'sources')
  const lists = join(state, 'lists')
  const cache = join(state, 'cache')
  for (const dir of [sources, join(lists, 'partial'), join(cache, 'archives', 'partial')]) {
    await mkdir(dir, { recursive: true })
  }
  await writeFile(join(sources, 'all.sources'), await readSources(suite))
  await writeFile(join(state, 'status'), '')
  const settings = {
    'Dir::Etc::sourcelist': '/dev/null',
    'Dir::Etc::sourceparts': sources,
    'Dir::Etc::preferences': '/dev/null',
    'Dir::Etc::preferencesparts': '/dev/null',
    'Dir::State::lists': lists,
    'Dir::State::status': join(state, 'status'),
    'Dir::Cache': cache,
    'APT::Architecture': arch,
    'APT::Architectures': arch,
    'APT::Sandbox::User': 'root',
    'Acquire::Retries': '4',
  }
  return Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
}

async function readCodename(): Promise<string> {
  const text = await readFile('/etc/os-release', 'utf8')
  return /^VERSION_CODENAME="?([a-z0-9-]+)"?$/m.exec(text)?.[1] ?? 'unstable'
}
