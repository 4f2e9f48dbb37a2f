/** `pnpm build:doctor`: what this host lacks to make images, and how to get it. */
import { execFileSync, spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, mkdirSync, statfsSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'
import process from 'node:process'
import { styleText } from 'node:util'
import { cacheFolder } from './facts.ts'
import { findMissing, needsFor, renderInstall, ROOM_BYTES, type HostFacts } from './host.ts'

export interface DoctorWish {
  readonly compilesIpxe: boolean
  /** The files of a tree have owners, which only root can give them. */
  readonly makesTree: boolean
}

const isRoot = () => process.getuid?.() === 0

export const readHost = ({ compilesIpxe }: Pick<DoctorWish, 'compilesIpxe'>): HostFacts => ({
  compilesIpxe,
  has: (thing) => (isAbsolute(thing) ? existsSync(thing) : isProgram(thing)),
})

/** Installs what is missing where we are root on Debian. Null: all is there; else what to do, for people. */
export function prepareHost(wish: DoctorWish, say: (line: string) => void): string | null {
  if (wish.makesTree && !isRoot()) return 'trees of files that belong to root are made as root'
  const host = readHost(wish)
  const missing = findMissing(host)
  if (missing.length === 0) return null
  const names = missing.map(({ thing }) => thing).join(', ')
  const command = renderInstall(missing)
  if (!isRoot() || !isProgram('apt-get')) return `missing: ${names}\nAs root: ${command}`
  say(`installing what is missing: ${names}`)
  const quiet = {
    stdio: 'ignore',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  } as const
  spawnSync('apt-get', ['update', '-qq'], quiet)
  spawnSync('apt-get', ['-y', '-qq', ...command.split(' ').slice(1)], quiet)
  const left = findMissing(host).map(({ thing }) => thing)
  return left.length === 0 ? null : `apt-get brought no ${left.join(', ')}\nTry: ${command}`
}

/** Lines for people, and whether all is well. */
function examine(wish: Pick<DoctorWish, 'compilesIpxe'>): {
  readonly lines: readonly string[]
  readonly well: boolean
} {
  const host = readHost(wish)
  const missing = findMissing(host)
  const folder = cacheFolder(process.env)
  mkdirSync(folder, { recursive: true })
  const { bavail, bsize } = statfsSync(folder)
  const roomy = bavail * bsize >= ROOM_BYTES
  const needs = needsFor(host).map((need) => ({
    well: !missing.includes(need),
    name: need.thing,
    says: need.why,
  }))
  const rows = [
    { well: isRoot(), name: 'root', says: 'owns the files of a tree; iPXE is made without' },
    ...needs,
    { well: knowsDebian(), name: 'package sources of Debian', says: 'everything is made of them' },
    {
      well: roomy,
      name: `room in ${folder}`,
      says: `${gib(bavail * bsize)} GiB free, ${gib(ROOM_BYTES)} wanted`,
    },
  ]
  const width = Math.max(...rows.map(({ name }) => name.length))
  const lines = rows.map(({ well, name, says }) => {
    const mark = well ? styleText('green', '✓') : styleText('red', '✗')
    return `${mark} ${name.padEnd(width)}  ${says}`
  })
  const advice = [
    ...(missing.length === 0 ? [] : [`As root: ${renderInstall(missing)}`]),
    ...(knowsDebian()
      ? []
      : ["As root: apt-get update, with Debian's archive among apt's sources"]),
    ...(roomy ? [] : ['FLASHER_BUILD_CACHE names a folder with more room']),
  ]
  return { lines: [...lines, ...advice], well: rows.every(({ well }) => well) }
}

const gib = (bytes: number) => (bytes / 2 ** 30).toFixed(1)

function knowsDebian(): boolean {
  if (!isProgram('apt-get')) return false
  const rows = execFileSync('apt-get', ['indextargets', 'Created-By: Packages', 'Origin: Debian'])
  return rows.length > 0
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

if (import.meta.main) {
  const { lines, well } = examine({ compilesIpxe: process.argv.includes('--ipxe-src') })
  console.log(lines.join('\n'))
  process.exitCode = well ? 0 : 1
}
