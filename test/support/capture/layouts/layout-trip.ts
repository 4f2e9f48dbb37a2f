/** Captures the disk of a layout, unpacks its image, and counts what was lost and what was left out. */
import { mkdtempDisposable, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { openCapture, runCapture, toFile } from '#engine/capture/capturer.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { SCRATCH } from '#test/support/scratch.ts'
import { run } from '../lived/volume.ts'
import { makeLayoutDisk, type LayoutDisk } from './layout-disk.ts'
import { planLayout, renderLayout } from './layout.ts'
import { makeTemplates, SECTOR } from './templates.ts'

const MIB = 1 << 20

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
