/** Current line: the facts besides the machine's record that decisions about it may use. */
import type { LiveSets } from '../../../fleet/boot/rules/boot-decision.ts'
import type { Machine } from './machine.ts'
import type { QueuePosition } from './queue.ts'
import type { Template } from '../../../engine/first-boot/rules/template.ts'
import type { TokenPolicy } from './token.ts'
import type { CatalogEntry } from '../../../engine/catalog/rules/catalog.ts'

/** The settings of section `[pxe]` that decide what is booted, and `[flash]`; the names are theirs. */
export interface PxeRules {
  /** Live boots of one cycle that may go by without an end before the guard steps in. */
  readonly loop_limit: number
  /** Age in seconds at which the disks are listed anew; 0: at every second boot, Infinity: never. */
  readonly inventory_refresh: number
  readonly boot_disk_once_after_flash: boolean
  /** Hours after which an order ends that no boot was offered for; absent or 0: at no time. */
  readonly armed_hours?: number
  /** `flash.delta`; absent: no. */
  readonly delta?: boolean
  /** `sources.caches`, as they are written there; absent: none. */
  readonly caches?: readonly string[]
  /** `[peers]`; absent: machines hand nothing on. */
  readonly peers?: { readonly enabled: boolean; readonly sites: readonly string[] }
  /** Which machines must prove that this server booted them. */
  readonly tokens: TokenPolicy
}

export interface Surroundings {
  /** Checked address of this server (`kit/net/rules/host-header.ts`), no trailing slash. */
  readonly base: string
  /** The other servers of the site, like `base`; absent: there are none. */
  readonly others?: readonly string[]
  /** ISO time. */
  readonly now: string
  findImage(ref: string): CatalogEntry | null
  /** A first-boot template by its name, with its secrets. */
  findTemplate(name: string): Template | null
  /** Where captured images are uploaded: the address of the cache service; null: there is none. */
  readonly cacheUrl: string | null
  readonly sets: LiveSets
  readonly settings: PxeRules
  /**
   * Says whether this time has come, by a clock that is never set back; absent: by `now`. Asked only of
   * orders that end by themselves.
   */
  isPast?(at: string): boolean
  /** Where a machine stands that would be flashed now; null: it is its turn. */
  placeOf(machine: Machine): QueuePosition | null
}
