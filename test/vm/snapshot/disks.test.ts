/** Every kind of disk, flashed from a kept live system and compared byte for byte. */
import * as assert from 'uvu/assert'
import {
  createStories,
  NVME,
  SATA,
  serialOf,
  SLOW,
  USB,
  VIRTIO,
  type StoryRow,
} from '../../support/vm/snapshot/told-stories.ts'
import type { StoryDisk } from '../../support/vm/snapshot/story.ts'

const stories = createStories('stories of disks')

const NATIVE_NVME = { ...NVME, sectorBytes: 4096 } as const
const NATIVE_VIRTIO = { ...VIRTIO, sectorBytes: 4096 } as const

const KINDS: readonly (Pick<StoryRow, 'title' | 'image'> & { readonly disk: StoryDisk })[] = [
  { title: 'virtio', disk: VIRTIO },
  { title: 'NVMe', disk: NVME },
  { title: 'SATA', disk: SATA },
  { title: 'USB', disk: USB },
  { title: 'NVMe with sectors of 4096 bytes', disk: NATIVE_NVME, image: 'native' },
  { title: 'virtio with sectors of 4096 bytes', disk: NATIVE_VIRTIO, image: 'native' },
  { title: 'a slow disk', disk: SLOW },
]

for (const firmware of ['bios', 'uefi'] as const) {
  for (const { disk, ...kind } of firmware === 'bios' ? KINDS : KINDS.slice(0, 2)) {
    stories.tellRow({
      ...kind,
      firmware,
      disks: [disk],
      result: 'done',
      content: ['image'],
      async after(_, run) {
        assert.is(run.disk?.serial, serialOf(disk))
      },
    })
  }
}

stories.start()
