/** Every kind of disk under every firmware, flashed and compared byte for byte; and which of several disks is meant. */
import * as assert from 'uvu/assert'
import { DISK_SAYS } from '#test/support/vm/ipxe.ts'
import { waitForEnd } from '#test/support/vm/pxe-flash.ts'
import { startQemu } from '#test/support/vm/qemu.ts'
import { SNAPSHOT_FIRMWARES } from '#test/support/vm/snapshot/snapshot-machine.ts'
import {
  createStories,
  NVME,
  SATA,
  serialOf,
  USB,
  VIRTIO,
  type StoryRow,
} from '#test/support/vm/snapshot/told-stories.ts'
import type { StoryDisk } from '#test/support/vm/snapshot/story.ts'

const stories = createStories('stories of disks')

/** Seconds. */
const PATIENCE = 120

const NATIVE_NVME = { ...NVME, sectorBytes: 4096 } as const
const NATIVE_VIRTIO = { ...VIRTIO, sectorBytes: 4096 } as const

const KINDS: readonly (Pick<StoryRow, 'title' | 'image'> & { readonly disk: StoryDisk })[] = [
  { title: 'virtio', disk: VIRTIO },
  { title: 'NVMe', disk: NVME },
  { title: 'SATA', disk: SATA },
  { title: 'USB', disk: USB },
  { title: 'NVMe with sectors of 4096 bytes', disk: NATIVE_NVME, image: 'native' },
  { title: 'virtio with sectors of 4096 bytes', disk: NATIVE_VIRTIO, image: 'native' },
]

for (const firmware of SNAPSHOT_FIRMWARES) {
  for (const { disk, ...kind } of KINDS) {
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

const TWIN = { name: 'twin', bus: 'virtio', serial: VIRTIO.serial } as const
const NAMELESS = { name: 'nameless', bus: 'virtio' } as const

const ROWS: readonly StoryRow[] = [
  {
    title: 'one of six disks is written, the others are as they were',
    disks: [NVME, VIRTIO, SATA, USB, NAMELESS, { ...VIRTIO, name: 'more', serial: 'MORE' }],
    result: 'done',
    content: ['image', 'used', 'used', 'used', 'used', 'used'],
  },
  {
    title: 'two disks with the same serial number: neither is written',
    disks: [VIRTIO, TWIN, NVME],
    result: 'wizard',
    reason: /2 disks of this machine have the serial number VIRTIO0001/,
    content: ['used', 'used', 'used'],
  },
  {
    title: 'a disk that is not there: none is written',
    disks: [NVME, VIRTIO],
    target: 'ANOTHER',
    result: 'wizard',
    reason: /ANOTHER/,
    content: ['used', 'used'],
  },
  {
    title: 'a disk that is too small is refused before anything is written',
    disks: [{ ...VIRTIO, megabytes: 16 }],
    result: 'wizard',
    reason: /The disk VIRTIO0001 holds .*, the image needs /,
    content: ['used'],
  },
  {
    title: 'a disk of exactly the size of the image',
    disks: [{ ...NVME, megabytes: 24 }],
    result: 'done',
    content: ['image'],
  },
  {
    title: 'an image for sectors of 4096 bytes is refused by a disk with smaller ones',
    disks: [NVME],
    image: 'native',
    result: 'failed',
    reason: /made for disks with 4096-byte sectors, but this disk has 512-byte sectors/,
    content: ['used'],
  },
  {
    title: 'what was flashed is started by the firmware',
    disks: [NVME],
    result: 'done',
    content: ['image'],
    async after(story) {
      await waitForEnd(story.machine)
      const drive = `if=none,id=disk,format=raw,snapshot=on,file=${story.fileOf(NVME.name)}`
      const args = ['-drive', drive, '-device', 'ide-hd,drive=disk']
      await using machine = await startQemu({ args: ['-machine', 'graphics=off', ...args] })
      await machine.waitFor(new RegExp(DISK_SAYS), PATIENCE)
    },
  },
]

for (const row of ROWS) stories.tellRow(row)

stories.start()
