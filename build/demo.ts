/** `pnpm demo`: flashes a virtual machine that boots from the network, without root and without hardware. */
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import process from 'node:process'
import { readArguments, UsageError, type Script } from './arguments.ts'
import { createJsonReport, createTextReport, type FullReport } from './demo-report.ts'
import { planFolder, runDemo, type DemoFolder, type DemoOptions } from '#build/demo/demo.ts'
import { findLiveSystem, readDemoHost, readReleaseSite } from '#build/demo/host.ts'
import { buildLiveSystem } from '#build/demo/live-build.ts'
import { decideLiveSource } from '#build/demo/live-source.ts'
import { ACCELERATORS, type Accelerator } from '#build/demo/machine.ts'
import { listNeeds } from '#build/demo/needs.ts'
import { CHECKOUT, readVersion } from './facts.ts'
import { findObstacle } from './prepare.ts'
import { runScript, type Context } from './script.ts'
import { nearestOf } from '#kit/foundation/nearest.ts'

const SCRIPT = {
  name: 'demo',
  summary: [
    'Flashes a virtual machine that boots from the network: no root, no hardware.',
    'Starts a machine server and an image cache of its own on this host, and a QEMU machine that boots from them. Ctrl-C ends all of them.',
  ],
  version: readVersion(CHECKOUT),
  options: {
    auto: { help: 'Arms the machine by itself, and ends once it has booted what was flashed' },
    image: { value: 'FILE', help: 'Flashes this image instead of a small one of its own' },
    window: { help: "Shows the machine's screen" },
    accel: {
      value: ACCELERATORS.join('|'),
      help: 'How QEMU runs the machine; auto: KVM if it works, else emulation (tcg)',
      default: 'auto',
    },
    fresh: { help: 'Forgets what earlier runs have left: the machine, its disk, the password' },
    json: { help: 'Prints what happens as a line of JSON for each event' },
  },
  examples: ['', '--auto', '--image debian-13.img.zst --window'],
} as const satisfies Script

interface Options {
  readonly auto: boolean
  readonly window: boolean
  readonly fresh: boolean
  readonly json: boolean
  readonly image: string | null
  readonly accelerator: Accelerator | 'auto'
}

const DIST = join(CHECKOUT, 'dist')
/** A shell reports this code for a program that SIGINT ended. */
const INTERRUPTED = 130

function read(argv: readonly string[]): Options | null {
  const given = readArguments(SCRIPT, argv)
  if (given === null) return null
  const { switches, values } = given
  return {
    auto: switches.has('auto'),
    window: switches.has('window'),
    fresh: switches.has('fresh'),
    json: switches.has('json'),
    image: readImage(values['image']),
    accelerator: readAccelerator(values['accel']),
  }
}

function readImage(given: string | undefined): string | null {
  if (given === undefined) return null
  if (given === '') throw new UsageError('--image requires a file')
  const path = resolve(process.env['INIT_CWD'] ?? '.', given)
  if (!existsSync(path)) throw new UsageError(`--image: there is no file ${path}`)
  return path
}

function readAccelerator(given = ''): Accelerator | 'auto' {
  const found = ACCELERATORS.find((one) => one === given)
  if (found !== undefined) return found
  const nearest = nearestOf(given, ACCELERATORS)
  const hint = nearest === null ? '' : `; did you mean ${nearest}?`
  throw new UsageError(`--accel must be one of ${ACCELERATORS.join(', ')}${hint}`)
}

/** Exit codes as of every script; 1 also where something is missing, or the flash failed. */
async function run(options: Options, { voice, signal }: Context): Promise<number> {
  const start = performance.now()
  const { auto, window, image, accelerator } = options
  const folder = planFolder(decideRoot(process.env))
  const report = options.json
    ? createJsonReport()
    : createTextReport(voice, image === null ? null : basename(image))
  const prepared = await prepare(options, { folder, report, signal })
  if (prepared === null) return signal.aborted ? INTERRUPTED : 1
  const given = { checkout: CHECKOUT, folder, auto, image, accelerator, isWindow: window }
  try {
    const { ended } = await runDemo({ ...given, ...prepared }, report, signal)
    report.end(ended, (performance.now() - start) / 1000)
    return ended === 'failed' ? 1 : 0
  } catch (thrown) {
    if (!signal.aborted) throw thrown
    report.stopped(folder.root)
    // The demo always ends like this without --auto.
    return auto ? INTERRUPTED : 0
  }
}

/** Outside of all checkouts, beside the caches of other programs. */
const decideRoot = (env: NodeJS.ProcessEnv) =>
  join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'flasher/demo')

interface Preparation {
  readonly folder: DemoFolder
  readonly report: FullReport
  readonly signal: AbortSignal
}

/** What is there, and where the live system comes from; null: something is missing, and was reported. */
async function prepare(
  { json, window, fresh }: Options,
  { folder, report, signal }: Preparation,
): Promise<Pick<DemoOptions, 'source' | 'site'> | null> {
  report.begin()
  const needs = listNeeds(await readDemoHost(), window)
  for (const need of needs) report.need(need)
  if (fresh) await rm(folder.root, { recursive: true, force: true })
  const built = await findLiveSystem(DIST)
  const site = built === null ? await readReleaseSite(CHECKOUT) : null
  const source = decideLiveSource({
    built,
    site,
    kept: await findLiveSystem(folder.boot),
    isRoot: process.getuid?.() === 0,
    obstacle: findObstacle({ compilesIpxe: false, makesTree: true }),
  })
  const advice = [
    ...needs.flatMap((need) => need.advice ?? []),
    ...(source.from === 'nowhere' ? [source.advice] : []),
  ]
  if (advice.length === 0 || source.from !== 'build') report.source(source)
  if (advice.length > 0) {
    report.advise(advice)
    return null
  }
  return source.from === 'build' ? await build(json, signal) : { source, site }
}

/** Null: it failed and has said why, or was interrupted. */
async function build(isQuiet: boolean, signal: AbortSignal) {
  const isBuilt = await buildLiveSystem({ checkout: CHECKOUT, isQuiet, signal })
  const version = isBuilt ? await findLiveSystem(DIST) : null
  return version === null ? null : { source: { from: 'dist', version } as const, site: null }
}

await runScript({ name: SCRIPT.name, endsBySignal: true, read, run })
