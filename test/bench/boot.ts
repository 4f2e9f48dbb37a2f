/** pnpm bench:boot: what the images weigh, and how long and with how much memory they boot beside dracut's initrd. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { appendFile, mkdtemp, mkdtempDisposable, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { CHECKOUT, readEpoch } from '#build/facts.ts'
import type { Level } from '#build/steps/step.ts'
import { copyCheckout } from '#build/twice.ts'
import { LAB_MAC } from '#test/support/server/lab.ts'
import { openIso, unpackBoard } from '#test/support/vm/built-images.ts'
import { openMachine, type PxeLab, startBootLab, waitForEnd } from '#test/support/vm/pxe-flash.ts'
import type { Qemu } from '#test/support/vm/qemu.ts'
import { makeStoryImages } from '#test/support/vm/snapshot/story-images.ts'
import { type Artifacts, makeArtifacts, weigh, weighKernel } from './boot/boot-artifacts.ts'
import { judgeParts, listExceeded, type MeasuredBoot } from './boot/boot-budgets.ts'
import {
  bootBoard,
  type Booted,
  bootOurs,
  bootPeer,
  bootPoor,
  bootStick,
  HANDED_OVER,
} from './boot/boot-cases.ts'
import * as table from './boot/boot-table.ts'
import { KERNEL_LINE, PATIENCE } from './boot/boot-watch.ts'
import { publishText } from './publish.ts'

interface UndisturbedClock extends Disposable {
  /** Seconds between two moments (milliseconds since the epoch), as they would have gone by on a host of its own. */
  between(from: number, to: number): number
}

interface Sample {
  readonly at: number
  /** Milliseconds for which the machine's processor has waited for one of the host's so far. */
  readonly waited: number
}

const SAMPLE_MS = 100

