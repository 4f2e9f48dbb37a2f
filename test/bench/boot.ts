/** pnpm bench:boot: what the images weigh, and how long and with how much memory they boot beside dracut's initrd. */
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { makeStoryImages } from '#test/support/vm/snapshot/story-images.ts'
import { openIso, unpackBoard } from '#test/support/vm/built-images.ts'
import { makeArtifacts, weigh, weighKernel, type Artifacts } from './boot/boot-artifacts.ts'
import { judgeParts, listExceeded, type MeasuredBoot } from './boot/boot-budgets.ts'
import { measureBuilds } from './boot/boot-builds.ts'
import {
  bootBoard,
  bootOurs,
  bootPeer,
  bootPoor,
  bootStick,
  type Booted,
} from './boot/boot-cases.ts'
import { bootInParts } from './boot/boot-parts.ts'
import * as table from './boot/boot-table.ts'
import { publishText } from './publish.ts'

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
