/** The part of a machine that both release lines share, and the disks that it reports. */
import type { Mac } from '../../../kit/net/rules/mac.ts'

/** Fields with the same name and meaning in both specifications. Timestamps are ISO 8601 with `Z`. */
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
  /** Not in the specification: clients of ours say them, for disks without a serial. */
  readonly wwn?: string | null | undefined
  readonly by_path?: string | null | undefined
  readonly size_bytes?: number | null | undefined
}

/** Body of `POST /pxe/{mac}/inventory`, checked. */
export interface Inventory {
  readonly disks: readonly InventoryDisk[]
  /** How many more it has than are kept. */
  readonly disksLeftOut: number
  /** Machines that nobody has set up have too many disks together (`list-budget.ts`). */
  readonly isShortened?: boolean
  /** The hardware tree as it came, JSON; null: absent, or left out. */
  readonly hardware: Uint8Array | null
  /** The serial numbers of the machine itself; null: the tree was not read for them. */
  readonly ownSerials: readonly string[] | null
  /** It was over a limit. */
  readonly isHardwareLeftOut: boolean
  /** Whether firmware enforced Secure Boot; null: it did not say. */
  readonly secureBoot: boolean | null
  /** The IPv4 address of its BMC, as it told it; null: it did not. Nobody has checked that it is its own. */
  readonly bmcAddress: string | null
}

/**
 * What becomes of a machine's place among those that flash: it waits, it was sent to flash, it was sent
 * elsewhere, its plan is to flash (with or without a script of ours), or it no longer flashes.
 */
export type FlashSlot = 'queued' | 'offered' | 'passed' | 'planned' | 'released'
