/** The part of a machine that both release lines share, and the disks that it reports. */
import type { Mac } from '#kit/net/rules/mac.ts'

/** The same in both specifications. Timestamps are ISO 8601 with `Z`. */
export interface MachineBase {
  readonly mac: Mac
  readonly discovered_at: string | null
  readonly last_seen_at: string | null
  readonly last_seen_ip: string | null
  readonly last_flashed_at: string | null
  readonly created_at: string
  readonly updated_at: string
}

/** "InventoryDisk"; every text comes from the machine itself and is hostile. */
export interface InventoryDisk {
  readonly path: string
  readonly size: string | null
  readonly vendor: string | null
  readonly model: string | null
  readonly serial: string | null
  readonly tran: string | null
  readonly removable: boolean
  readonly readonly: boolean
  /** Not in the specification: for disks without a serial. */
  readonly wwn?: string | null | undefined
  readonly by_path?: string | null | undefined
  readonly size_bytes?: number | null | undefined
}

/** A larger hardware tree is left out; the disks are stored anyway. */
export const MAX_HARDWARE_BYTES = 8 * 2 ** 20

/** Body of `POST /pxe/{mac}/inventory`, checked. */
export interface Inventory {
  readonly disks: readonly InventoryDisk[]
  readonly disksLeftOut: number
  /** Machines that nobody has set up have too many disks together (`list-budget.ts`). */
  readonly isShortened?: boolean
  /** JSON as it came; null: absent, or left out. */
  readonly hardware: Uint8Array | null
  /** Null: the tree was not read for them. */
  readonly ownSerials: readonly string[] | null
  readonly isHardwareLeftOut: boolean
  /** Firmware enforced it; null: unknown. */
  readonly secureBoot: boolean | null
  /** IPv4, as the machine reported; null: it did not. Nobody has checked it. */
  readonly bmcAddress: string | null
}

/**
 * A place among machines that flash: `offered`: sent to flash; `passed`: sent elsewhere; `planned`:
 * its plan is to flash; `released`: it no longer flashes.
 */
export type FlashSlot = 'queued' | 'offered' | 'passed' | 'planned' | 'released'
