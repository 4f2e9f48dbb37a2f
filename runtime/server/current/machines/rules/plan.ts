/** Current line: decides the response of `GET /pxe/{mac}/plan` ("Plan", "Wizard plan modes"). */
import { MODES, flashesAlways, flashesOnce, type ModePurpose } from './boot-mode.ts'
import { renderCacheBase, replaceLoopback } from '#engine/catalog/rules/cache-entry.ts'
import { isPending } from '#engine/capture/rules/order.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import {
  findTemplateObstacle,
  NO_FEATURES,
  type LiveFeatures,
} from '#engine/first-boot/rules/seed.ts'
import {
  isListBlind,
  wantsDiskId,
  type DiskPick,
  type PickedDisk,
  type InventoryDisk,
} from '#engine/inventory/rules/machine.ts'
import { isHalfWritten, isHeldBack, type Machine } from './machine.ts'
import { DISARMED_RULES, findStop, HELD_BACK, STOPPED, type StopRule } from './disarming.ts'
import type { Surroundings } from './surroundings.ts'
import {
  checkReadiness,
  findDiskMismatch,
  renderDiskMismatch,
  UNREADY,
  type DiskMismatch,
  type Unready,
} from './target.ts'

export const PLAN_MODES = ['flash', 'interactive', 'inventory', 'exit', 'capture'] as const

export type Plan =
  | {
      readonly mode: 'flash'
      readonly image: CatalogEntry
      readonly serial: string
      /** The disk when it was picked by another name than its serial number. */
      readonly seen?: PickedDisk
      /** The firmware boots the disk once, next time. */
      readonly registerUefiBoot: boolean
      /** The image's last partition and its file system fill the disk. */
      readonly grow: boolean
      /** Absent: all of the image. */
      readonly delta?: true
      readonly firstBoot?: boolean
    }
  /** Null: nothing is wrong. */
  | { readonly mode: 'interactive'; readonly reason: string | null }
  | { readonly mode: 'inventory' }
  | { readonly mode: 'exit'; readonly reason: string }
  | {
      readonly mode: 'capture'
      /** Or another name of the disk. */
      readonly serial: string
      readonly seen?: PickedDisk
      readonly name: string
      readonly generalize: boolean
      readonly cacheUrl: string
    }

type PlanRule =
  | 'flash'
  | 'wizard'
  | 'list-disks'
  | 'ipxe-exit'
  | 'flashed'
  | 'disk-allowed'
  | StopRule
  | 'held-back'
  | 'loop'
  | 'first-boot'
  | 'misfit'
  | 'capture'
  | 'disk-id'
  | Unready
  | DiskMismatch['why']

export interface PlanRuling {
  readonly rule: PlanRule
  readonly plan: Plan
  readonly mismatch: DiskMismatch | null
}

/** Changes nothing: `rememberPlan` (contact.ts) does. `features`: announced by the live system. */
export const decidePlan = (
  machine: Machine,
  surroundings: Surroundings,
  features: LiveFeatures = NO_FEATURES,
): PlanRuling =>
  planCapture(machine, surroundings, features) ??
  (isHeldBack(machine)
    ? interactive('held-back', HELD_BACK)
    : DECIDE[MODES[machine.boot_mode].does](machine, surroundings, features))

type Decide = (machine: Machine, surroundings: Surroundings, features: LiveFeatures) => PlanRuling

const DECIDE: Readonly<Record<ModePurpose, Decide>> = {
  'boot-disk': () => exit('ipxe-exit', 'This machine is set to boot its own disk.'),
  'open-wizard': () => interactive('wizard', null),
  'list-disks': () => rule('list-disks', { mode: 'inventory' }),
  flash: planFlash,
}

/** Null: no capture is due, or the disk may be half written, which comes first. */
function planCapture(
  machine: Machine,
  { cacheUrl }: Surroundings,
  features: LiveFeatures,
): PlanRuling | null {
  const { capture, known_disks } = machine
  if (capture === null || !isPending(capture) || isHalfWritten(machine)) return null
  if (!features.capture) return interactive('capture', OLD_CAPTURE_CLIENT)
  if (cacheUrl === null) return interactive('capture', NO_CACHE)
  const { disk_serial: serial, disk_seen: seen, name, generalize } = capture
  return (
    planDisk({ name: serial, seen: seen ?? null }, null, known_disks, features) ??
    rule('capture', { mode: 'capture', serial, ...keepSeen(seen), name, generalize, cacheUrl })
  )
}

