/** Installs what a host lacks before a build begins, where it may. */
import { accessSync, constants, existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import process from 'node:process'
import { $, quote } from 'zx/core'
import { readHostSources } from '#build/debian/apt.ts'
import { findArchive, NO_ARCHIVE } from '#build/debian/sources.ts'
import {
  ARM64_PROGRAMS,
  findMachineObstacle,
  findMissing,
  renderInstall,
  renderTail,
  type HostFacts,
} from './host.ts'

interface HostOptions {
  readonly compilesIpxe: boolean
  /** The files of a tree have owners, which only root can set. */
  readonly makesTree: boolean
  /** Programs of arm64 run while its packages are installed. */
  readonly makesArm64: boolean
}

export const isRoot = () => process.getuid?.() === 0

export const readHost = ({
  compilesIpxe,
  makesArm64,
}: Omit<HostOptions, 'makesTree'>): HostFacts => ({
  compilesIpxe,
  makesArm64,
  has: (thing) => (isAbsolute(thing) ? existsSync(thing) : isProgram(thing)),
})

/** Null when images can be built on this machine; else the reason, for people. */
export const findObstacle = ({
  compilesIpxe,
  makesTree,
}: Omit<HostOptions, 'makesArm64'>): string | null =>
  findMachineObstacle({
    platform: process.platform,
    arch: process.arch,
    makesPrograms: compilesIpxe || makesTree,
  })

/** Whether this host's apt has a Debian archive among its sources; fetches nothing. */
export const knowsDebian = async (): Promise<boolean> =>
  isProgram('apt-get') && findArchive(await readHostSources()) !== null

/**
 * Installs what is missing, when it is root on Debian.
 * @returns null when nothing is missing any more; else what to do, for people.
 */
export async function prepareHost(
  options: HostOptions,
  say: (line: string) => void,
): Promise<string | null> {
  const obstacle = findObstacle(options)
  if (obstacle !== null) return obstacle
  if (options.makesTree && !isRoot())
    return 'this image contains files that belong to root: build it as root'
  return (
    (await installMissing(readHost(options), say)) ??
    (options.makesArm64 ? await registerArm64(say) : null) ??
    (await prepareSources(say))
  )
}

async function installMissing(
  host: HostFacts,
  say: (line: string) => void,
): Promise<string | null> {
  const missing = findMissing(host)
  if (missing.length === 0) return null
  const names = missing.map(({ thing }) => thing).join(', ')
  const command = renderInstall(missing)
  if (!isRoot() || !isProgram('apt-get')) return `missing: ${names}\nAs root: ${command}`
  say(`Installing missing packages for ${names}`)
  const update = await runApt(['update'])
  const install = await runApt(['-y', ...command.split(' ').slice(1)])
  const left = findMissing(host).map(({ thing }) => thing)
  if (left.length === 0) return null
  const said = renderTail(`${update}\n${install}`)
  return `apt-get did not install ${left.join(', ')}:\n${said}\nTry: ${command}`
}

const FORMATS = '/proc/sys/fs/binfmt_misc'

/** Where systemd runs, it has done so when the package was installed. */
async function registerArm64(say: (line: string) => void): Promise<string | null> {
  if (existsSync(join(FORMATS, 'qemu-aarch64'))) return null
  say('Registering QEMU for programs of arm64')
  try {
    if (!existsSync(join(FORMATS, 'register'))) {
      await $({ quiet: true })`mount -t binfmt_misc binfmt_misc ${FORMATS}`
    }
    const row = await readFile(ARM64_PROGRAMS, 'utf8')
    await writeFile(join(FORMATS, 'register'), row.trim())
    return null
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown)
    return `images of arm64 require binfmt_misc, and QEMU could not be registered with it:\n${why}`
  }
}

async function prepareSources(say: (line: string) => void): Promise<string | null> {
  if (await knowsDebian()) return null
  if (!isRoot()) return `${NO_ARCHIVE}, as root`
  say('Fetching package indexes')
  const said = await runApt(['update'])
  return (await knowsDebian()) ? null : [NO_ARCHIVE, renderTail(said)].join('\n').trimEnd()
}

/** Its output. */
async function runApt(args: readonly string[]): Promise<string> {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' }
  // Whatever PATH holds: by itself zx looks for bash there.
  const run = $({
    env,
    shell: '/bin/bash',
    quote,
    stdio: ['ignore', 'pipe', 'pipe'],
    nothrow: true,
    quiet: true,
  })
  const { stdout, stderr } = await run`apt-get -qq ${args}`
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
