/** Reads block devices from /sys: how they are stacked, their sizes, their queues, what backs a loop device. */
import { readdir, readFile, realpath, stat, statfs } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { SysBlock } from './rules/sightings.ts'
import type { LoopBacking } from './rules/disk.ts'
import { Fault } from '#kit/foundation/fault.ts'
import type { Members } from './rules/mount-map.ts'

export type SysFacts = Awaited<ReturnType<typeof readSysFacts>>

const SECTOR = 512

/** With a number: hidden paths of NVMe multipath have none. */
export async function listBlocks(sys: string): Promise<readonly SysBlock[]> {
  const folder = join(sys, 'class/block')
  const names = await readdir(folder).catch((cause: unknown) => {
    throw new Fault('tool-missing', `${folder} cannot be read`, {
      hint: 'Mount it: mount -t sysfs sysfs /sys',
      cause,
    })
  })
  const blocks = await Promise.all(names.map((name) => readBlock(join(folder, name), name)))
  return blocks.filter((block) => block !== null)
}

/** A partition's queue and serial come from its disk. */
export async function readSysFacts(
  sys: string,
  { name, partition }: Pick<SysBlock, 'name' | 'partition'>,
) {
  const own = join(sys, 'class/block', name)
  const disk = join(sys, 'class/block', partition?.of ?? name)
  const [size, sector, diskseq, writeZeroesMaxBytes, discardMaxBytes] = await Promise.all([
    readNumber(own, 'size'),
    readNumber(disk, 'queue/logical_block_size'),
    readNumber(disk, 'diskseq'),
    readNumber(disk, 'queue/write_zeroes_max_bytes'),
    readNumber(disk, 'queue/discard_max_bytes'),
  ])
  const [ownReadonly, diskReadonly, serial, deviceSerial, dmUuid, loop] = await Promise.all([
    readText(own, 'ro'),
    readText(disk, 'ro'),
    readText(disk, 'serial'),
    readText(disk, 'device/serial'),
    readText(disk, 'dm/uuid'),
    readLoopBacking(disk),
  ])
  return {
    sizeBytes: size * SECTOR,
    sectorBytes: sector || SECTOR,
    readonly: ownReadonly === '1' || diskReadonly === '1',
    diskseq: diskseq || null,
    serial: serial ?? deviceSerial,
    dmUuid,
    zeros: { loop, writeZeroesMaxBytes, discardMaxBytes },
  }
}

/** statfs types that can zero a file in place: ext4, XFS, btrfs (fallocate(2)). */
const ZEROES_IN_PLACE: readonly number[] = [0xef53, 0x58465342, 0x9123683e]
/** stat counts blocks of this size. */
const STAT_BLOCK = 512

async function readLoopBacking(disk: string): Promise<LoopBacking | null> {
  if ((await list(disk, 'loop')).length === 0) return null
  const path = (await readLine(disk, 'loop/backing_file')) ?? ''
  // Skips deleted files, and those that only another mount namespace sees.
  const [file, system] = await Promise.all([
    stat(path).catch(() => null),
    statfs(path).catch(() => null),
  ])
  if (file === null || system === null || !ZEROES_IN_PLACE.includes(system.type)) return 'sparse'
  return file.isFile() && file.blocks * STAT_BLOCK >= file.size ? 'allocated' : 'sparse'
}

export async function listBtrfs(sys: string): Promise<readonly Members[]> {
  const folder = join(sys, 'fs/btrfs')
  const found = await Promise.all(
    (await list(folder)).map(async (id) => ({ id, devices: await list(folder, id, 'devices') })),
  )
  return found.filter(({ devices }) => devices.length > 0)
}

async function readBlock(folder: string, name: string): Promise<SysBlock | null> {
  const [dev, isPartition, holders, backing] = await Promise.all([
    readText(folder, 'dev'),
    readText(folder, 'partition'),
    list(folder, 'holders'),
    readLine(folder, 'loop/backing_file'),
  ])
  if (dev === null) return null
  if (isPartition === null) return { name, dev, partition: null, holders, backing }
  const partition = await readPartitionRange(folder)
  return partition === null ? null : { name, dev, partition, holders, backing }
}

/** Null: it went away meanwhile. */
async function readPartitionRange(folder: string) {
  const [real, start, size] = await Promise.all([
    realpath(folder).catch(() => null),
    readNumber(folder, 'start'),
    readNumber(folder, 'size'),
  ])
  return real === null ? null : { of: basename(dirname(real)), start, end: start + size }
}

/** Removes only the newline; null: absent or empty. */
async function readLine(...path: readonly string[]): Promise<string | null> {
  // Most attributes exist for some kinds of devices only.
  const text = await readFile(join(...path), 'utf8').catch(() => '')
  return text.replace(/\n$/, '') || null
}

export const readText = async (...path: readonly string[]) =>
  (await readLine(...path))?.trim().slice(0, 4096) || null

const list = (...path: readonly string[]): Promise<readonly string[]> =>
  readdir(join(...path)).catch(() => [])

/** 0: absent, or no number. */
async function readNumber(...path: readonly string[]): Promise<number> {
  const number = Number(await readText(...path))
  return Number.isSafeInteger(number) && number > 0 ? number : 0
}
