/** Debian packages of any release and architecture, fetched by the host's apt with a state of its own. */
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { $ } from 'zx/core'
import { parseTargets, renderSources, TARGET_FORMAT, type HostSources } from './sources.ts'

interface AptOptions {
  readonly suite: string
  /** Debian's name of it: `amd64`. */
  readonly arch: string
  /** Holds the indexes and nothing else; kept between runs. */
  readonly state: string
}

const run = $({ quiet: true, env: { ...process.env, LC_ALL: 'C.UTF-8' } })

/** deb822 text for `suite`, from what this host's apt is set up with. Throws where apt knows too little. */
export async function readSources(suite: string, backports = false): Promise<string> {
  const known = await readHostSources()
  // A host that never fetched an index has none to tell of.
  if (known.targets.length === 0) await run`apt-get update -qq`
  const host = known.targets.length === 0 ? await readHostSources() : known
  const sources = renderSources({ ...host, suite, backports })
  if (!sources.ok) throw new Error(sources.why)
  return sources.text
}

/** What this host's apt knows of Debian's archives, without fetching anything. */
export async function readHostSources(): Promise<HostSources> {
  return { targets: await listTargets(), host: await readCodename() }
}

/** Fetches packages into `folder` without what they depend on; gives their files' paths. */
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

/** What a package file says of itself. */
export async function readPackage(file: string) {
  const { stdout } =
    await run`dpkg-deb --show --showformat ${'${Package} ${Version} ${Architecture}'} ${file}`
  const [name = '', version = '', architecture = ''] = stdout.trim().split(' ')
  return { name, version, architecture }
}

/** Lays the files of a package below `root`; no script of it runs. */
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
