/** An image and the disks for it, chosen by a person or ordered by a server, and the order for the flasher that follows. */
import type { DiskIdentity, SurveyedDisk } from '../../../engine/disk/rules/disk.ts'
import type { FirstBoot } from '../../../engine/first-boot/rules/seed.ts'
import { WHOLE_DISK, type FlashOrder } from '../../../engine/flash/rules/flash.ts'
import type { OrderedImage } from '../../../engine/flash/rules/run-report.ts'
import { printable } from '../../../kit/foundation/printable.ts'
import { renderDevice } from '../../text/rules/flash-text.ts'
import { WIZARD_TEXTS } from '../../texts/texts.ts'
import type { OrderedFlash } from './server-order.ts'

/** An image that was chosen, by a person or a server. */
export interface ChosenImage extends OrderedImage {
  /** Somebody said that it is an image, whatever it looks like; absent: nobody did. */
  readonly anyContent?: boolean
}

/** An image and a disk for it. */
export interface FlashChoice {
  readonly image: ChosenImage
  /** `/dev/sda`. */
  readonly disk: string
  /** What the disk was when it was chosen: another one under that path is refused. Null: not looked at. */
  readonly identity: DiskIdentity | null
  /** What distinguishes it from others, for the header: `DiskChoice.words`. */
  readonly words?: string
  /** Written with the image, before the disk can boot; absent: nothing is. */
  readonly firstBoot?: FirstBoot | null
  /** Nobody is there: no key is waited for, whatever happens. */
  readonly unattended: boolean
  /** Whether the last partition and its file system shall fill the disk; absent: they stay as they are. */
  readonly grow?: boolean
  /** Whether only what differs from the disk shall be written; absent: all is. */
  readonly delta?: boolean
  /** The digest of the image's index; absent or null: not known. */
  readonly indexSha256?: string | null
  /** Where the image is asked for first, in this order; absent: at its location alone. */
  readonly sources?: readonly string[]
}

/** One image for one disk or several. */
export type FlashChoices = readonly [FlashChoice, ...FlashChoice[]]

/** A disk that was chosen. */
export interface DiskChoice {
  readonly path: string
  readonly identity: DiskIdentity
  /** In one line, for the header: `ATA Samsung SSD 980, serial S5GX, 500 GB`. */
  readonly words: string
}

/** Returns what is remembered of a chosen disk: its path, and by what it is known again. */
export const chooseDisk = ({ path, device }: SurveyedDisk): DiskChoice => ({
  path,
  identity: device.identity,
  words: renderDevice(device),
})

/** Returns the choice that a server made; nobody is there to see it. */
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

/**
 * Makes the order for the flasher. Everything is read back; the target is a whole disk; the image
 * stays as it is unless it shall grow.
 */
export function orderFor(choices: FlashChoices): FlashOrder {
  const [{ image, grow = false, delta = false, indexSha256 = null, firstBoot = null, sources }] =
    choices
  return {
    image: image.location,
    ...(sources === undefined ? {} : { sources }),
    format: image.format,
    ...(image.anyContent === true ? { anyContent: true } : {}),
    // What is here is as long as it is.
    ...(image.location.includes('://') ? { sizeBytes: image.sizeBytes } : {}),
    targets: choices.map(({ disk, identity }) => ({ path: disk, chosen: identity })),
    options: { ...WHOLE_DISK, sha256: image.sha256, grow, delta, indexSha256 },
    firstBoot,
  }
}
