/** Captures the disk of a layout, unpacks its image, and counts what was lost and what was left out. */
import { mkdtempDisposable, open, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openCapture, runCapture, toFile } from '#engine/capture/capturer.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { SCRATCH } from '#test/support/scratch.ts'
import { run } from '../lived/volume.ts'
import {
  isClear,
  type Layout,
  mayBeFreed,
  type PartPlan,
  planLayout,
  renderLayout,
  TYPES,
} from './layout.ts'
import { makeTemplates, SECTOR, type Template } from './templates.ts'

/** Behind the last partition. */
const MIB = 1 << 20
const END = 20 * MIB

interface Placed {
  readonly plan: PartPlan
  readonly offset: number
  readonly bytes: number
  /** What lies there from its start. */
  readonly content: Buffer
}

interface LayoutDisk {
  readonly bytes: number
  /** One for each sector; 1: it need not be in the image. */
  readonly free: Uint8Array
}

async function makeLayoutDisk(
  path: string,
  layout: Layout,
  templates: ReadonlyMap<string, Template>,
): Promise<LayoutDisk> {
  const placed = place(layout, templates)
  const last = placed.at(-1)
  const bytes =
    last === undefined ? 0 : last.offset + last.bytes + (layout.table === 'none' ? 0 : END)
  const disk = Buffer.alloc(bytes)
  // Something in every gap.
  const noise = makeNoise(4096, layout.seed)
  if (layout.table !== 'none') for (let at = 0; at < bytes; at += 64 * 1024) noise.copy(disk, at)
  for (const { content, offset, bytes: length } of placed) {
    disk.fill(0, offset, offset + length)
    content.copy(disk, offset, 0, Math.min(content.length, length))
  }
  await writeFile(path, disk)
  if (layout.table !== 'none') await writeTable(path, layout, placed)
  await twist(path, layout, bytes)
  return { bytes, free: markFree(layout, placed, templates, bytes) }
}

function place(layout: Layout, templates: ReadonlyMap<string, Template>): readonly Placed[] {
  const placed: Placed[] = []
  let at = 0
  for (const [index, plan] of layout.parts.entries()) {
    const before = placed.at(-1)
    const content = fill(plan, before, templates, layout.seed + index)
    const offset = layout.table === 'none' ? 0 : at + plan.gap * MIB
    const wanted = content.length - plan.cut * SECTOR
    const bytes = plan.cut > 0 ? wanted : Math.ceil(wanted / 4096) * 4096
    placed.push({ plan, offset, bytes, content })
    at = Math.ceil((offset + bytes) / MIB) * MIB
  }
  return placed
}

function fill(
  plan: PartPlan,
  before: Placed | undefined,
  templates: ReadonlyMap<string, Template>,
  seed: number,
): Buffer {
  const own = templates.get(plan.content)?.bytes ?? fillOther(plan, before, seed)
  return Buffer.concat([own, fillBehind(plan, own.length, templates, seed)])
}

function fillOther({ content }: PartPlan, before: Placed | undefined, seed: number): Buffer {
  if (content === 'zeros') return Buffer.alloc(4 * MIB)
  const noise = makeNoise(4 * MIB, seed)
  if (content === 'hashes') renderSuperblock(before?.bytes ?? 0).copy(noise)
  return noise
}

/** The superblock of dm-verity for so many bytes, in whole blocks. */
function renderSuperblock(bytes: number): Buffer {
  const block = Buffer.alloc(512)
  block.write('verity\0\0', 'latin1')
  block.writeUInt32LE(1, 8)
  block.writeUInt32LE(1, 12)
  block.fill(7, 16, 32)
  block.write('sha256', 32, 'latin1')
  block.writeUInt32LE(4096, 64)
  block.writeUInt32LE(4096, 68)
  block.writeBigUInt64LE(BigInt(Math.floor(bytes / 4096)), 72)
  return block
}

function fillBehind(
  { behind }: PartPlan,
  ownBytes: number,
  templates: ReadonlyMap<string, Template>,
  seed: number,
): Buffer {
  if (behind === 'nothing') return Buffer.alloc(0)
  if (behind === 'little') return makeNoise(4096, seed)
  if (behind === 'zeros') return Buffer.alloc(3 * MIB)
  if (behind === 'another') return templates.get('ext4')?.bytes ?? Buffer.alloc(0)
  const noise = makeNoise(3 * MIB, seed)
  if (behind === 'hashes') renderSuperblock(ownBytes).copy(noise)
  return noise
}

async function writeTable(path: string, { table, parts }: Layout, placed: readonly Placed[]) {
  const lines = placed.map(({ plan, offset, bytes }) => {
    const [guid, dos] = TYPES[plan.type]
    return `start=${offset / SECTOR}, size=${bytes / SECTOR}, type=${table === 'gpt' ? guid : dos}`
  })
  const input = `label: ${table}\n${lines.join('\n')}\n`
  await run({ input })`sfdisk --quiet --wipe=never --wipe-partitions=never ${path}`
  if (table === 'gpt') return
  for (const [index, { type }] of parts.entries()) {
    if (type === 'empty') await put(path, Buffer.alloc(1), 446 + 16 * index + 4)
  }
}

async function put(path: string, bytes: Buffer, offset: number) {
  await using file = await open(path, 'r+')
  await file.write(bytes, 0, bytes.length, offset)
}

