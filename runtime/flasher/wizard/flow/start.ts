/** The start of a wizard, and the hooks around its flashes, for the screens and the server-driven mode. */
import type { DiskIdentity } from '../../../engine/disk/rules/disk.ts'
import type { FirstBoot } from '../../../engine/first-boot/rules/seed.ts'
import type { FlashEvent, FlashPlan } from '../../../engine/flash/rules/flash.ts'
import type { FlashOutcome } from '../../../engine/flash/rules/outcome.ts'
import type { Result } from '../../../kit/foundation/result.ts'
import type { ImageFormat } from '../../../../appliance/disk-images.ts'

/** Who this machine is, for the header. */
export interface MachineIdentity {
  /** Lower case, colons; null: none was named and none found. */
  readonly mac: string | null
  /** `http://host:port`, or as it was named; null: standalone. */
  readonly server: string | null
  /** This machine's own address; null: it has none. */
  readonly address: string | null
}

/** What a wizard opens with. */
export interface WizardStart {
  /** `catalog` shows where images can come from, `image` goes straight to them. */
  readonly screen: 'catalog' | 'image'
  /** Where the catalog is, as `loadCatalog` takes it; null: only images of this machine. */
  readonly catalog: string | null
  /** Why we are here, in red on the first screen and kept until the operator went on; null: no reason. */
  readonly notice: string | null
  readonly identity: MachineIdentity
}

/** An image that was chosen, wherever it lies. */
export interface ChosenImage {
  /** The name that people read. */
  readonly name: string
  /** A path, an http(s) URL or an oras reference, as `sources.open` takes it. */
  readonly location: string
  /** Null: the name of the image or of its source decides. */
  readonly format: ImageFormat | null
  /** Bytes as stored; null where nobody said. */
  readonly sizeBytes: number | null
  /**
   * The digest of the stored bytes, lower case; checked while they are read. Null: none is known.
   */
  readonly sha256: string | null
  /** The image's identity (`engine/catalog/rules/catalog.ts`); null where it has none. */
  readonly ref: string | null
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

/** What the server has for the first boot of what a person flashes here. */
export type TemplateOffer =
  | {
      readonly kind: 'template'
      readonly name: string
      /** Its content for this machine, which is handed out once; refused in words. */
      fetch(): Promise<Result<FirstBoot, string>>
    }
  /** The reason is a sentence. */
  | { readonly kind: 'unavailable'; readonly reason: string }

/**
 * What happens around every flash, an operator's and an unattended one alike. They must not throw.
 * Of an operator's flash of several disks they see the first disk, and the end of all.
 */
export interface Hooks {
  /** Null: this machine has no template, or no server. */
  findTemplate(): Promise<TemplateOffer | null>
  /** Each event of the write, as it comes; `started` comes before the first byte. Not waited for. */
  onEvent(event: FlashEvent, choice: FlashChoice, plan: FlashPlan): void
  /**
   * Once for every flash that was ordered, also for one that was refused by its checks. Waited for;
   * `say` shows what is being done; the screen that follows shows what came of it.
   * `enough`: aborted by an operator who does not want to wait any longer.
   */
  onEnd(
    end: FlashOutcome,
    choice: FlashChoice,
    say: (line: string) => void,
    enough?: AbortSignal,
  ): Promise<Aftermath>
}

/** What an operator learns of a flash besides how it ended. */
interface Aftermath {
  /** What went wrong, in red; null: nothing did. */
  readonly notice: string | null
  /** What became of the UEFI boot entry; null: none was asked for. */
  readonly bootEntry: string | null
}

/** What the flashing screen ends with. */
export interface Flashed extends Aftermath {
  /** The first disk that failed decides how a flash of several ended. */
  readonly end: FlashOutcome
  /** On each of the disks, in the order of their choice; absent: there is one. */
  readonly ends?: readonly FlashOutcome[]
}

export const NO_AFTERMATH: Aftermath = { notice: null, bootEntry: null }
export const NO_HOOKS: Hooks = {
  findTemplate: async () => null,
  onEvent: () => {},
  onEnd: async () => NO_AFTERMATH,
}

/** The terminal, as far as the server-driven mode uses it. */
export interface DrivenScreen {
  readonly identity: MachineIdentity
  /** A line below what is there; kept until a screen is drawn. */
  say(line: string): void
  /** The flashing screen, from the checks to the end of the hooks. */
  runFlash(choice: FlashChoice, hooks: Hooks): Promise<Flashed>
}

/** What the server-driven mode ends with: a wizard to open, or the end of the program. */
export type RemoteOutcome =
  | { readonly kind: 'interactive'; readonly start: WizardStart; readonly hooks: Hooks }
  | { readonly kind: 'exit'; readonly code: number }
