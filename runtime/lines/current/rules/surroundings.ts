/** Current line: what a decision about a machine may know besides the machine itself. */
import type { LiveSets } from '../../../core/boot.ts'
import type { CatalogEntry } from '../../../core/catalog.ts'

/** The `[pxe]` settings that decide what is booted. */
export interface PxeRules {
  /** Live boots of one cycle that may go by without an end before the guard steps in. */
  readonly mostLiveOffers: number
  /** Age in seconds at which a disk inventory is taken anew; 0: at every second boot. */
  readonly inventoryRefresh: number | 'never'
  readonly bootDiskOnceAfterFlash: boolean
}

export const DEFAULT_PXE_RULES: PxeRules = {
  mostLiveOffers: 5,
  inventoryRefresh: 24 * 60 * 60,
  bootDiskOnceAfterFlash: false,
}

export interface Surroundings {
  /** Checked address of this server (`core/host.ts`), no trailing slash. */
  readonly base: string
  /** ISO time. */
  readonly now: string
  findImage(ref: string): CatalogEntry | null
  readonly sets: LiveSets
  readonly settings: PxeRules
}
