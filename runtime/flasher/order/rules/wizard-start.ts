/** What an order has of a wizard: the screen that shows what a server does, how a wizard opens, and the hooks around every flash. */
import type { FirstBoot } from '../../../engine/first-boot/rules/seed.ts'
import type { FlashEvent, FlashPlan } from '../../../engine/flash/rules/flash.ts'
import type { FlashOutcome } from '../../../engine/flash/rules/outcome.ts'
import type { Result } from '../../../kit/foundation/result.ts'
import type { FlashChoice } from './flash-choice.ts'

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
  /** A new address for a signed one of the image that has expired; absent: nobody has one. */
  renewSource?(location: string): Promise<string | null>
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
