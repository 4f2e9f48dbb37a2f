/** What a machine is to do: each mode, what comes with an image, a place in line, a capture, and a person at the console. */
import { execFileSync } from 'node:child_process'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { readPartFile, ROOT_OFFSET, SEED_FOLDER } from '#test/support/disk/first-boot-image.ts'
import { checkFileSystem, readLastPartition, readSize } from '#test/support/disk/growing-images.ts'
import { LAB_MAC } from '#test/support/server/lab.ts'
import { waitForEnd } from '#test/support/vm/pxe-flash.ts'
import { changeMiddle, readContent } from '#test/support/vm/snapshot/story-images.ts'
import { openStory, type Story } from '#test/support/vm/snapshot/story.ts'
import {
  createStories,
  NVME,
  VIRTIO,
  type StoryRow,
} from '#test/support/vm/snapshot/told-stories.ts'

/** Disks are compared where that can be, and one machine is flashed at a time. */
const stories = createStories('stories of plans', {
  FLASHER_FLASH_DELTA: 'true',
  FLASHER_PXE_MAX_FLASHES: '1',
})

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 300
const MACHINE = `/machines/${LAB_MAC}`
const OTHER_MAC = '52:54:00:12:34:57'

const readScript = async ({ lab }: Story) => (await fetch(`${lab.url}/pxe/${LAB_MAC}`)).text()

const TEMPLATE = { hostname: 'web-{{label.rack}}', network: 'version: 2\nethernets: {}\n' }

async function setTemplate({ lab }: Story, labels: readonly string[]) {
  await lab.ask('/first-boot/web', TEMPLATE, 'PUT')
  const assign = { action: 'first-boot', macs: [LAB_MAC], parameters: { first_boot: 'web' } }
  await lab.ask('/machines/bulk', assign)
  const label = { action: 'label', macs: [LAB_MAC], parameters: { add: labels, remove: [] } }
  if (labels.length > 0) await lab.ask('/machines/bulk', label)
}

/** Another machine has the one place, until it says that it is done. */
async function waitInLine(story: Story) {
  const { lab } = story
  const { boot_mode, target_disk_serial, bty_image_ref } = OrderSchema.parse(await lab.ask(MACHINE))
  const order = { boot_mode, target_disk_serial, bty_image_ref }
  await lab.ask(`/machines/${OTHER_MAC}`, order, 'PUT')
  await fetch(`${lab.url}/pxe/${OTHER_MAC}`)
  const waiting = await story.begin().catch(String)
  assert.match(String(waiting), /waits: place 1 of 1, 1 is being flashed/)
  await fetch(`${lab.url}/pxe/${OTHER_MAC}/done`, { method: 'POST' })
}

const OrderSchema = z.object({
  boot_mode: z.string(),
  target_disk_serial: z.string(),
  bty_image_ref: z.string(),
})

const ROWS: readonly StoryRow[] = [
  {
    title: 'flashed always: the next boot flashes it again',
    disks: [NVME],
    machine: { boot_mode: 'flasher-flash-always' },
    result: 'done',
    content: ['image'],
    async after(story) {
      await waitForEnd(story.machine)
      assert.match(await readScript(story), /starts the live system/)
    },
  },
  {
    title: 'a machine that waits in line is flashed once it has its place',
    disks: [VIRTIO],
    before: waitInLine,
    result: 'done',
    content: ['image'],
  },
  {
    title: 'a disk that has nearly the same image gets only what differs',
    disks: [NVME],
    image: 'framed',
    async before({ fileOf }, { bytes }) {
      await using disk = await open(fileOf(NVME.name), 'r+')
      await disk.write(changeMiddle(bytes), 0, undefined, 0)
    },
    result: 'done',
    content: ['image'],
    async after(story, _, { bytes }) {
      const [run] = await story.readRuns()
      assert.is(run?.delta, 'compared')
      const kept = run?.bytes_kept ?? 0
      assert.ok(kept > bytes.length / 2 && kept < bytes.length, `${kept} bytes were kept`)
    },
  },
  {
    title: 'the last partition and its file system fill the disk',
    disks: [VIRTIO],
    image: 'growing',
    async before({ lab }) {
      const grow = { action: 'grow', macs: [LAB_MAC], parameters: { grow: true } }
      await lab.ask('/machines/bulk', grow)
    },
    result: 'done',
    content: ['other'],
    async after({ fileOf }) {
      const disk = fileOf(VIRTIO.name)
      const partition = await readLastPartition(disk)
      assert.ok(partition > 120 * 2 ** 20, `${partition} bytes`)
      assert.ok((await readSize(disk, 'ext4')) > partition - 2 ** 20)
      await checkFileSystem(disk, 'ext4')
    },
  },
  {
    title: 'a first-boot template is written with the image',
    firmware: 'secure',
    disks: [VIRTIO],
    image: 'cloud',
    before: (story) => setTemplate(story, ['rack-7']),
    result: 'done',
    content: ['other'],
    async after({ fileOf }) {
      const path = `${SEED_FOLDER}/user-data`
      const text = await readPartFile(fileOf(VIRTIO.name), ROOT_OFFSET, path)
      assert.match(text ?? 'no user-data', 'web-7')
    },
  },
]