const OLD_CAPTURE_CLIENT =
  'The live system is too old to capture disks. Install a newer one on the server.'
const NO_CACHE =
  'The capture cannot start, because the server has no image cache to upload the image to.'

/** A flash is planned only for exactly one disk, and never twice for a finished flash-once. */
function planFlash(
  machine: Machine,
  surroundings: Surroundings,
  features: LiveFeatures,
): PlanRuling {
  const disarmed = planDisarmed(machine, surroundings)
  if (disarmed !== null) return disarmed
  const { boot_mode, cycle, known_disks } = machine
  const readiness = checkReadiness(machine, surroundings)
  const isLoop = cycle.loop_suspected_at !== null
  const isHalf = isHalfWritten(machine)
  if (isUnwanted(readiness.why) && !isHalf) return exit(readiness.why, UNREADY[readiness.why])
  if (isLoop) return interactive('loop', LOOP)
  if (readiness.why !== null) {
    const reason = UNREADY[readiness.why]
    return interactive(readiness.why, isHalf ? `${reason} ${HALF_WRITTEN}` : reason)
  }
  const { image, target } = readiness
  const doubts =
    planDisk(target, image, known_disks, features) ??
    planObstacle(machine, image, surroundings, features)
  if (doubts !== null) return doubts
  const registerUefiBoot =
    flashesAlways(boot_mode) && surroundings.settings.boot_disk_once_after_flash
  const firstBoot = machine.first_boot !== null
  const delta = askDelta(surroundings)
  const { grow } = machine
  const { name: serial, seen } = target
  const options = { registerUefiBoot, grow, firstBoot, ...delta, ...keepSeen(seen) }
  return rule('flash', { mode: 'flash', image, serial, ...options })
}

function planObstacle(
  machine: Machine,
  image: CatalogEntry,
  { findTemplate, recallMisfit, settings: { tokens } }: Surroundings,
  features: LiveFeatures,
): PlanRuling | null {
  const misfit = recallMisfit?.(image, machine) ?? null
  if (misfit !== null) return interactive('misfit', misfit)
  if (machine.first_boot === null) return null
  const reason = findTemplateObstacle(machine, { findTemplate, tokens, features })
  return reason === null ? null : interactive('first-boot', reason)
}

const keepSeen = (seen: PickedDisk | null | undefined): { readonly seen?: PickedDisk } =>
  seen ? { seen } : {}

/** Null: it is exactly one disk, and the client finds it by this name. */
function planDisk(
  target: DiskPick,
  image: CatalogEntry | null,
  disks: readonly InventoryDisk[] | null,
  { diskId }: LiveFeatures,
): PlanRuling | null {
  const mismatch = findDiskMismatch(disks, target, image)
  const isOld = diskId !== true && mismatch?.why === 'disk-missing' && isListBlind(target, disks)
  if (mismatch !== null && !isOld) return doubt(mismatch, target.name)
  // No deployed client that announces nothing lists WWNs or places.
  const isKnowing = diskId ?? disks !== null
  return isOld || (!isKnowing && wantsDiskId(target.name, disks))
    ? interactive('disk-id', OLD_DISK_CLIENT)
    : null
}

const OLD_DISK_CLIENT =
  'The live system is too old to find a disk by its WWN, EUI or place. Install a newer one on the server.'

const askDelta = ({ settings }: Surroundings): { readonly delta?: true } =>
  settings.delta === true ? { delta: true } : {}

/** Plans for an order that has ended; null: the cycle goes on. */
function planDisarmed(machine: Machine, surroundings: Surroundings): PlanRuling | null {
  const { boot_mode, cycle } = machine
  if (flashesOnce(boot_mode) && cycle.finished_at !== null) {
    return exit('flashed', 'This machine was flashed once, as it should.')
  }
  if (cycle.disk_allowed_at !== null) {
    return exit('disk-allowed', 'An operator had this machine boot its own disk.')
  }
  const rule =
    cycle.disarmed_at === null
      ? findStop(machine, surroundings)
      : DISARMED_RULES[cycle.disarmed_by ?? 'restored']
  return rule === null ? null : exit(rule, STOPPED[rule])
}