/** `pid`: of QEMU with one processor, which is its thread that has run for longest. */
function startUndisturbedClock(pid: number): UndisturbedClock {
  const samples: Sample[] = []
  const take = () => {
    const waited = readWaited(pid)
    if (waited !== null) samples.push({ at: Date.now(), waited })
  }
  take()
  const timer = setInterval(take, SAMPLE_MS)
  return {
    between: (from, to) => (to - from - (waitedAt(samples, to) - waitedAt(samples, from))) / 1000,
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

/** The wait grows evenly between two samples. */
function waitedAt(samples: readonly Sample[], at: number): number {
  const next = samples.findIndex((sample) => sample.at >= at)
  const [before, after] = [samples[next - 1], samples[next]]
  if (after === undefined) return samples.at(-1)?.waited ?? 0
  if (before === undefined) return after.waited
  const part = (at - before.at) / (after.at - before.at)
  return before.waited + part * (after.waited - before.waited)
}

/** `schedstat` has nanoseconds of running, and of waiting for a processor. Null: the machine has ended. */
function readWaited(pid: number): number | null {
  try {
    const folder = `/proc/${pid}/task`
    const threads = readdirSync(folder).map((thread) =>
      readFileSync(`${folder}/${thread}/schedstat`, 'latin1').split(' ').map(Number),
    )
    const [longest] = threads.toSorted(([a = 0], [b = 0]) => b - a)
    return (longest?.[1] ?? 0) / 1e6
  } catch {
    return null
  }
}

const ANSWERS = 20
const FIRST_WORDS = /flasher: boot system/
/** What of the waterfall begins and ends a part. */
const RunSchema = z.object({
  waterfall: z.object({
    bars: z.array(z.object({ part: z.string(), from: z.string(), to: z.string() })),
  }),
})
type Bars = z.infer<typeof RunSchema>['waterfall']['bars']

/** `image`: the path of one that the machine is flashed with. */
async function bootInParts(image: string): Promise<MeasuredBoot> {
  await using lab = await startBootLab({ images: [image] })
  const pxe = await openMachine(lab, basename(image))
  await pxe.bind()
  const script = await timeScript(pxe)
  await using machine = await pxe.start('bios-rom')
  using clock = startUndisturbedClock(machine.pid)
  const { kernel, init, firstWords, handedOver } = await listen(machine)
  await waitForEnd(machine)
  const [{ id } = { id: '' }] = await pxe.readRuns()
  const { bars } = RunSchema.parse(await lab.ask(`/machines/${LAB_MAC}/runs/${id}`)).waterfall
  const at = (part: string, end: 'from' | 'to') => Date.parse(findBar(bars, part)[end])
  const bar = (part: string) => clock.between(at(part, 'from'), at(part, 'to'))
  return {
    yardstick: clock.between(kernel, init),
    script,
    kernel: bar('kernel'),
    initrd: clock.between(at('live', 'from'), firstWords),
    root: clock.between(firstWords, handedOver),
    live: clock.between(handedOver, at('live', 'to')),
    plan: bar('plan'),
    'first-byte': bar('started'),
  }
}

function findBar(bars: Bars, part: string) {
  const bar = bars.find((each) => each.part === part)
  if (bar !== undefined) return bar
  throw new Error(`the run has no part ${part}: ${bars.map((each) => each.part).join(', ')}`)
}

/** When it said what, in milliseconds since the epoch as the server counts them. */
async function listen(machine: Qemu) {
  const said = await machine.waitFor(KERNEL_LINE, PATIENCE)
  const init = Date.now()
  const kernel = init - Number(KERNEL_LINE.exec(said)?.[1]) * 1000
  await machine.waitFor(FIRST_WORDS, PATIENCE)
  const firstWords = Date.now()
  await machine.waitFor(HANDED_OVER, PATIENCE)
  return { kernel, init, firstWords, handedOver: Date.now() }
}

/** The least of some answers for another machine, in seconds: the first loads what the others find. */
async function timeScript({ lab }: PxeLab): Promise<number> {
  const other = `${lab.url}/pxe/52:54:00:12:34:99`
  const seconds: number[] = []
  for (let answer = 0; answer < ANSWERS; answer += 1) {
    const before = performance.now()
    await (await fetch(other)).text()
    seconds.push((performance.now() - before) / 1000)
  }
  return Math.min(...seconds)
}

const CHANGED = 'runtime/kit/net/rules/mac.ts'

/** Seconds. Packages are fetched anew, the cache is removed at the end. */
async function measureBuilds(level: Level, say: (line: string) => void) {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-bench-build-'))
  try {
    const checkout = join(folder, 'checkout')
    copyCheckout(CHECKOUT, checkout)
    const env = {
      ...process.env,
      FLASHER_BUILD_CACHE: join(folder, 'cache'),
      SOURCE_DATE_EPOCH: String(readEpoch(CHECKOUT, 'dev', process.env)),
    }
    const build = async () => {
      const start = performance.now()
      const argv = ['build/images.ts', '--level', level]
      const child = spawn(process.execPath, argv, {
        cwd: checkout,
        env,
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      child.stdout.setEncoding('utf8').on('data', (text: string) => say(text.trimEnd()))
      await once(child, 'close')
      if (child.exitCode !== 0) throw new Error(`build:images ended with ${child.exitCode}`)
      return (performance.now() - start) / 1000
    }
    const cold = await build()
    await appendFile(join(checkout, CHANGED), '\nexport const changedForTheBenchmark = true\n')
    return { cold, warm: await build() }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const PARTS = ['boots', 'budgets', 'board', 'builds'] as const
/** MiB: room for both, and the least that is promised. */
const ROOMY = 2048
const LEAST = { network: 384, stick: 320 } as const
/** MiB, with which no boot gets as far as the live system. */
const POOR = [256, 200, 160] as const

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '3' },
    parts: { type: 'string', default: 'boots' },
    level: { type: 'string', default: 'release' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(`pnpm bench:boot [--runs 3] [--parts ${PARTS.join(',')}] [--level release] [--write]

boots    sizes, and boots in software emulation beside dracut's initrd (some 10 minutes)
budgets  each part of a boot that is ours, up to the first byte on the disk, beside its budget, at level dev (some
         minutes); exit code 1: one of them took longer
board    the board image beside the ISO, both by UEFI, at level dev (some 10 minutes)
builds   build:images from nothing, then after a change of a program (some 10 minutes)

--write puts the tables of boots and builds into docs/performance.md. Needs root and what build:images needs.`)
  process.exit(0)
}
if (process.geteuid?.() !== 0) {
  console.error('bench:boot builds images: run it as root')
  process.exit(3)
}
const level = values.level === 'dev' ? 'dev' : 'release'
const wanted = (part: (typeof PARTS)[number]) => values.parts.split(',').includes(part)
const note = (line: string) => console.error(line)

if (wanted('boots')) {
  await using artifacts = await makeArtifacts(level, note)
  report('boot', await measureBoots(artifacts))
}
if (wanted('budgets')) console.log((await measureBudgets()).join('\n\n'))
if (wanted('board')) console.log((await measureBoard()).join('\n\n'))
if (wanted('builds')) {
  const { cold, warm } = await measureBuilds(level, note)
  const rows = [
    { name: 'from nothing, packages fetched', seconds: cold, mostMinutes: 8 },
    { name: 'after a change in `runtime/`', seconds: warm, mostMinutes: 1.25 },
  ]
  report('build', [table.renderBuilds(rows)])
}

function report(name: string, texts: readonly string[]) {
  const text = texts.join('\n\n')
  console.log(text)
  if (!values.write) return
  publishText(name, text)
}

async function measureBoots(artifacts: Artifacts): Promise<readonly string[]> {
  const runs = Number(values.runs)
  const pairs: table.Pair[] = []
  for (let run = 0; run < runs; run += 1) {
    const ours = await tell('ours', bootOurs(artifacts, ROOMY))
    pairs.push({ ours, peer: await tell('dracut', bootPeer(artifacts, ROOMY)) })
  }
  const stick = await tell('stick', bootStick(artifacts.iso, 'bios', ROOMY))
  const least = await tell('network, least memory', bootOurs(artifacts, LEAST.network))
  const leastStick = await tell(
    'stick, least memory',
    bootStick(artifacts.iso, 'bios', LEAST.stick),
  )
  const poor = []
  for (const megabytes of POOR) {
    poor.push({ megabytes, says: await bootPoor(artifacts, megabytes) })
  }
  return [
    table.renderWeights(weighAll(artifacts)),
    `Boots: median of ${runs} runs by turns for the network with ${ROOMY} MiB, one each for the rest.`,
    table.renderBoots([
      { name: 'network', megabytes: ROOMY, boots: pairs.map(({ ours }) => ours) },
      { name: 'network, by dracut', megabytes: ROOMY, boots: pairs.map(({ peer }) => peer) },
      { name: 'network', megabytes: LEAST.network, boots: [least] },
      { name: 'fresh stick, BIOS', megabytes: ROOMY, boots: [stick] },
      { name: 'fresh stick, BIOS', megabytes: LEAST.stick, boots: [leastStick] },
    ]),
    table.renderRatios(pairs),
    table.renderPoor(poor),
  ]
}

/** Says which parts are over their budget; the bench ends with 1 then. */
async function measureBudgets(): Promise<readonly string[]> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-bench-boot-'))
  const { small } = await makeStoryImages(folder.path)
  const boots: MeasuredBoot[] = []
  for (let run = 0; run < Number(values.runs); run += 1) {
    const boot = await bootInParts(small.packed)
    note(`parts: ${JSON.stringify(boot)}`)
    boots.push(boot)
  }
  const judged = judgeParts(boots)
  for (const sentence of listExceeded(judged)) {
    note(sentence)
    process.exitCode = 1
  }
  return [table.renderBudgets(judged)]
}

/** The firmware's own time is not counted. */
async function measureBoard(): Promise<readonly string[]> {
  const iso = await openIso()
  await using board = await unpackBoard()
  const pairs: table.Pair[] = []
  for (let run = 0; run < Number(values.runs); run += 1) {
    const peer = await tell('ISO', bootStick(iso, 'uefi', ROOMY))
    pairs.push({ ours: await tell('board', bootBoard(board.path, ROOMY)), peer })
  }
  return [
    table.renderBoots([
      { name: 'ISO on a stick, UEFI', megabytes: ROOMY, boots: pairs.map(({ peer }) => peer) },
      { name: 'board image, UEFI', megabytes: ROOMY, boots: pairs.map(({ ours }) => ours) },
    ]),
    table.renderBoardRatio(pairs),
  ]
}

async function tell(name: string, boot: Promise<Booted>): Promise<Booted> {
  const done = await boot
  const { rootSeconds, promptSeconds, peakMib, freeMib } = done
  const seconds = `root ${rootSeconds.toFixed(1)} s, prompt ${promptSeconds.toFixed(1)} s`
  note(`${name}: ${seconds}, QEMU ${peakMib.toFixed(0)} MiB, free ${freeMib.toFixed(0)} MiB`)
  return done
}

function weighAll({ trio, iso, ipxe, peer }: Artifacts): readonly table.Weight[] {
  const all = weighKernel(trio) + weigh(trio.squashfs)
  return [
    { name: '`…vmlinuz`', bytes: weigh(trio.kernel), mostMb: null },
    { name: '`…initrd`', bytes: weigh(trio.initrd), mostMb: 14 },
    { name: '`…squashfs`', bytes: weigh(trio.squashfs), mostMb: 120 },
    { name: 'the three together', bytes: all, mostMb: 150 },
    { name: '`….iso`', bytes: weigh(iso), mostMb: 189 },
    { name: '`….efi`', bytes: weigh(ipxe), mostMb: null },
    { name: "dracut's initrd, for comparison", bytes: weigh(peer.initrd), mostMb: null },
  ]
}
