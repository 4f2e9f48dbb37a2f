/** What an order has of a wizard: the screen that shows what a server does, how a wizard opens, and the hooks around every flash. */
import type { FirstBoot } from '#engine/first-boot/rules/seed.ts'
import type { FlashEvent, FlashPlan } from '#engine/flash/rules/flash.ts'
import type { FlashOutcome } from '#engine/flash/rules/outcome.ts'
import type { Result } from '#kit/foundation/result.ts'
import type { FlashChoice } from './flash-choice.ts'

export interface MachineIdentity {
  /** Lower case, colons; null: none was named and none found. */
  readonly mac: string | null
  /** `http://host:port`, or as it was named; null: standalone. */
  readonly server: string | null
  /** Null: none. */
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
  /**
   * Also for a flash that its checks refused. Waited for; `enough`: aborted by an operator who does
   * not want to wait.
   */
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