async function twist(path: string, { twist: kind, table }: Layout, bytes: number) {
  if (kind === 'another-mbr') await put(path, entryOf(0x83, 1, bytes / SECTOR - 1), 446 + 48)
  if (kind === 'protective-alone') await put(path, entryOf(0xee, 1, 100), 446 + 48)
  if (kind === 'damaged') await put(path, Buffer.alloc(1, 0x11), table === 'gpt' ? 1024 : 446)
  if (kind === 'no-primary') await put(path, Buffer.alloc(512), table === 'gpt' ? 512 : 0)
  if (kind === 'optical-disc') await put(path, renderDisc(bytes), 16 * 2048)
  if (kind === 'backup-of-another') {
    const other = `${path}.other`
    await writeFile(other, '')
    await truncate(other, bytes)
    await run({ input: 'label: gpt\nstart=2048, size=8192\n' })`sfdisk --quiet ${other}`
    const header = (await readFile(other)).subarray(-SECTOR)
    await put(path, header, bytes - SECTOR)
  }
}

function entryOf(type: number, first: number, sectors: number): Buffer {
  const entry = Buffer.alloc(16)
  entry.writeUInt8(type, 4)
  entry.writeUInt32LE(first, 8)
  entry.writeUInt32LE(sectors, 12)
  return entry
}

/** The first two descriptors of an ISO 9660. */
function renderDisc(bytes: number): Buffer {
  const disc = Buffer.alloc(2 * 2048)
  disc.write('\u0001CD001\u0001', 'latin1')
  disc.write('DISC'.padEnd(32), 40, 'latin1')
  disc.writeUInt32LE(Math.floor(bytes / 2048), 80)
  disc.writeUInt16LE(2048, 128)
  disc.write('\u00ffCD001\u0001', 2048, 'latin1')
  return disc
}

function markFree(
  layout: Layout,
  placed: readonly Placed[],
  templates: ReadonlyMap<string, Template>,
  bytes: number,
): Uint8Array {
  const free = new Uint8Array(bytes / SECTOR)
  for (const [at, { plan, offset }] of placed.entries()) {
    const written = templates.get(plan.content)?.written
    if (written === undefined || !mayBeFreed(layout, at)) continue
    for (const [sector, mark] of written.entries()) free[offset / SECTOR + sector] = 1 - mark
  }
  if (layout.table !== 'none' && isClear(layout)) markGaps(free, placed, bytes)
  return free
}

/** Nothing points between the first and the last MiB of a large gap. */
function markGaps(free: Uint8Array, placed: readonly Placed[], bytes: number) {
  const ends = [...placed.slice(1).map(({ offset }) => offset), bytes]
  for (const [at, { offset, bytes: length }] of placed.entries()) {
    const [from, to] = [offset + length, ends[at] ?? bytes]
    if (to - from > 16 * MIB) free.fill(1, (from + MIB) / SECTOR, (to - MIB) / SECTOR)
  }
}

interface LayoutsResult {
  /** A line for each layout of which bytes were lost. */
  readonly lost: readonly string[]
  /** How many bytes of all disks are free, and were left out. */
  readonly freedBytes: number
}

/** Captures one disk for each seed. */
export async function captureLayouts(seeds: readonly number[]): Promise<LayoutsResult> {
  await using folder = await mkdtempDisposable(join(SCRATCH, 'flasher-layouts-'))
  const templates = await makeTemplates(folder.path)
  const lost: string[] = []
  let freedBytes = 0
  for (const seed of seeds) {
    const layout = planLayout(seed)
    const path = join(folder.path, 'disk')
    const disk = await makeLayoutDisk(path, layout, templates)
    await capture(path, `${path}.img.zst`)
    await run`zstd -qdf ${path}.img.zst -o ${path}.raw`
    const compared = await compare(path, `${path}.raw`, disk)
    if (compared.lost > 0) lost.push(`${renderLayout(layout)}: ${compared.lost} sectors`)
    freedBytes += compared.freed * SECTOR
    await rm(`${path}.img.zst`)
  }
  return { lost, freedBytes }
}

async function capture(path: string, output: string) {
  await using source = await createLoop({ backing: path })
  const { signal } = new AbortController()
  const order = { source: source.device, generalize: false }
  await using opened = await openCapture({ env: process.env, isRoot: true }, order, signal)
  const options = { level: 1, signal, onProgress: () => undefined }
  await runCapture(opened, toFile(output, process.env), options)
}

async function compare(path: string, copy: string, { bytes, free }: LayoutDisk) {
  await using one = await open(path)
  await using other = await open(copy)
  const [before, after, zeros] = [Buffer.alloc(MIB), Buffer.alloc(MIB), Buffer.alloc(SECTOR)]
  const count = { lost: 0, freed: 0 }
  for (let at = 0; at < bytes; at += MIB) {
    const { bytesRead } = await one.read(before, 0, MIB, at)
    await other.read(after, 0, MIB, at)
    if (before.compare(after, 0, bytesRead, 0, bytesRead) === 0) continue
    for (let from = 0; from < bytesRead; from += SECTOR) {
      const to = from + SECTOR
      if (before.compare(after, from, to, from, to) === 0) continue
      const isFreed = free[(at + from) / SECTOR] === 1 && zeros.compare(after, from, to) === 0
      count[isFreed ? 'freed' : 'lost'] += 1
    }
  }
  return count
}
