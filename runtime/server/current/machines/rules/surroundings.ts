/** Current line: the facts besides the machine's record that decisions about it may use. */
import type { LiveSets } from '#fleet/boot/rules/boot-decision.ts'
import type { Machine } from './machine.ts'
import type { QueuePosition } from './queue.ts'
import type { Template } from '#engine/first-boot/rules/template.ts'
import type { TokenPolicy } from './token.ts'
import type { KnownEntry } from '#fleet/once/rules/boot-entry.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'

export interface PxeRules {
  /** Live boots of one cycle without an end before the guard steps in. */
  readonly loop_limit: number
  /** Seconds; 0: at every second boot, Infinity: never. */
  readonly inventory_refresh: number
  readonly boot_disk_once_after_flash: boolean
  /** Hours after which an order without an offered boot ends; absent or 0: never. */
  readonly armed_hours?: number
  readonly delta?: boolean
  readonly caches?: readonly string[]
  /** Which machines must prove that this server booted them. */
  readonly tokens: TokenPolicy
}

export interface Surroundings {
  /** Checked (`kit/net/rules/host-header.ts`), no trailing slash. */
  readonly base: string
  /** Like `base`; absent: none. */
  others?(): readonly string[]
  /** ISO time. */
  readonly now: string
  findImage(ref: string): CatalogEntry | null
  /** With its secrets. */
  findTemplate(name: string): Template | null
  /** What machines can be booted into once; absent: nothing. */
  findEntry?(name: string): KnownEntry | null
  /** Why the machine certainly does not start from it, as far as that is known; absent: any will do. */
  recallMisfit?(image: CatalogEntry, machine: Machine): string | null
  /** Where captures are uploaded; null: there is no cache service. */
  readonly cacheUrl: string | null
  sets(): LiveSets
  readonly settings: PxeRules
  /** By a clock that is never set back; absent: by `now`. Asked only about orders that expire. */
  isPast?(at: string): boolean
  /** Null: it is its turn. */
  placeOf(machine: Machine): QueuePosition | null
}