/** There is nothing that a person in front of the machine could go on with. */
const isUnwanted = (why: Unready | null): why is 'locked' | 'no-image' =>
  why === 'locked' || why === 'no-image'

/** Each address has a token for one use. */
type PlanTickets = {
  readonly [Use in 'first_boot' | 'upload']?: { readonly url: string; readonly token: string }
}

interface PlanExtras extends PlanTickets {
  readonly sources?: readonly { readonly url: string }[]
}

/** The flat object of the deployed clients, which also holds itself under `plan`. */
export function renderPlan(
  plan: Plan,
  base: string,
  extras: PlanExtras = {},
): Readonly<Record<string, unknown>> {
  const flat = { ...renderFlat(plan, base), ...extras }
  return { ...flat, plan: flat }
}

/** As the machine reaches the cache service. */
export const renderUploadUrl = (cacheUrl: string, base: string): string =>
  replaceLoopback(`${renderCacheBase(cacheUrl)}/captures`, new URL(base).hostname)

const renderFlash = (plan: Extract<Plan, { mode: 'flash' }>, base: string) => ({
  mode: plan.mode,
  image: reachableUrl(plan.image, base),
  target_disk_serial: plan.serial,
  ...(plan.seen !== undefined ? { target_disk: plan.seen } : {}),
  name: plan.image.name,
  ...(plan.image.sha256 === null ? {} : { disk_image_sha: plan.image.sha256 }),
  ...(plan.image.indexSha256 ? { index_sha256: plan.image.indexSha256 } : {}),
  ...(plan.image.anyContent === true ? { any_content: true } : {}),
  ...(plan.image.format === '' ? {} : { format: plan.image.format }),
  ...(plan.image.sizeBytes ? { size_bytes: plan.image.sizeBytes } : {}),
  ...(plan.registerUefiBoot ? { register_uefi_boot: true } : {}),
  ...(plan.grow ? { grow: true } : {}),
  ...(plan.delta === true ? { delta: true } : {}),
})

function renderFlat(plan: Plan, base: string): Readonly<Record<string, unknown>> {
  switch (plan.mode) {
    case 'flash':
      return renderFlash(plan, base)
    case 'interactive': {
      const catalog = `${base}/catalog.toml`
      return { mode: plan.mode, catalog, ...(plan.reason === null ? {} : { reason: plan.reason }) }
    }
    case 'inventory':
      return { mode: plan.mode }
    case 'exit':
      return { mode: plan.mode, reason: plan.reason }
    case 'capture': {
      const { mode, serial: source_disk_serial, seen, name, generalize } = plan
      const source = { source_disk_serial, ...(seen !== undefined ? { source_disk: seen } : {}) }
      return { mode, ...source, name, ...(generalize ? { generalize } : {}) }
    }
  }
}

/** The address changes only where a machine calls the server by another name. */
const reachable = new WeakMap<CatalogEntry, { readonly base: string; readonly url: string }>()

function reachableUrl(image: CatalogEntry, base: string): string {
  const known = reachable.get(image)
  if (known?.base === base) return known.url
  const url = replaceLoopback(image.url, new URL(base).hostname)
  reachable.set(image, { base, url })
  return url
}

const LOOP =
  'This machine booted the live system repeatedly without reporting that it was done. ' +
  'Its disk may be half written. Find out what is wrong, then flash it manually.'

const HALF_WRITTEN = 'A flash never finished, so the disk may be half written.'

const rule = (name: PlanRule, plan: Plan, mismatch: DiskMismatch | null = null): PlanRuling => ({
  rule: name,
  plan,
  mismatch,
})

const exit = (name: PlanRule, reason: string) => rule(name, { mode: 'exit', reason })

const interactive = (name: PlanRule, reason: string | null) =>
  rule(name, { mode: 'interactive', reason })

const doubt = (mismatch: DiskMismatch, serial: string) =>
  rule(
    mismatch.why,
    { mode: 'interactive', reason: renderDiskMismatch(mismatch, serial) },
    mismatch,
  )
