/** Tells stories from tables: each row is a machine, an order and perhaps a fault, and what it leads to. */
import { appendFile, mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { LIVE_PATHS } from '#appliance/contract.ts'
import type { Lab } from '#test/support/server/lab.ts'
import { findBuildObstacle } from '../built-images.ts'
import type { PluggedDisk } from './plugged-disk.ts'
import { SATA as SATA_DISK, type SnapshotFirmware } from './snapshot-machine.ts'
import {
  makeStoryImages,
  readContent,
  type DiskContent,
  type ImageName,
  type StoryImage,
  type StoryImages,
} from './story-images.ts'
import {
  openStory,
  startStoryLab,
  takeProcessorSeconds,
  type Story,
  type StoryDisk,
  type StoryRun,
} from './story.ts'

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
  /** What happens before the machine begins. */
  readonly before?: (story: Story, image: StoryImage) => Promise<void>
  /** What happens once the machine is on its way. */
  readonly during?: (story: Story) => Promise<void>
  /** How the run ends; `wizard`: there is none, for the server leaves it to a person. */
  readonly result: 'done' | 'failed' | 'wizard'
  /** What the run, or the console, says of it. */
  readonly reason?: RegExp
  /** What the disks hold in the end, in their order. */
  readonly content: readonly DiskContent[]
  /** What else is so in the end. */
  readonly after?: (story: Story, run: Pick<StoryRun, 'disk'>, image: StoryImage) => Promise<void>
}

export const NVME = { name: 'nvme', bus: 'nvme', serial: 'NVME0001' } as const
export const VIRTIO = { name: 'virtio', bus: 'virtio', serial: 'VIRTIO0001' } as const
export const USB = { name: 'stick', bus: 'usb', serial: 'USB0001' } as const
export const SATA = { name: SATA_DISK.name, bus: 'sata' } as const
export const serialOf = (disk: StoryDisk): string =>
  disk.bus === 'sata' ? SATA_DISK.serial : (disk.serial ?? '')

/** A disk so slow that something can happen before the end of a flash. */
export const slowDown = (disk: PluggedDisk): PluggedDisk => ({ ...disk, bytesPerSecond: 3_000_000 })
export const SLOW: PluggedDisk = slowDown(VIRTIO)

/** The machine has written some bytes, and not all. */
export const waitForBytes = async (story: Story): Promise<void> =>
  void (await story.waitForRun(({ result, bytes_written: bytes }) => result === null && bytes > 0))

interface StoryContext {
  lab: Lab
  images: StoryImages
}

const {
  FLASHER_STORIES: wanted = '',
  FLASHER_STORIES_FROM: from,
  FLASHER_STORIES_LOG: log,
} = process.env
/** FLASHER_STORIES: of those whose names match alone, as `bios: NVMe`. */
const WANTED = new RegExp(wanted)
/** FLASHER_STORIES_FROM=firmware: rows begin there, to be compared. */
const FROM = from === 'firmware' ? 'firmware' : 'snapshot'

/** A suite of stories, which share a lab. `env`: of its server and cache. */
export function createStories(title: string, env: Readonly<Record<string, string>> = {}) {
  const test = suite<StoryContext>(title)
  const obstacle = findBuildObstacle()
  if (obstacle !== null) console.log(`skipped: ${obstacle}`)
  const run = obstacle === null ? test : test.skip
  const undo = new AsyncDisposableStack()
  if (obstacle === null) {
    test.before(async (context) => {
      const folder = undo.use(await mkdtempDisposable(join(tmpdir(), 'flasher-stories-'))).path
      context.images = await makeStoryImages(folder)
      const packed = Object.values(context.images).map((image) => image.packed)
      context.lab = undo.use(await startStoryLab(packed, { env, from: FROM }))
    })
    test.after(() => undo.disposeAsync())
  }
  const tell = (name: string, act: (context: StoryContext) => Promise<void>) =>
    WANTED.test(name) && run(name, (context) => noteSeconds(name, () => act(context)))
  return {
    /** Tells a story that no row describes. */
    tell,
    tellRow: (row: StoryRow) =>
      tell(`${row.firmware ?? 'bios'}: ${row.title}`, (context) => tellRow(row, context)),
    start: () => test.run(),
  }
}

/** FLASHER_STORIES_LOG: a file that gets a line for each story: its name, its seconds, and QEMU's processor time. */
async function noteSeconds(name: string, act: () => Promise<void>): Promise<void> {
  const before = performance.now()
  takeProcessorSeconds()
  await act()
  if (log === undefined) return
  const seconds = [(performance.now() - before) / 1000, takeProcessorSeconds()]
  await appendFile(log, `${[name, ...seconds.map((each) => each.toFixed(1))].join('\t')}\n`)
}

async function tellRow(row: StoryRow, { lab, images }: StoryContext): Promise<void> {
  const { firmware = 'bios', disks, target = serialOf(disks[0]) } = row
  const image = images[row.image ?? 'small']
  const order = { boot_mode: 'flasher-flash-once', target_disk_serial: target, ...row.machine }
  const machine = { image: image.packed, ...order }
  await using story = await openStory(lab, { firmware, disks, machine, from: FROM })
  await row.before?.(story, image)
  await story.begin()
  await row.during?.(story)
  const ended = row.result === 'wizard' ? await waitForWizard(story) : await story.waitForEnd()
  judge(row, ended)
  const content = disks.map(({ name }) => readContent(story.fileOf(name), image))
  assert.equal(await Promise.all(content), row.content)
  await row.after?.(story, ended, image)
}

async function waitForWizard({ machine, readRuns }: Story) {
  const reason = await machine.require(
    `until grep 'wizard: ' ${LIVE_PATHS.status}; do sleep 0.2; done`,
  )
  assert.equal(await readRuns(), [])
  return { result: 'wizard', reason, verified: null, disk: null }
}

type Ended = Pick<StoryRun, 'result' | 'reason' | 'verified'>

function judge({ result, reason }: StoryRow, ended: Ended): void {
  assert.is(ended.result, result, ended.reason ?? '')
  if (reason !== undefined) assert.match(ended.reason ?? '', reason, ended.reason ?? 'no reason')
  if (result === 'done') assert.is(ended.verified, true)
}
