/** What goes wrong on the way, and in which words the run and in which state the disk ends. */
import * as assert from 'uvu/assert'
import {
  createStories,
  SLOW,
  VIRTIO,
  waitForBytes,
  type StoryRow,
} from '../../support/vm/snapshot/told-stories.ts'
import { readContent } from '../../support/vm/snapshot/story-images.ts'
import { openStory, type Story } from '../../support/vm/snapshot/story.ts'

const stories = createStories('stories of faults')

async function cutCable({ machine }: Story, seconds: number) {
  await machine.setCable(false)
  await machine.require(`sleep ${seconds}`)
  await machine.setCable(true)
}

const ROWS: readonly StoryRow[] = [
  {
    title: 'writes that fail from the middle on leave nothing that boots',
    disks: [{ ...VIRTIO, failsAt: 30_000 }],
    result: 'failed',
    reason: /write error at byte/,
    content: ['blank'],
  },
  {
    title: 'a disk that is pulled out ends the run',
    disks: [SLOW],
    async during(story) {
      await waitForBytes(story)
      await story.machine.pull(SLOW.name)
    },
    result: 'failed',
    reason: /(the disk is gone|write error) at byte|the disk did not take what was written/,
    content: ['blank'],
  },
  {
    title: 'an image with a wrong byte ends the run, and nothing boots',
    disks: [VIRTIO],
    image: 'damaged',
    result: 'failed',
    content: ['blank'],
  },
  {
    title: 'the server is away in mid-flash, and hears of the end after all',
    disks: [SLOW],
    async during(story) {
      await waitForBytes(story)
      await story.lab.stopServer()
      await story.machine.require('sleep 5')
      await story.lab.startServer()
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
]

for (const row of ROWS) stories.tellRow(row)

stories.tell('bios: a power cut in mid-flash, and the next boot flashes it', async (context) => {
  const { lab, images } = context
  const machine = {
    boot_mode: 'flasher-flash-once',
    target_disk_serial: VIRTIO.serial,
    image: images.small.packed,
  }
  let disk: string
  {
    await using story = await openStory(lab, { disks: [SLOW], machine })
    disk = story.fileOf(VIRTIO.name)
    await story.begin()
    await waitForBytes(story)
  }
  assert.is(await readContent(disk, images.small), 'blank')
  await using story = await openStory(lab, { disks: [VIRTIO], machine: null })
  await story.begin()
  await story.waitForRun(({ result }) => result === 'done')
  const [last, first] = await story.readRuns()
  assert.equal([last?.result, first?.result], ['done', 'lost'])
  assert.is(await readContent(story.fileOf(VIRTIO.name), images.small), 'image')
})

stories.start()
