/** Current line: decides the response of `GET /pxe/{mac}` ("boot_mode values and the script returned"). */
import { type BootRule, MODES, RULES, flashesOnce, type ModePurpose } from './boot-mode.ts'
import {
  decideArch,
  DEFAULT_DRIVE,
  isBootable,
  type BootDecision,
  type LiveSet,
  type LiveSets,
  type ToDisk,
  type ToEntry,
  type ToWait,
} from '#fleet/boot/rules/boot-decision.ts'
import { isPending } from '#engine/capture/rules/order.ts'
import type { FlashSlot } from '#engine/inventory/rules/machine.ts'
import { renderQueuePosition, WAIT_SECONDS, type QueuePosition } from './queue.ts'
import { DISARMED_RULES, findStop, type DisarmedRule } from './disarming.ts'
import { isHalfWritten, isHeldBack, type Machine } from './machine.ts'
import type { Surroundings } from './surroundings.ts'
import { checkReadiness } from './target.ts'
import { isExpired, isWaiting } from '#fleet/once/rules/once-order.ts'
import { fillArguments, findOnceObstacle } from './once.ts'
import { renderHyphens } from '#kit/net/rules/mac.ts'

export interface BootRuling {
  readonly rule: BootRule
  readonly reason: string
  readonly decision: BootDecision
  /** Where it stands in line; null: it does not have to wait. */
  readonly place: QueuePosition | null
  readonly counts: boolean
  /** It starts the cycle again: the disks have become too old. */
  readonly restarts: boolean
  /** Whether this contact records `netboot.loop.suspected`. */
  readonly alarms: boolean
  /** A capture that started the live system too often ends with this contact. */
  readonly givesUpCapture: boolean
  /** Why what was ordered is not booted once; null: it is, or nothing was ordered. */
  readonly onceObstacle: string | null
}

const USUAL = {
  place: null,
  counts: false,
  restarts: false,
  alarms: false,
  givesUpCapture: false,
  onceObstacle: null,
} as const

/** Changes nothing: `rememberOffer` (contact.ts) makes the record that follows from the decision. */
export function decideBoot(machine: Machine, surroundings: Surroundings): BootRuling {
  const capture = decideCapture(machine, surroundings)
  const once = decideOnce(machine, surroundings)
  if (once.decision !== null) {
    const { reason } = RULES.once
    return { ...USUAL, rule: 'once', reason, decision: once.decision }
  }
  const rule = decideRule(machine, surroundings, capture === 'due')
  const ruling = {
    ...USUAL,
    rule,
    reason: RULES[rule].reason,
    restarts: rule === 'disks-stale',
    alarms:
      (rule === 'loop-to-disk' || rule === 'loop-to-person') &&
      machine.cycle.loop_suspected_at === null,
    givesUpCapture: capture === 'looping',
    onceObstacle: once.obstacle,
  }
  if (RULES[rule].starts === 'disk') return { ...ruling, decision: toDisk(machine) }
  const sets = pickSets(surroundings.sets(), machine.arch)
  const escape = chooseEscape(machine, surroundings)
  if (sets === null) return { ...ruling, ...withoutLiveSystem(machine), decision: escape }
  const { base } = surroundings
  const others = surroundings.others?.() ?? []
  const place = RULES[rule].flashes ? surroundings.placeOf(machine) : null
  if (place !== null) {
    const saying = renderQueuePosition(place)
    const decision = { kind: 'to-wait', base, others, seconds: WAIT_SECONDS, saying } as const
    return { ...ruling, rule: 'queued', reason: RULES.queued.reason, place, decision }
  }
  return {
    ...ruling,
    counts: RULES[rule].counted,
    decision: {
      kind: 'to-live',
      base,
      others,
      sets,
      console: machine.serial_console,
      token: null,
      otherwise: escape,
    },
  }
}

interface DecidedOnce {
  readonly obstacle: string | null
  /** Null: nothing else is booted. */
  readonly decision: ToEntry | null
}

/** It comes before the mode, and changes nothing of its cycle. */
function decideOnce(machine: Machine, s: Surroundings): DecidedOnce {
  const { once } = machine
  if (!isWaiting(once) || isExpired(once, s.now)) return { obstacle: null, decision: null }
  const known = s.findEntry?.(once.entry) ?? null
  const { tokens } = s.settings
  const { findTemplate } = s
  const obstacle = findOnceObstacle(machine, once.entry, known, { tokens, findTemplate })
  if (obstacle !== null || known === null) return { obstacle, decision: null }
  const { entry } = known
  const path = `/pxe/${renderHyphens(machine.mac)}/once/`
  const decision: ToEntry = {
    kind: 'to-entry',
    base: s.base,
    entry: entry.name,
    path,
    ticket: null,
    starts: entry.program === null ? 'kernel' : 'program',
    hasInitrd: entry.initrd !== null,
    args: (answers) => fillArguments(entry, answers),
    firmware: entry.firmware,
    processor: entry.processor,
    otherwise: toDisk(machine),
  }
  return { obstacle: null, decision }
}

