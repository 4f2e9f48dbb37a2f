/** The seam between the screens and the server-driven mode: how a wizard starts, and who hears of its flashes. */
import type { DiskIdentity } from '../../../../core/disk/disk.ts'
import type { FaultCode } from '../../../../core/foundation/fault.ts'
import type { FlashEvent, FlashPlan } from '../../../../core/flash/flash.ts'
import type { ImageFormat } from '../../../../core/image/image.ts'

/** Who this machine is, for the header. */
export interface Identity {
  /** Lower case, colons; null: not told and none found. */
  readonly mac: string | null
  /** `http://host:port`, or as it was named; null: standalone. */
  readonly server: string | null
  /** This machine's own address; null: it has none. */
  readonly address: string | null
}

/** What a wizard opens with. */
export interface Start {
  /** `catalog` shows where images can come from, `image` goes straight to them. */
  readonly screen: 'catalog' | 'image'
  /** Where the catalog is, as `loadCatalogSource` takes it; null: only images of this machine. */
  readonly catalog: string | null
  /** Why we are here, in red on the first screen and kept until the operator went on; null: no reason. */
  readonly notice: string | null
  readonly identity: Identity
}

/** An image that was chosen, wherever it lies. */
export interface ImageChoice {
  /** For people. */
  readonly name: string
  /** A path, an http(s) URL or an oras reference, as `sources.open` takes it. */
  readonly location: string
  /** Null: the name or the source's own name tells. */
  readonly format: ImageFormat | null
  /** Bytes as stored; null where nobody said. */
  readonly sizeBytes: number | null
  /** Of the stored bytes, lower case; checked while they are read. Null: none is known. */
  readonly sha256: string | null
  /** The image's identity (`core/image/ref.ts`); null where it has none. */
  readonly ref: string | null
}

export interface FlashOrder {
  readonly image: ImageChoice
  /** `/dev/sda`. */
  readonly disk: string
  /** What the disk was when it was chosen: another one under that path is refused. Null: not looked at. */
  readonly identity: DiskIdentity | null
  /** What tells it from others, for the header: `DiskChoice.words`. */
  readonly words?: string
  /** Nobody is there: no key is waited for, whatever happens. */
  readonly unattended: boolean
}

/** How a flash ended; never thrown. */
export type FlashEnd =
  | {
      readonly kind: 'done'
      readonly plan: FlashPlan
      readonly bytesWritten: number
      readonly seconds: number
      readonly verified: boolean
    }
  | {
      /** `cancelled`: by the operator or by the signal. */
      readonly kind: 'failed' | 'cancelled'
      readonly code: FaultCode | 'unexpected'
      readonly reason: string
      readonly hint: string | null
      /** What became of the disk, in one sentence. */
      readonly leaves: string
    }

/** Delivery of every flash, an operator's and an unattended one alike. They must not throw. */
export interface Hooks {
  /** The checks are done and the plan stands; the first byte comes next. Not waited for. */
  onFlashStart?(order: FlashOrder, plan: FlashPlan): void
  /** Each event of the writer, as it comes. Not waited for. */
  onProgress?(event: FlashEvent): void
  /**
   * Once for every flash that was ordered, also for one that was refused by its checks. Waited for;
   * `say` shows what is being done; the screen that follows shows what came of it.
   * `enough`: aborted by an operator who does not want to wait any longer.
   */
  onEnd?(
    end: FlashEnd,
    order: FlashOrder,
    say: (line: string) => void,
    enough?: AbortSignal,
  ): Promise<Aftermath>
}

/** What an operator is told of a flash besides how it ended. */
export interface Aftermath {
  /** What went wrong, in red; null: nothing did. */
  readonly notice: string | null
  /** What became of the UEFI boot entry; null: none was asked for. */
  readonly bootEntry: string | null
}

export const NO_AFTERMATH: Aftermath = { notice: null, bootEntry: null }

/** What the server-driven mode may do with the terminal. */
export interface DrivenScreen {
  readonly identity: Identity
  /** A line below what is there; kept until a screen is drawn. */
  say(line: string): void
  /** The flashing screen, from the checks to the end. Hooks are told. */
  runFlash(order: FlashOrder, hooks: Hooks): Promise<FlashEnd>
}

/** What the server-driven mode ends with: a wizard to open, or the end of the program. */
export type RemoteOutcome =
  | { readonly kind: 'interactive'; readonly start: Start; readonly hooks: Hooks }
  | { readonly kind: 'exit'; readonly code: number }
