/** `pnpm build:doctor`: what this host lacks to build images, and how to get it. */
import { mkdirSync, statfsSync } from 'node:fs'
import process from 'node:process'
import { readArguments } from './arguments.ts'
import { NO_ARCHIVE } from '#build/debian/sources.ts'
import { cacheFolder, CHECKOUT, readVersion } from './facts.ts'
import { findMissing, needsFor, renderInstall, ROOM_BYTES } from './host.ts'
import { renderBytes } from './progress.ts'
import { findObstacle, isRoot, knowsDebian, readHost } from './prepare.ts'
import { runScript, type Context } from './script.ts'

/** One thing that was checked, and what to do when it is missing. */
interface Finding {
  readonly well: boolean
  readonly name: string
  readonly says: string
  readonly advice?: string
}

const SCRIPT = {
  name: 'build:doctor',
  summary: ['Checks what this host lacks to build images, and says how to get it.'],
  version: readVersion(CHECKOUT),
  options: {
    arm64: { help: 'Also checks what images of arm64 require' },
    'ipxe-src': { help: 'Also checks what compiling iPXE requires' },
  },
}

interface Needs {
  readonly compilesIpxe: boolean
  readonly makesArm64: boolean
}

async function examine(needs: Needs): Promise<readonly Finding[]> {
  return [
    readMachine(needs),
    {
      well: isRoot(),
      name: 'root',
      says: 'owns the files of a tree; ipxe-efi is built without',
      advice: 'Run it as root; ipxe-efi is built without.',
    },
    ...readNeeds(needs),
    {
      well: await knowsDebian(),
      name: 'Debian package sources',
      says: 'everything is built from them',
      advice: `As root: ${NO_ARCHIVE}.`,
    },
    readRoom(cacheFolder(process.env)),
  ]
}

/** The exit code. */
function report(findings: readonly Finding[], { say }: Context['voice']): number {
  const width = Math.max(...findings.map(({ name }) => name.length))
  for (const { well, name, says } of findings) {
    const text = `${name.padEnd(width)}  ${says}`
    if (well) say.success(text)
    else say.fail(text)
  }
  const missing = findings.filter(({ well }) => !well)
  const advice = [...new Set(missing.flatMap((finding) => finding.advice ?? []))]
  if (advice.length > 0) say.box({ title: 'What to do', message: advice.join('\n') })
  return missing.length === 0 ? 0 : 1
}

function readMachine({ compilesIpxe }: Needs): Finding {
  const obstacle = findObstacle({ compilesIpxe, makesTree: true })
  const says = obstacle ?? 'runs the programs that build images'
  return { well: obstacle === null, name: 'Linux on x86-64', says }
}

function readNeeds(needs: Needs): readonly Finding[] {
  const host = readHost(needs)
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
    name: `space in ${folder}`,
    says: `${renderBytes(free)} free, ${renderBytes(ROOM_BYTES)} required`,
    advice: 'Set FLASHER_BUILD_CACHE to a folder with more space.',
  }
}

await runScript({
  name: SCRIPT.name,
  read: (argv) => readArguments(SCRIPT, argv),
  run: async ({ switches }, { voice }) => {
    const [compilesIpxe, makesArm64] = [switches.has('ipxe-src'), switches.has('arm64')]
    return report(await examine({ compilesIpxe, makesArm64 }), voice)
  },
})
