/** Records what a flash does to a disk, from which follows what is said of the disk when the flash fails. */
import type { Device } from '#engine/disk/device.ts'
import { nextStage, type FlashStage } from './rules/outcome.ts'

export type DiskRecord = ReturnType<typeof createDiskRecord>

export function createDiskRecord() {
  let stage: FlashStage = 'checking'
  return {
    stage: () => stage,
    /** All of the image is on the disk, with its ends. */
    complete() {
      stage = 'written'
    },
    /** The same device, whose writes are recorded. */
    watch(device: Device): Device {
      return {
        ...device,
        async write(slot, offset) {
          const isFirst = offset === 0
          const write = { isFirst, isBlank: isFirst && slot.every((byte) => byte === 0) }
          stage = nextStage(stage, { ...write, isConfirmed: false })
          await device.write(slot, offset)
          stage = nextStage(stage, { ...write, isConfirmed: true })
        },
      }
    },
  }
}
