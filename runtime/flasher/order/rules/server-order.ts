/** What a server orders, however it said so: in a plan (`plan.ts`), or in the kernel's arguments (`kernel-order.ts`). */
import type { ImageFormat } from '../../../../appliance/disk-images.ts'
import type { Provisioning } from '../../../engine/flash/rules/provisioning.ts'
import type { PickedDisk } from '../../../engine/inventory/rules/disk-pick.ts'

/** An order; `Flash` says whether it always names its disk, as plans do. */
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
  /** Where the same image is asked for first, in this order; absent: nowhere. */
  readonly sources?: readonly string[]
  /** Its neighbours read the same image, and the server says where they are; absent: they do not. */
  readonly peers?: true
  /** The disk, as `target_disk_serial` spells it; null: the only one that can be flashed without being asked for. */
  readonly disk: string | null
  /** What it was when it was picked by another name than its serial number. */
  readonly seen?: PickedDisk
  readonly name: string | null
  readonly format: ImageFormat | null
  /** The digest of the stored bytes, in lower case. */
  readonly sha256: string | null
  /** Bytes as stored, as the server's catalog says; absent: it does not. */
  readonly sizeBytes?: number
  readonly registerUefiBoot: boolean
  readonly grow: boolean
  readonly delta: boolean
  /** The operator said that it is an image, whatever it looks like; absent: nobody did. */
  readonly anyContent?: boolean
  /** The digest of the image's index, in lower case. */
  readonly indexSha256: string | null
  /** For the first-boot configuration, which is fetched once; null: there is none. */
  readonly firstBoot: FirstBootTicket | null
  /** What the flashed system is given, from files that the server keeps; absent: nothing. */
  readonly provisioning?: ProvisioningMode
}

/** A flash of a disk that the server names. */
export interface NamedFlash extends OrderedFlash {
  readonly disk: string
}

export interface CaptureByPlan {
  readonly mode: 'capture'
  /** The disk, as for a flash. */
  readonly disk: string
  readonly seen?: PickedDisk
  /** The name of the image that is made. */
  readonly name: string
  readonly generalize: boolean
  /** Where the image goes, without a slash at its end, and what it is begun with. */
  readonly upload: { readonly base: string; readonly token: string }
}

/** A person decides; `catalog` null: the server's own. */
export interface OrderedWizard {
  readonly mode: 'interactive'
  readonly catalog: string | null
  readonly reason: string | null
}

export type ProvisioningMode = Provisioning['mode']

/** Where a first-boot configuration is, and what shows that the plan names it. */
export interface FirstBootTicket {
  readonly url: string
  readonly token: string
}
