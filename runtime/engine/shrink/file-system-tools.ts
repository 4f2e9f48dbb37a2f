/** Shrinks the file system in a file with its own tools: ext with e2fsprogs, NTFS with ntfs-3g. */
import { open, stat, truncate } from 'node:fs/promises'
import type { Range } from '#engine/disk/rules/extents.ts'
import { hasOrphanFile } from '#engine/disk/rules/file-systems.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { needTools, type Shell } from '#kit/host/shell.ts'
import type { ReadBytes } from './content-comparison.ts'
import { compareExt, type LostTimes } from './ext-comparison.ts'
import { isTableApart } from './ntfs-comparison.ts'
import { renderTimes } from './rules/ext.ts'
import { planSize } from './rules/shrink-plan.ts'

export interface ShrinkOrder {
  readonly shell: Shell
  /** The partition as a file of its own, which may be lost. */
  readonly path: string
  /** The partition as it was. */
  readonly source: ReadBytes
  readonly first: Buffer
  readonly bytes: number
  readonly reservePercent: number
  readonly signal: AbortSignal
}

const SHRINK_TOOLS = {
  ext: ['e2fsck', 'resize2fs', 'tune2fs', 'dumpe2fs', 'debugfs'],
  ntfs: ['ntfsresize', 'ntfs-3g.probe'],
} as const

/** Each pass lets the next find a smaller least size. */
const MAX_PASSES = 5

type Shrunk = Result<number, string>

/** Its new size; refused with why it keeps its own, as a clause. The file has that size then. */
export async function shrinkExt(order: ShrinkOrder): Promise<Shrunk> {
  const { shell, path, first, bytes, reservePercent } = order
  await needTools(shell, SHRINK_TOOLS.ext)
  const problem = await findExtProblem(order)
  if (problem !== null) return refuse(problem)
  const isOrphaned = hasOrphanFile(first)
  // resize2fs 1.47.0 breaks that file: it is removed, then made again.
  const without = isOrphaned ? [['tune2fs', '-O', '^orphan_file', path]] : []
  const again = isOrphaned ? [['tune2fs', '-O', 'orphan_file', path]] : []
  const least = await shrinkToLeast(order, without)
  if (!least.ok) return least
  const target = planSize(least.value, reservePercent)
  if (target >= bytes) return refuse(FULL)
  await truncate(path, target)
  const failed =
    (await runSteps(order, [['resize2fs', path], ...again])) ??
    (await restoreTimes(order)) ??
    (await runSteps(order, [['e2fsck', '-f', '-n', path]]))
  return failed === null ? accept(target) : refuse(failed)
}

async function shrinkToLeast(
  order: ShrinkOrder,
  before: readonly (readonly string[])[],
): Promise<Shrunk> {
  const prepared = await runSteps(order, before)
  if (prepared !== null) return refuse(prepared)
  let least = Infinity
  for (let pass = 0; pass < MAX_PASSES; pass += 1) {
    const failed = await runSteps(order, [['resize2fs', '-M', order.path]])
    if (failed !== null) return refuse(failed)
    const { size } = await stat(order.path)
    if (size >= least) break
    least = size
  }
  return accept(least)
}

/** For one debugfs. */
const MAX_INODES = 10_000

/** resize2fs sets times of what gets another number, and of folders that name it. */
async function restoreTimes({ shell, path, source, signal }: ShrinkOrder): Promise<string | null> {
  const lost: LostTimes[] = []
  try {
    await using reader = await openReader(path)
    const found = await compareExt(source, reader.read, signal, lost)
    if (found !== null) return `resize2fs changes ${found}`
  } catch (thrown) {
    if (thrown instanceof RangeError) return 'it cannot be read'
    throw thrown
  }
  if (lost.length === 0) return null
  for (let at = 0; at < lost.length; at += MAX_INODES) {
    const some = lost.slice(at, at + MAX_INODES)
    const input = some.flatMap(({ inode, times }) => renderTimes(inode, times)).join('\n')
    // What it does not set is found where the whole image is compared.
    await shell.run(['debugfs', '-w', '-f', '-', path], { input: `${input}\n`, signal })
    signal.throwIfAborted()
  }
  return null
}