for (const row of ROWS) stories.tellRow(row)

stories.tell('bios: a machine that boots its own disk gets no live system', async ({ lab }) => {
  const machine = { boot_mode: 'ipxe-exit' }
  await using story = await openStory(lab, { disks: [NVME], machine })
  const refused = await story.begin().catch(String)
  assert.match(String(refused), /boots its own disk/)
})

const CapturesSchema = z.object({ captures: z.array(z.object({ id: z.string() })) })

stories.tell('bios: a disk is captured as it is', async ({ lab }) => {
  const disk = { ...VIRTIO, megabytes: 32 }
  await using story = await openStory(lab, { disks: [disk], machine: { boot_mode: 'ipxe-exit' } })
  const before = await readFile(story.fileOf(disk.name))
  await lab.ask(`${MACHINE}/capture`, { name: 'kept.img.zst', disk_serial: VIRTIO.serial })
  await story.begin()
  const { mode, result, reason } = await story.waitForEnd()
  assert.equal([mode, result], ['capture', 'done'], reason ?? '')
  const { captures } = CapturesSchema.parse(await lab.askCache('/captures'))
  await lab.askCache(`/captures/${captures[0]?.id}/accept`, {})
  const captured = join(lab.folder, 'state/cache/kept.img.zst')
  const bytes = execFileSync('zstd', ['-dc', captured], { maxBuffer: 2 ** 28 })
  assert.ok(bytes.equals(before))
  assert.ok((await readFile(story.fileOf(disk.name))).equals(before))
})

/** Chooses the row of a list whose text this is, by its number. */
async function choose({ machine }: Story, text: string) {
  const row = `${RegExp.escape('  ')}${RegExp.escape(text)}`
  const listed = await machine.waitFor(new RegExp(`\\d${row}`), PATIENCE)
  machine.send(`${new RegExp(`\\d(?=${row}$)`).exec(listed)?.[0]}\r`)
}

/** A person at the serial line is about to write the image to the NVMe disk. */
async function walkToConfirm(story: Story) {
  const { machine } = story
  await story.begin()
  await choose(story, 'small.img.zst')
  await choose(story, '/dev/nvme0n1')
  await machine.waitFor(/Everything on \/dev\/nvme0n1 will be lost/, PATIENCE)
  await machine.waitFor(/ERASE AND FLASH/, PATIENCE)
}

const INTERACTIVE = { disks: [NVME, VIRTIO], machine: { boot_mode: 'flasher-tui' } }

stories.tell(
  'bios: a person at the serial line flashes an image of the server',
  async (context) => {
    const { lab, images } = context
    await using story = await openStory(lab, INTERACTIVE)
    await walkToConfirm(story)
    story.machine.send('y')
    await story.machine.waitFor(/Done\./, PATIENCE)
    const run = await story.waitForEnd()
    assert.equal([run.mode, run.result, run.disk?.serial], ['interactive', 'done', NVME.serial])
    const content = [NVME, VIRTIO].map(({ name }) => readContent(story.fileOf(name), images.small))
    assert.equal(await Promise.all(content), ['image', 'used'])
  },
)

stories.start()
