/** An image and the disks for it, chosen by a person or ordered by a server, and the order for the flasher that follows. */
import type { DiskIdentity, SurveyedDisk } from '#engine/disk/rules/disk.ts'
import type { FirstBoot } from '#engine/first-boot/rules/seed.ts'
import {
  type FlashEvent,
  type FlashOrder,
  type FlashPlan,
  WHOLE_DISK,
} from '#engine/flash/rules/flash-plan.ts'
import type { OrderedImage, FlashOutcome } from '#engine/flash/rules/run-report.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDevice } from '#flasher/text/rules/flash-text.ts'
import type { OrderedFlash } from './plan.ts'
import type { Result } from '#kit/foundation/result.ts'

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
    name: flash.name ?? (lastPart(flash.image) || 'image'),
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

// What an order has of a wizard: the screen that shows what a server does, how a wizard opens, and the hooks around every flash.

export interface MachineIdentity {
  /** Lower case, colons; null: none was named and none found. */
  readonly mac: string | null
  /** `http://host:port`, or as it was named; null: standalone. */
  readonly server: string | null
  readonly address: string | null
}

export interface WizardStart {
  /** `catalog`: where images can come from; `image`: straight to them. */
  readonly screen: 'catalog' | 'image'
  /** As `loadCatalog` takes it; null: only images of this machine. */
  readonly catalog: string | null
  /** Why we are here; red, until the operator goes on. */
  readonly notice: string | null
  readonly identity: MachineIdentity
}

export type TemplateOffer =
  | {
      readonly kind: 'template'
      readonly name: string
      /** Handed out once; refused in words. */
      fetch(): Promise<Result<FirstBoot, string>>
    }
  /** The reason is a sentence. */
  | { readonly kind: 'unavailable'; readonly reason: string }

/** Must not throw. With several disks they see the first disk, and the end of all. */
export interface Hooks {
  /** Null: this machine has no template, or no server. */
  findTemplate(): Promise<TemplateOffer | null>
  /** For a signed address that has expired. */
  renewSource?(location: string): Promise<string | null>
  /** `started` comes before the first byte. Not waited for. */
  onEvent(event: FlashEvent, choice: FlashChoice, plan: FlashPlan): void
  /** Even if the checks refused it. Waited for; `enough`: aborted by who does not want to wait. */
  onEnd(
    end: FlashOutcome,
    choice: FlashChoice,
    say: (line: string) => void,
    enough?: AbortSignal,
  ): Promise<Aftermath>
}

interface Aftermath {
  /** Red; null: nothing went wrong. */
  readonly notice: string | null
  /** Null: no UEFI boot entry was asked for. */
  readonly bootEntry: string | null
}

export interface Flashed extends Aftermath {
  /** Of several disks, the first that failed decides. */
  readonly end: FlashOutcome
  /** In the order of the disks' choice; absent: there is one. */
  readonly ends?: readonly FlashOutcome[]
}

export const NO_AFTERMATH: Aftermath = { notice: null, bootEntry: null }
export const NO_HOOKS: Hooks = {
  findTemplate: async () => null,
  onEvent: () => {},
  onEnd: async () => NO_AFTERMATH,
}

export interface DrivenScreen {
  readonly identity: MachineIdentity
  /** Below what is there; kept until a screen is drawn. */
  say(line: string): void
  /** From the checks to the end of the hooks. */
  runFlash(choice: FlashChoice, hooks: Hooks): Promise<Flashed>
}

export type RemoteOutcome =
  | { readonly kind: 'interactive'; readonly start: WizardStart; readonly hooks: Hooks }
  | { readonly kind: 'exit'; readonly code: number }
