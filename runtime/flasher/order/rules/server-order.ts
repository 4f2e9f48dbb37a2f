/** What a server orders, however it said so: in a plan (`plan.ts`), or in the kernel's arguments (`kernel-order.ts`). */
import type { ImageFormat } from '#appliance/disk-images.ts'
import type { Provisioning } from '#engine/flash/rules/provisioning.ts'
import type { PickedDisk } from '#engine/inventory/rules/disk-pick.ts'

/** `Flash`: whether it always names its disk, as plans do. */
export type Order<Flash extends OrderedFlash = OrderedFlash> =
  | Flash
  | CaptureByPlan
  | OrderedWizard
  | { readonly mode: 'inventory' }
  | { readonly mode: 'exit'; readonly reason: string | null }

export interface OrderedFlash {
  readonly mode: 'flash'
  /** An http(s) URL or an oras reference. */
  readonly image: string
  /** Asked for the same image first, in this order. */
  readonly sources?: readonly string[]
  /** Neighbours read the same image; the server says where they are. */
  readonly peers?: true
  /** As `target_disk_serial` spells it; null: the only disk that needs no question. */
  readonly disk: string | null
  /** What the disk was when picked by another name than its serial number. */
  readonly seen?: PickedDisk
  readonly name: string | null
  readonly format: ImageFormat | null
  /** Of the stored bytes, in lower case. */
  readonly sha256: string | null
  /** Bytes as stored, by the server's catalog. */
  readonly sizeBytes?: number
  readonly registerUefiBoot: boolean
  readonly grow: boolean
  readonly delta: boolean
  /** The operator said that it is an image, whatever it looks like. */
  readonly anyContent?: boolean
  /** Lower case. */
  readonly indexSha256: string | null
  /** Null: none. */
  readonly firstBoot: FirstBootTicket | null
  readonly provisioning?: ProvisioningMode
}

export interface NamedFlash extends OrderedFlash {
  readonly disk: string
}

export interface CaptureByPlan {
  readonly mode: 'capture'
  readonly disk: string
  readonly seen?: PickedDisk
  readonly name: string
  readonly generalize: boolean
  /** Without a slash at its end. */
  readonly upload: { readonly base: string; readonly token: string }
}

/** `catalog` null: the server's own. */
export interface OrderedWizard {
  readonly mode: 'interactive'
  readonly catalog: string | null
  readonly reason: string | null
}

export type ProvisioningMode = Provisioning['mode']

export interface FirstBootTicket {
  readonly url: string
  readonly token: string
}
