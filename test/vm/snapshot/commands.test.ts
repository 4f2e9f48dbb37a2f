/** The command line in a live system that goes on from one story to the next: how images are stored, and several disks at once. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { LIVE_PATHS } from '../../../appliance/contract.ts'
import { ENCODINGS } from '../../support/disk/encodings.ts'
import { LAB_ADDRESS } from '../../support/http/namespace.ts'
import { readContent, type StoryImages } from '../../support/vm/snapshot/story-images.ts'
import type { Story } from '../../support/vm/snapshot/story.ts'
import { createStories, NVME, SATA, USB, VIRTIO } from '../../support/vm/snapshot/told-stories.ts'

const stories = createStories('stories of commands')

const FAILING = { ...VIRTIO, name: 'failing', serial: 'FAILING', failsAt: 30_000 } as const
const DISKS = [NVME, VIRTIO, USB, SATA, FAILING] as const
const FLASHER = `${LIVE_PATHS.node} ${LIVE_PATHS.home}/runtime/bin/flasher.mjs`
const FILES = `http://${LAB_ADDRESS}:8081/files`

/** `disk SERIAL` is the path of one. */
const DISK = `disk() { lsblk --nodeps --noheadings --paths -o NAME,SERIAL | awk -v s="$1" '$2 == s { print $1 }'; }`

/** What an earlier story wrote there is found no more. */
const clear = ({ machine }: Story, serials: readonly string[]) =>
  machine.require(`
    ${DISK}
    for serial in ${serials.join(' ')}; do
      dd if=/dev/zero of=$(disk $serial) bs=1M count=1 oflag=direct status=none
    done`)

/** Flashes an image onto these disks. */
async function flash(
  { machine }: Story,
  image: string,
  serials: readonly string[],
  options = '',
): Promise<{ readonly code: number; readonly said: string }> {
  const targets = serials.map((serial) => `--target $(disk ${serial})`).join(' ')
  const said = await machine.require(`
    ${DISK}
    ${FLASHER} flash --image ${image} ${targets} --yes ${options} 2>&1
    echo "exit code $?"`)
  return { code: Number(/exit code (\d+)\n$/.exec(said)?.[1]), said }
}

const contentOf = ({ fileOf }: Story, name: string, { small }: StoryImages) =>
  readContent(fileOf(name), small)

const STORED = ['zstd with a long window', 'xz in blocks', 'gzip', 'bzip2', 'qcow2, zstd']

stories.tellTogether('secure', DISKS, [
  ...ENCODINGS.filter(({ name }) => STORED.includes(name)).map(
    ({ name, format, encode }) =>
      [
        `an image that is stored as ${name}`,
        async (story: Story, images: StoryImages) => {
          const file = `stored-${STORED.indexOf(name)}.${format}`
          await writeFile(join(story.lab.folder, 'state/cache', file), encode(images.small.bytes))
          await clear(story, [NVME.serial])
          const { code, said } = await flash(story, `${FILES}/${file}`, [NVME.serial])
          assert.is(code, 0, said)
          assert.is(await contentOf(story, NVME.name, images), 'image')
        },
      ] as const,
  ),
  [
    'three disks of several kinds at once',
    async (story, images) => {
      const serials = [VIRTIO.serial, USB.serial, 'SATA0001']
      await clear(story, serials)
      const { code, said } = await flash(story, `${FILES}/small.img.zst`, serials)
      assert.is(code, 0, said)
      for (const { name } of [VIRTIO, USB, SATA]) {
        assert.is(await contentOf(story, name, images), 'image', name)
      }
    },
  ],
  [
    'of two disks the one that fails ends alone',
    async (story, images) => {
      const serials = [FAILING.serial, NVME.serial]
      await clear(story, serials)
      const { code, said } = await flash(story, `${FILES}/small.img.zst`, serials)
      assert.is(code, 1, said)
      assert.match(said, /write error at byte/)
      assert.is(await contentOf(story, NVME.name, images), 'image')
      assert.is(await contentOf(story, FAILING.name, images), 'blank')
    },
  ],
  [
    'another digest than the one that was asked for: nothing boots',
    async (story, images) => {
      const options = `--sha256 ${'a'.repeat(64)}`
      const { code, said } = await flash(story, `${FILES}/raw.img`, [NVME.serial], options)
      assert.is(code, 1, said)
      assert.match(said, /is not the image asked for/)
      assert.is(await contentOf(story, NVME.name, images), 'blank')
    },
  ],
  [
    'an image that the server does not have: nothing is written',
    async (story, images) => {
      const { code, said } = await flash(story, `${FILES}/none.img.zst`, [VIRTIO.serial])
      assert.is(code, 1, said)
      assert.match(said, /404/)
      assert.is(await contentOf(story, VIRTIO.name, images), 'image')
    },
  ],
])

stories.start()
