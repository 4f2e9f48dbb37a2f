/** Finds sticks with images, grows their images partition, and mounts it where images are expected. */
import { mkdir, open, readdir, readFile, realpath, stat, type FileHandle } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { IMAGES_PARTITION, LIVE_PATHS, VENTOY_FOLDER } from '#appliance/contract.ts'
import {
  BOOT_BYTES,
  type DiskSurroundings,
  type DiskWrite,
  type GrowablePartition,
  type KernelPartition,
  parseBootMedium,
  planTableGrowth,
  planVolumeGrowth,
  ROOT_OFFSET,
  TABLE_BYTES,
  type TableRefusal,
  type VolumeRefusal,
  type WholeDisk,
} from './rules/images-partition.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { isFolder } from '#kit/host/folders.ts'
import type { Shell } from '#kit/host/shell.ts'
import { readText } from './disks.ts'
import { chooseNames } from './rules/disk.ts'

/** In bytes of the volume; `writes`: what was written, in words. */
interface StickGrowth {
  readonly fromBytes: number
  readonly toBytes: number
  readonly writes: readonly string[]
}

export type Sticks = ReturnType<typeof createSticks>

const SECTOR = 512
const BLOCKS = '/sys/class/block'
/** udev rewrites odd characters in names; ours have none. */
const BY_LABEL = '/dev/disk/by-label'
/** A whole stick of which only a folder is wanted. */
const WHOLE = '/run/flasher/stick'
const OPTIONS = 'nosuid,nodev,noexec,noatime'

interface SticksDependencies {
  readonly shell: Shell
  readonly bootFacts: string
}

/** `bootFacts`: the file in which the boot has noted what it started from. */
export function createSticks({ shell, bootFacts }: SticksDependencies) {
  return {
    async inspect(): Promise<DiskSurroundings> {
      // Other kinds of boot leave no notes, and before udev there are no labels.
      const notes = await readFile(bootFacts, 'utf8').catch(() => '')
      const [parts, disks, labels] = await Promise.all([
        listBlocks(readPart),
        listBlocks(readDisk),
        listLinks(BY_LABEL),
      ])
      const byLabel = new Map(labels.map(({ name, node }) => [name, node]))
      return { medium: parseBootMedium(notes), parts, disks, labels: byLabel }
    },

    /** A Fault where the stick cannot grow; it stays usable. */
    async grow({ node, disk, number }: GrowablePartition): Promise<StickGrowth> {
      const sectorBytes = await readNumber(disk, 'queue/logical_block_size')
      if (sectorBytes !== SECTOR) {
        throw new Fault('plan-refused', `${disk} has sectors of ${sectorBytes} bytes`)
      }
      if ((await readNumber(disk, 'ro')) !== 0) {
        throw new Fault('write-failed', `${disk} is write-protected`)
      }
      const table = await growTable(disk)
      if (table.length > 0) await shell.require(['partx', '--update', '--nr', String(number), disk])
      const volume = await growVolume(node)
      return { ...volume, writes: [...table, ...volume.writes] }
    },

    /** Read-only, at `LIVE_PATHS.images`; Ventoy's folder where there is one. */
    async mount(node: string) {
      await mkdir(WHOLE, { recursive: true })
      await mkdir(LIVE_PATHS.images, { recursive: true })
      await shell.require(['mount', '-o', `ro,${OPTIONS}`, '--', node, WHOLE])
      const folder = join(WHOLE, VENTOY_FOLDER)
      const source = (await isFolder(folder)) ? folder : WHOLE
      await shell.require(['mount', '--bind', '--', source, LIVE_PATHS.images])
    },
  }
}

export const isOnStick = (folder: string): boolean =>
  folder === LIVE_PATHS.images || folder.startsWith(`${LIVE_PATHS.images}/`)

/** Read-only again once disposed of. Rejects with a Fault where `mount` fails. */
export async function unlockStick(shell: Shell): Promise<AsyncDisposable> {
  const remount = (mode: 'ro' | 'rw', kind: 'remount' | 'remount,bind', at: string) =>
    shell.require(['mount', '-o', `${kind},${mode},${OPTIONS}`, '--', at])
  await using undo = new AsyncDisposableStack()
  // Best effort: readers notice no difference.
  const lock = async (kind: 'remount' | 'remount,bind', at: string) =>
    void (await remount('ro', kind, at).catch(() => undefined))
  await remount('rw', 'remount', WHOLE)
  undo.defer(() => lock('remount', WHOLE))
  await remount('rw', 'remount,bind', LIVE_PATHS.images)
  undo.defer(() => lock('remount,bind', LIVE_PATHS.images))
  return undo.move()
}

