/** What goes wrong on the way, and in which words the run and in which state the disk ends. */
import { execFileSync } from 'node:child_process'
import { open, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import {
  createStories,
  NVME,
  SLOW,
  slowDown,
  USB,
  VIRTIO,
  waitForBytes,
  type StoryRow,
} from '#test/support/vm/snapshot/told-stories.ts'
import {
  changeMiddle,
  readContent,
  type StoryImages,
} from '#test/support/vm/snapshot/story-images.ts'
import { openStory, type Story } from '#test/support/vm/snapshot/story.ts'
import { waitUntil } from '#test/support/waiting.ts'

const stories = createStories('stories of faults')

/** Until a slow disk is full, ten times what a free machine needs. */
const PATIENCE_MS = 300_000
const ORDER = { boot_mode: 'flasher-flash-once', target_disk_serial: VIRTIO.serial }

async function cutCable({ machine }: Story, seconds: number) {
  await machine.setCable(false)
  await machine.require(`sleep ${seconds}`)
  await machine.setCable(true)
}

/** Its digest in the catalog stays: neither size nor time tells that the file is another one by now. */
async function rotInCache({ lab }: Story, image: string) {
  const path = join(lab.folder, 'state/cache', image)
  await waitUntil(
    async () => ImagesSchema.parse(await lab.ask('/images')).some(isKnown(image)),
    () => `the cache does not know the digest of ${image}`,
  )
  const { mtimeNs } = await stat(path, { bigint: true })
  {
    await using file = await open(path, 'r+')
    await file.write(changeMiddle(await readFile(path)), 0, undefined, 0)
  }
  const at = [mtimeNs / SECOND, String(mtimeNs % SECOND).padStart(9, '0')].join('.')
  execFileSync('touch', [`--date=@${at}`, path])
}

/** In nanoseconds, which `utimes` of Node does not keep. */
const SECOND = 1_000_000_000n
const ImagesSchema = z.array(z.object({ name: z.string(), sha_short: z.string().nullable() }))
const isKnown = (image: string) => (row: z.infer<typeof ImagesSchema>[number]) =>
  row.name === image && row.sha_short !== null

/** The server is away until the whole image is on the disk. */
async function missTheEnd({ lab, fileOf }: Story, images: StoryImages) {
  await lab.stopServer()
  await waitUntil(
    async () => (await readContent(fileOf(VIRTIO.name), images.small)) === 'image',
    () => 'the machine does not go on without its server',
    PATIENCE_MS,
  )
  await lab.startServer()
}

const FAILING: readonly StoryRow[] = [
  ...[VIRTIO, NVME, USB].map((disk): StoryRow => ({
    title: `${disk.bus}: writes that fail from the middle on leave nothing that boots`,
    disks: [{ ...disk, failsAt: 30_000 }],
    result: 'failed',
    reason: /write error at byte/,
    content: ['blank'],
  })),
  {
    title: 'a disk of which no write succeeds is as it was',
    disks: [{ ...VIRTIO, failsAt: 'everywhere' }],
    result: 'failed',
    reason: /write error|the disk rejected a write/,
    content: ['used'],
  },
  {
    title: 'a disk that cannot be read back is not called flashed',
    disks: [{ ...NVME, readsFailAt: 30_000 }],
    result: 'failed',
    reason: /read error at byte/,
    content: ['blank'],
  },
  {
    title: 'a counterfeit disk that keeps nothing is found out',
    disks: [{ ...USB, is: 'counterfeit' }],
    result: 'failed',
    reason: /does not return what was written/,
    content: ['used'],
  },
  {
    title: 'a disk that is write-protected is left to a person, with the reason',
    disks: [{ ...VIRTIO, is: 'write-protected' }],
    result: 'wizard',
    reason: /The disk VIRTIO0001 is read-only/,
    content: ['used'],
  },
  ...[SLOW, slowDown(NVME), slowDown(USB)].map((disk): StoryRow => ({
    title: `${disk.bus}: a disk that is pulled out ends the run`,
    disks: [disk],
    async during(story) {
      await waitForBytes(story)
      await story.machine.pull(disk.name)
    },
    result: 'failed',
    // Which one it is depends on how far the kernel is with taking the disk away.
    reason: /(the disk is gone|write error|read error) at byte|the disk rejected a write/,
    content: ['blank'],
  })),
]

const IMAGES: readonly StoryRow[] = [
  {
    title: 'an image with a wrong byte ends the run, and nothing boots',
    disks: [VIRTIO],
    image: 'damaged',
    result: 'failed',
    content: ['blank'],
  },
  {
    title: 'an image that rots in the cache has the wrong digest, and nothing boots',
    disks: [NVME],
    image: 'raw',
    before: (story) => rotInCache(story, 'raw.img'),
    result: 'failed',
    reason: /is not the expected image: its sha256 is [0-9a-f]{64}, not [0-9a-f]{64}/,
    content: ['blank'],
  },
  {
    title:
      'an image that turns out to be larger than the disk: the disk is full, and nothing boots',
    disks: [{ ...VIRTIO, megabytes: 16 }],
    image: 'unsized',
    result: 'failed',
    reason: /is larger than .*: the disk ends at byte 16777216/,
    content: ['blank'],
  },
]

const NETWORK: readonly StoryRow[] = [
  {
    title: 'the cache is away in mid-flash: the flash goes on where it was',
    disks: [SLOW],
    async during(story) {
      await waitForBytes(story)
      await story.lab.stopCache()
      await story.machine.require('sleep 2')
      await story.lab.startCache()
    },
    result: 'done',
    content: ['image'],
  },
  {
    title: 'a cable that is cut in mid-flash and mended: the flash goes on',
    disks: [SLOW],
    async during(story) {
      await waitForBytes(story)
      await cutCable(story, 5)
    },
    result: 'done',
    content: ['image'],
  },
  {
    title: 'a cable that is cut before the plan and mended: the machine waits for its server',
    disks: [NVME],
    during: (story) => cutCable(story, 5),
    result: 'done',
    content: ['image'],
  },
]

for (const row of [...FAILING, ...IMAGES, ...NETWORK]) stories.tellRow(row)

stories.tell(
  'secure: the server is away to the end, and hears of it after all',
  async (context) => {
    const { lab, images } = context
    const machine = { ...ORDER, image: images.small.packed }
    await using story = await openStory(lab, { firmware: 'secure', disks: [SLOW], machine })
    await story.begin()
    await waitForBytes(story)
    await missTheEnd(story, images)
    const { result, verified } = await story.waitForEnd()
    assert.equal([result, verified], ['done', true])
  },
)

stories.tell('secure: a power cut in mid-flash, and the next boot flashes it', async (context) => {
  const { lab, images } = context
  const machine = { ...ORDER, image: images.small.packed }
  let disk: string
  {
    await using story = await openStory(lab, { firmware: 'secure', disks: [SLOW], machine })
    disk = story.fileOf(VIRTIO.name)
    await story.begin()
    await waitForBytes(story)
  }
  assert.is(await readContent(disk, images.small), 'blank')
  await using story = await openStory(lab, { firmware: 'secure', disks: [VIRTIO], machine: null })
  await story.begin()
  await story.waitForRun(({ result }) => result === 'done')
  const [last, first] = await story.readRuns()
  assert.equal([last?.result, first?.result], ['done', 'lost'])
  assert.is(await readContent(story.fileOf(VIRTIO.name), images.small), 'image')
})

stories.start()
