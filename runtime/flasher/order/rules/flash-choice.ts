/** An image and the disks for it, chosen by a person or ordered by a server, and the order for the flasher that follows. */
import type { DiskIdentity, SurveyedDisk } from '#engine/disk/rules/disk.ts'
import type { FirstBoot } from '#engine/first-boot/rules/seed.ts'
import { WHOLE_DISK, type FlashOrder } from '#engine/flash/rules/flash.ts'
import type { OrderedImage } from '#engine/flash/rules/run-report.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDevice } from '#flasher/text/rules/flash-text.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import type { OrderedFlash } from './server-order.ts'

export interface ChosenImage extends OrderedImage {
  /** Somebody said that it is an image, whatever it looks like. */
  readonly anyContent?: boolean
}

export interface FlashChoice {
  readonly image: ChosenImage
  /** `/dev/sda`. */
  readonly disk: string
  /** When chosen: another disk under that path is refused. Null: not looked at. */
  readonly identity: DiskIdentity | null
  readonly words?: string
  /** Written with the image, before the disk can boot. */
  readonly firstBoot?: FirstBoot | null
  /** Never waits for a key. */
  readonly unattended: boolean
  /** The last partition and its file system fill the disk. */
  readonly grow?: boolean
  /** Writes only what differs from the disk. */
  readonly delta?: boolean
  /** Null: unknown. */
  readonly indexSha256?: string | null
  /** Asked before the image's location, in this order. */
  readonly sources?: readonly string[]
}

/** One image for one disk or several. */
export type FlashChoices = readonly [FlashChoice, ...FlashChoice[]]

export interface DiskChoice {
  readonly path: string
  readonly identity: DiskIdentity
  /** One line: `ATA Samsung SSD 980, serial S5GX, 500 GB`. */
  readonly words: string
}

export const chooseDisk = ({ path, device }: SurveyedDisk): DiskChoice => ({
  path,
  identity: device.identity,
  words: renderDevice(device),
})

export const chooseOrdered = (
  flash: OrderedFlash,
  { path: disk, ...seen }: DiskChoice | Pick<DiskChoice, 'path'>,
): FlashChoice => ({
  image: {
    name: flash.name ?? (lastPart(flash.image) || WIZARD_TEXTS.driven.namelessImage),
    location: flash.image,
    format: flash.format,
    sizeBytes: flash.sizeBytes ?? null,
    sha256: flash.sha256,
    ref: null,
    ...(flash.anyContent === true ? { anyContent: true } : {}),
  },
  disk,
  identity: null,
  ...seen,
  unattended: true,
  grow: flash.grow,
  delta: flash.delta,
  indexSha256: flash.indexSha256,
  ...(flash.sources === undefined ? {} : { sources: flash.sources }),
})

const lastPart = (address: string) =>
  printable(address.split(/[?#]/, 1)[0]?.split('/').at(-1) ?? '')

/** Everything is read back; the target is a whole disk. */
export function orderFor(choices: FlashChoices): FlashOrder {
  const [{ image, grow = false, delta = false, indexSha256 = null, firstBoot = null, sources }] =
    choices
  return {
    image: image.location,
    ...(sources === undefined ? {} : { sources }),
    format: image.format,
    ...(image.anyContent === true ? { anyContent: true } : {}),
    // The size of a local file is known when it is opened.
    ...(image.location.includes('://') ? { sizeBytes: image.sizeBytes } : {}),
    targets: choices.map(({ disk, identity }) => ({ path: disk, chosen: identity })),
    options: { ...WHOLE_DISK, sha256: image.sha256, grow, delta, indexSha256 },
    firstBoot,
  }
}