/** Nothing is repaired: what has errors stays as it is. */
async function findExtProblem({ shell, path, signal }: ShrinkOrder): Promise<string | null> {
  const run = async (...argv: readonly string[]) => {
    const ended = await shell.run(argv, { signal })
    signal.throwIfAborted()
    return ended
  }
  if ((await run('e2fsck', '-f', '-n', path)).exitCode !== 0) return 'e2fsck finds errors in it'
  const bad = await run('dumpe2fs', '-b', path)
  if (bad.exitCode !== 0 || bad.stdout.trim() !== '') return 'it has bad blocks'
  // resize2fs works only on what was just checked.
  const { exitCode } = await run('e2fsck', '-f', '-p', path)
  return exitCode > 1 ? 'e2fsck finds errors in it' : null
}

/** Why one of them failed, as a clause; null: none did. */
async function runSteps(
  { shell, signal }: ShrinkOrder,
  steps: readonly (readonly string[])[],
): Promise<string | null> {
  for (const argv of steps) {
    const { exitCode, stdout, stderr } = await shell.run(argv, { signal })
    signal.throwIfAborted()
    if (exitCode !== 0) return said(argv[0] ?? '', stderr.trim() || stdout)
  }
  return null
}

const FULL = 'it is full'

const said = (tool: string, words: string) => {
  const line = words.split('\n').findLast((text) => /\w/.test(text) && !/^\w+ \d/.test(text)) ?? ''
  return `${tool} cannot shrink it (${line.trim().slice(0, 200)})`
}

/** Twice: without a question. */
const NTFSRESIZE = ['ntfsresize', '--force', '--force', '--no-progress-bar'] as const

/** Its exit code says in which state an NTFS is. */
export async function probeNtfs(shell: Shell, path: string, signal: AbortSignal): Promise<number> {
  await needTools(shell, SHRINK_TOOLS.ntfs)
  const { exitCode } = await shell.run(['ntfs-3g.probe', '--readwrite', path], { signal })
  signal.throwIfAborted()
  return exitCode
}

/** Its state was probed before. */
export async function shrinkNtfs(order: ShrinkOrder): Promise<Shrunk> {
  const { shell, path, bytes, reservePercent } = order
  await needTools(shell, SHRINK_TOOLS.ntfs)
  const least = await readLeastNtfs(order)
  if (!least.ok) return least
  const target = planSize(least.value, reservePercent)
  if (target >= bytes) return refuse(FULL)
  const failed = await runSteps(order, [[...NTFSRESIZE, '--size', String(target), path]])
  if (failed !== null) return refuse(failed)
  await truncate(path, target)
  const unsound = await runSteps(order, [[...NTFSRESIZE, '--check', path]])
  return unsound === null ? accept(target) : refuse(unsound)
}

/** In bytes; refused with why it must not shrink. */
async function readLeastNtfs({ shell, path, signal }: ShrinkOrder): Promise<Shrunk> {
  const info = await shell.run(['ntfsresize', '--info', '--no-progress-bar', path], { signal })
  signal.throwIfAborted()
  const printed = info.stdout + info.stderr
  if (/scheduled for check/.test(printed)) return refuse('Windows wants to check it first')
  if (/Volume is full/i.test(printed)) return refuse(FULL)
  const [, least] = /^You might resize at (\d{1,16}) bytes/m.exec(printed) ?? []
  if (least === undefined) return refuse('ntfsresize finds errors in it')
  if (await hasTableApart(path)) return refuse('its file table lies in too many pieces')
  return accept(Number(least))
}

async function hasTableApart(path: string): Promise<boolean> {
  await using reader = await openReader(path)
  return await isTableApart(reader.read)
}

async function openReader(path: string) {
  const file = await open(path)
  return {
    async read({ offset, bytes }: Range): Promise<Buffer> {
      const into = Buffer.alloc(bytes)
      const { bytesRead } = await file.read(into, 0, bytes, offset)
      if (bytesRead < bytes) throw new RangeError('it ends early')
      return into
    },
    [Symbol.asyncDispose]: () => file.close(),
  }
}