/** A half-written disk decides before what a restored state says. */
function decideRule(machine: Machine, surroundings: Surroundings, isCaptured: boolean): BootRule {
  if (isCaptured) return 'capture'
  return isHeldBack(machine)
    ? 'held-back'
    : DECIDE[MODES[machine.boot_mode].does](machine, surroundings)
}

/** A capture comes before the mode, but never before the end of a flash (docs/decisions/0022). */
function decideCapture(machine: Machine, { settings }: Surroundings): 'due' | 'looping' | null {
  const { capture } = machine
  if (capture === null || !isPending(capture) || isHalfWritten(machine)) return null
  return capture.offers >= settings.loop_limit ? 'looping' : 'due'
}

export function decideSlot({ rule }: BootRuling): FlashSlot {
  if (rule === 'queued') return 'queued'
  return RULES[rule].flashes ? 'offered' : 'passed'
}

const DECIDE: Readonly<Record<ModePurpose, (m: Machine, s: Surroundings) => BootRule>> = {
  'boot-disk': () => 'ipxe-exit',
  'open-wizard': () => 'wizard',
  'list-disks': decideInventory,
  flash: decideFlash,
}

/** After each list of disks the machine boots its disk at least once, however short the refresh. */
function decideInventory({ cycle, known_disks_at }: Machine, s: Surroundings): BootRule {
  if (cycle.finished_at === null) {
    return cycle.offers >= s.settings.loop_limit ? 'loop-to-disk' : 'disks-wanted'
  }
  if (cycle.owes_disk_boot) return 'disks-known'
  return isStale(known_disks_at, s) ? 'disks-stale' : 'disks-known'
}

/** A half-written disk is never booted, whatever has changed, unless an operator says so. */
function decideFlash(machine: Machine, s: Surroundings): BootRule {
  const { cycle } = machine
  const isLoop = cycle.offers >= s.settings.loop_limit
  const ended = decideEnded(machine)
  if (ended !== null) return ended
  if (isHalfWritten(machine)) return isLoop ? 'loop-to-person' : 'flash-retry'
  const stopped = findStop(machine, s)
  if (stopped !== null) return stopped
  if (s.settings.boot_disk_once_after_flash && cycle.owes_disk_boot) return 'disk-after-flash'
  const unready = checkReadiness(machine, s).why
  if (unready !== null) return unready
  return isLoop ? 'loop-to-disk' : 'flash'
}

/** Why a machine in a flash mode is not flashed any more; null: its order is open. */
function decideEnded({
  boot_mode,
  cycle,
}: Machine): 'flashed' | 'disk-allowed' | DisarmedRule | null {
  if (flashesOnce(boot_mode) && cycle.finished_at !== null) return 'flashed'
  if (cycle.disk_allowed_at !== null) return 'disk-allowed'
  return cycle.disarmed_at === null ? null : DISARMED_RULES[cycle.disarmed_by ?? 'restored']
}

/**
 * Whether a machine may boot its disk while no server leads: it has no order of any kind, and its
 * disk is not half written. A server that stands by has only the record: it knows neither images
 * nor who flashes.
 */
export function mayBootDisk(machine: Machine): boolean {
  if (isPending(machine.capture) || isWaiting(machine.once) || isHalfWritten(machine)) return false
  const { does } = MODES[machine.boot_mode]
  if (does === 'list-disks') return machine.cycle.finished_at !== null
  return does === 'boot-disk' || (does === 'flash' && decideEnded(machine) !== null)
}

function isStale(at: string | null, { now, settings }: Surroundings): boolean {
  if (at === null) return true
  const age = Temporal.Instant.from(now).since(Temporal.Instant.from(at))
  return age.total('seconds') >= settings.inventory_refresh
}

export const toDisk = ({ sanboot_drive }: Machine): ToDisk => ({
  kind: 'to-disk',
  drive: sanboot_drive ?? DEFAULT_DRIVE,
})

/** Without a live system: the disk, unless it may be half written. */
function chooseEscape(machine: Machine, surroundings: Surroundings): ToDisk | ToWait {
  if (!isHalfWritten(machine)) return toDisk(machine)
  const { base } = surroundings
  const others = surroundings.others?.() ?? []
  return { kind: 'to-wait', base, others, seconds: 30, saying: 'the disk may be half written' }
}

function withoutLiveSystem(machine: Machine): Pick<BootRuling, 'rule' | 'reason'> {
  const rule = isHalfWritten(machine) ? 'half-written' : 'no-live-system'
  return { rule, reason: RULES[rule].reason }
}

const usable = (set: LiveSet | null) => (set !== null && isBootable(set) ? set : null)

function pickSets(sets: LiveSets, arch: string | null): LiveSets | null {
  const own = decideArch(arch)
  const x86_64 = own === 'x86_64' ? usable(sets.x86_64) : null
  // Who says nothing is asked by the script.
  const arm64 = own === 'arm64' || arch === null ? usable(sets.arm64) : null
  return x86_64 === null && arm64 === null ? null : { x86_64, arm64 }
}
