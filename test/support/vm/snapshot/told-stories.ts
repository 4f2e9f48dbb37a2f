/** Tells stories from tables: each row is a machine, an order and perhaps a fault, and what it leads to. */
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Lab } from '../../server/lab.ts'
import { findBuildObstacle } from '../built-images.ts'
import type { PluggedDisk } from './plugged-disk.ts'
import { SATA as SATA_DISK, type SnapshotFirmware } from './snapshot-machine.ts'
import {
  makeDamagedImage,
  makeNativeImage,
  makeStoryImage,
  readContent,
  type DiskContent,
  type StoryImage,
} from './story-images.ts'
import { openStory, startStoryLab, type Story, type StoryDisk, type StoryRun } from './story.ts'

/** `native`: made for sectors of 4096 bytes; `damaged`: it cannot be unpacked to its end. */
type ImageName = 'small' | 'native' | 'damaged'

export interface StoryRow {
  readonly title: string
  /** A BIOS when absent. */
  readonly firmware?: SnapshotFirmware
  /** The first one is meant, unless `target` says otherwise. */
  readonly disks: readonly [StoryDisk, ...StoryDisk[]]
  readonly target?: string
  /** `small` when absent. */
  readonly image?: ImageName
  /** Fields of the machine in place of those of a machine that is flashed once. */
  readonly machine?: Readonly<Record<string, unknown>>
  /** What happens once the machine is on its way. */
  readonly during?: (story: Story) => Promise<void>
  /** How the run ends; `wizard`: there is none, for the server leaves it to a person. */
  readonly result: 'done' | 'failed' | 'wizard'
  /** What the run, or the console, says of it. */
  readonly reason?: RegExp
  /** What the disks hold in the end, in their order. */
  readonly content: readonly DiskContent[]
  /** What else is so in the end. */
  readonly after?: (story: Story, run: Pick<StoryRun, 'disk'>) => Promise<void>
}

export const NVME = { name: 'nvme', bus: 'nvme', serial: 'NVME0001' } as const
export const VIRTIO = { name: 'virtio', bus: 'virtio', serial: 'VIRTIO0001' } as const
export const USB = { name: 'stick', bus: 'usb', serial: 'USB0001' } as const
export const SATA = { name: SATA_DISK.name, bus: 'sata' } as const
export const serialOf = (disk: StoryDisk): string =>
  disk.bus === 'sata' ? SATA_DISK.serial : (disk.serial ?? '')

/** Slow enough that something can happen before the end of a flash. */
export const SLOW: PluggedDisk = { ...VIRTIO, bytesPerSecond: 3_000_000 }

/** The machine has written some bytes, and not all. */
export const waitForBytes = async (story: Story): Promise<void> =>
  void (await story.waitForRun(({ result, bytes_written: bytes }) => result === null && bytes > 0))

interface StoryContext {
  lab: Lab
  images: Readonly<Record<ImageName, StoryImage>>
}

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 300
const MEGABYTES = 24
/** FLASHER_STORIES: of those whose names match alone, as `bios: NVMe`. */
const WANTED = new RegExp(process.env['FLASHER_STORIES'] ?? '')

/** A suite of stories, which share a lab. */
export function createStories(title: string) {
  const test = suite<StoryContext>(title)
  const obstacle = findBuildObstacle()
  if (obstacle !== null) console.log(`skipped: ${obstacle}`)
  const run = obstacle === null ? test : test.skip
  const undo = new AsyncDisposableStack()
  if (obstacle === null) {
    test.before(async (context) => {
      const folder = undo.use(await mkdtempDisposable(join(tmpdir(), 'flasher-stories-'))).path
      context.images = await makeImages(folder)
      const packed = Object.values(context.images).map((image) => image.packed)
      context.lab = undo.use(await startStoryLab(packed))
    })
    test.after(() => undo.disposeAsync())
  }
  const tell = (name: string, act: (context: StoryContext) => Promise<void>) =>
    WANTED.test(name) && run(name, act)
  return {
    /** Tells a story that no row describes. */
    tell,
    tellRow: (row: StoryRow) =>
      tell(`${row.firmware ?? 'bios'}: ${row.title}`, (context) => tellRow(row, context)),
    start: () => test.run(),
  }
}

async function makeImages(folder: string): Promise<StoryContext['images']> {
  const small = await makeStoryImage(folder, 'small.img', MEGABYTES)
  return {
    small,
    native: await makeNativeImage(folder, 'native.img', MEGABYTES),
    damaged: await makeDamagedImage(small, 'damaged.img.zst'),
  }
}

async function tellRow(row: StoryRow, { lab, images }: StoryContext): Promise<void> {
  const { firmware = 'bios', disks, target = serialOf(disks[0]) } = row
  const image = images[row.image ?? 'small']
  const order = { boot_mode: 'flasher-flash-once', target_disk_serial: target, ...row.machine }
  const machine = { image: image.packed, ...order }
  await using story = await openStory(lab, { firmware, disks, machine })
  await story.begin()
  await row.during?.(story)
  const ended = row.result === 'wizard' ? await waitForWizard(story) : await story.waitForEnd()
  judge(row, ended)
  const content = disks.map(({ name }) => readContent(story.fileOf(name), image))
  assert.equal(await Promise.all(content), row.content)
  await row.after?.(story, ended)
}

async function waitForWizard({ machine, readRuns }: Story) {
  const reason = await machine.waitFor(/flasher: wizard: [^\n]*\n/, PATIENCE)
  assert.equal(await readRuns(), [])
  return { result: 'wizard', reason, verified: null, disk: null }
}

type Ended = Pick<StoryRun, 'result' | 'reason' | 'verified'>

function judge({ result, reason }: StoryRow, ended: Ended): void {
  assert.is(ended.result, result, ended.reason ?? '')
  if (reason !== undefined) assert.match(ended.reason ?? '', reason)
  if (result === 'done') assert.is(ended.verified, true)
}
