/** `pnpm build:doctor`: what this host lacks to make images, and how to get it. */
import { mkdirSync, statfsSync } from 'node:fs'
import process from 'node:process'
import { styleText } from 'node:util'
import { NO_ARCHIVE } from './debian/sources.ts'
import { cacheFolder } from './facts.ts'
import { findMissing, needsFor, renderInstall, ROOM_BYTES } from './host.ts'
import { findObstacle, isRoot, knowsDebian, readHost } from './prepare.ts'

/** A line of the examination, and what to do where it is not well. */
interface Finding {
  readonly well: boolean
  readonly name: string
  readonly says: string
  readonly advice?: string
}

/** Lines for people, and whether all is well. */
async function examine(compilesIpxe: boolean) {
  const findings = [
    readMachine(compilesIpxe),
    { well: isRoot(), name: 'root', says: 'owns the files of a tree; iPXE is made without' },
    ...readNeeds(compilesIpxe),
    {
      well: await knowsDebian(),
      name: 'package sources of Debian',
      says: 'everything is made of them',
      advice: `${NO_ARCHIVE}, as root`,
    },
    readRoom(cacheFolder(process.env)),
  ]
  const width = Math.max(...findings.map(({ name }) => name.length))
  const lines = findings.map(({ well, name, says }) => {
    const mark = well ? styleText('green', '✓') : styleText('red', '✗')
    return `${mark} ${name.padEnd(width)}  ${says}`
  })
  const ill = findings.filter(({ well }) => !well)
  const advice = new Set(ill.flatMap((finding) => finding.advice ?? []))
  return { lines: [...lines, ...advice], well: ill.length === 0 }
}

function readMachine(compilesIpxe: boolean): Finding {
  const obstacle = findObstacle({ compilesIpxe, makesTree: true })
  const says = obstacle ?? 'the programs that make images run on it'
  return { well: obstacle === null, name: 'Linux on x86-64', says }
}

function readNeeds(compilesIpxe: boolean): readonly Finding[] {
  const host = readHost({ compilesIpxe })
  const missing = findMissing(host)
  const advice = missing.length === 0 ? {} : { advice: `As root: ${renderInstall(missing)}` }
  return needsFor(host).map((need) => ({
    well: !missing.includes(need),
    name: need.thing,
    says: need.why,
    ...advice,
  }))
}

function readRoom(folder: string): Finding {
  mkdirSync(folder, { recursive: true })
  const { bavail, bsize } = statfsSync(folder)
  const free = bavail * bsize
  return {
    well: free >= ROOM_BYTES,
    name: `room in ${folder}`,
    says: `${gib(free)} GiB free, ${gib(ROOM_BYTES)} wanted`,
    advice: 'FLASHER_BUILD_CACHE names a folder with more room',
  }
}

const gib = (bytes: number) => (bytes / 2 ** 30).toFixed(1)

const { lines, well } = await examine(process.argv.includes('--ipxe-src'))
console.log(lines.join('\n'))
process.exitCode = well ? 0 : 1
