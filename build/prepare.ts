/** Gives a host what it lacks to make images, where it can, before a build begins. */
import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'
import process from 'node:process'
import { readHostSources } from './debian/apt.ts'
import { findArchive, NO_ARCHIVE } from './debian/sources.ts'
import {
  findMachineObstacle,
  findMissing,
  renderInstall,
  renderTail,
  type HostFacts,
} from './host.ts'

interface HostOptions {
  readonly compilesIpxe: boolean
  /** The files of a tree have owners, which only root can give them. */
  readonly makesTree: boolean
}

export const isRoot = () => process.getuid?.() === 0

export const readHost = ({ compilesIpxe }: Pick<HostOptions, 'compilesIpxe'>): HostFacts => ({
  compilesIpxe,
  has: (thing) => (isAbsolute(thing) ? existsSync(thing) : isProgram(thing)),
})

/** Null: images can be made on this machine; else why not, for people. */
export const findObstacle = ({ compilesIpxe, makesTree }: HostOptions): string | null =>
  findMachineObstacle({
    platform: process.platform,
    arch: process.arch,
    makesPrograms: compilesIpxe || makesTree,
  })

/** Whether this host's apt knows an archive of Debian's; fetches nothing. */
export const knowsDebian = async (): Promise<boolean> =>
  isProgram('apt-get') && findArchive(await readHostSources()) !== null

/** Installs what is missing where we are root on Debian. Null: all is there; else what to do, for people. */
export async function prepareHost(
  options: HostOptions,
  say: (line: string) => void,
): Promise<string | null> {
  const obstacle = findObstacle(options)
  if (obstacle !== null) return obstacle
  if (options.makesTree && !isRoot()) return 'trees of files that belong to root are made as root'
  return installMissing(readHost(options), say) ?? (await prepareSources(say))
}

function installMissing(host: HostFacts, say: (line: string) => void): string | null {
  const missing = findMissing(host)
  if (missing.length === 0) return null
  const names = missing.map(({ thing }) => thing).join(', ')
  const command = renderInstall(missing)
  if (!isRoot() || !isProgram('apt-get')) return `missing: ${names}\nAs root: ${command}`
  say(`installing what is missing: ${names}`)
  const update = runApt(['update'])
  const install = runApt(['-y', ...command.split(' ').slice(1)])
  const left = findMissing(host).map(({ thing }) => thing)
  if (left.length === 0) return null
  const said = renderTail(`${update}\n${install}`)
  return `apt-get brought no ${left.join(', ')}:\n${said}\nTry: ${command}`
}

async function prepareSources(say: (line: string) => void): Promise<string | null> {
  if (await knowsDebian()) return null
  if (!isRoot()) return `${NO_ARCHIVE}, as root`
  say("fetching apt's package indexes")
  const said = runApt(['update'])
  return (await knowsDebian()) ? null : [NO_ARCHIVE, renderTail(said)].join('\n').trimEnd()
}

/** What it said. */
function runApt(args: readonly string[]): string {
  const { stdout, stderr } = spawnSync('apt-get', ['-qq', ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 2 ** 26,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' },
  })
  return `${stdout}\n${stderr}`
}

function isProgram(name: string): boolean {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin']
  return folders.some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