async function listBlocks<Kind>(
  read: (name: string) => Promise<Kind | null>,
): Promise<readonly Kind[]> {
  const names = (await readdir(BLOCKS)).toSorted()
  const found = await Promise.all(names.map((name) => read(name)))
  return found.filter((each) => each !== null)
}

/** Null: no partition, or it goes while we look. */
async function readPart(name: string): Promise<KernelPartition | null> {
  try {
    const uevent = await readFile(join(BLOCKS, name, 'uevent'), 'utf8')
    const number = Number(/^PARTN=(\d+)$/m.exec(uevent)?.[1] ?? 0)
    if (number === 0) return null
    const whole = join(await realpath(join(BLOCKS, name)), '..')
    const label = /^PARTNAME=(.*)$/m.exec(uevent)?.[1] ?? null
    const isFixed = !(await isPlugged(whole))
    return { node: `/dev/${name}`, disk: `/dev/${basename(whole)}`, number, name: label, isFixed }
  } catch {
    return null
  }
}

/** Null: a partition, no hardware of its own (LVM, dm, md, loop), or it goes. */
async function readDisk(name: string): Promise<WholeDisk | null> {
  try {
    const whole = await realpath(join(BLOCKS, name))
    await stat(join(whole, 'device'))
    return { node: `/dev/${name}`, isFixed: !(await isPlugged(whole)) }
  } catch {
    return null
  }
}

/** On USB, in a card slot, or with a removable medium. `whole`: the disk's folder in sysfs. */
async function isPlugged(whole: string): Promise<boolean> {
  return (
    /\/usb\d+\//.test(whole) ||
    (await readText(whole, 'removable')) === '1' ||
    (await readText(whole, 'device/type')) === 'SD'
  )
}

async function growTable(disk: string): Promise<readonly string[]> {
  const diskBytes = (await readNumber(disk, 'size')) * SECTOR
  await using file = await openNode(disk)
  const growth = planTableGrowth(
    {
      head: await readAt(file, 0, TABLE_BYTES),
      tail: await readAt(file, diskBytes - TABLE_BYTES, TABLE_BYTES),
      diskBytes,
    },
    IMAGES_PARTITION.name,
  )
  if (!growth.ok) throw new Fault('plan-refused', `${disk}: ${REFUSALS[growth.refusal]}`)
  return await writeAll(file, growth.value.writes)
}

async function growVolume(node: string): Promise<StickGrowth> {
  const sectors = await readNumber(node, 'size')
  await using file = await openNode(node)
  const growth = planVolumeGrowth({
    boot: await readAt(file, 0, BOOT_BYTES),
    root: await readAt(file, ROOT_OFFSET, SECTOR),
    sectors,
  })
  if (!growth.ok) throw new Fault('plan-refused', `${node}: ${REFUSALS[growth.refusal]}`)
  const { fromBytes, toBytes, writes } = growth.value
  return { fromBytes, toBytes, writes: await writeAll(file, writes) }
}

const REFUSALS: Readonly<Record<TableRefusal | VolumeRefusal, string>> = {
  'no-table': 'the partition table is missing or damaged',
  'no-partition': `there is no partition ${IMAGES_PARTITION.name}`,
  'not-last': 'another partition follows the images partition',
  'disk-too-small': 'the partition table is of a larger disk',
  'not-ours': 'the images partition was formatted anew',
  'partition-too-small': 'the volume is larger than its partition',
}

/** `size` counts 512 bytes whatever the disk's sectors are. */
const readNumber = async (node: string, what: string) =>
  Number(await readFile(join(BLOCKS, basename(node), what), 'utf8'))

const openNode = (node: string) =>
  open(node, 'r+').catch((cause: unknown) => {
    throw new Fault('write-failed', `${node} cannot be written`, { cause })
  })

async function readAt(file: FileHandle, offset: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset)
  return buffer.subarray(0, bytesRead)
}

/** Each on the medium before the next; returns words. */
async function writeAll(
  file: FileHandle,
  writes: readonly DiskWrite[],
): Promise<readonly string[]> {
  for (const { offset, bytes } of writes) {
    for (let at = 0; at < bytes.length;) {
      at += (await file.write(bytes, at, bytes.length - at, offset + at)).bytesWritten
    }
    await file.datasync()
  }
  return writes.map(({ what }) => what)
}

async function listLinks(folder: string) {
  const names = await readdir(folder).catch(() => [])
  const links = await Promise.all(
    names.map(async (name) => ({ name, node: await realpath(join(folder, name)).catch(() => '') })),
  )
  return links.filter(({ node }) => node !== '')
}

export const readPathNames = async (
  folder = '/dev/disk/by-path',
): Promise<ReadonlyMap<string, string>> => chooseNames(await listLinks(folder))
