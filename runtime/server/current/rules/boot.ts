/** Current line: decides the response of `GET /pxe/{mac}` ("boot_mode values and the script returned"). */
import {
  decideArch,
  DEFAULT_DRIVE,
  isBootable,
  type BootDecision,
  type LiveSet,
  type LiveSets,
  type ToDisk,
  type ToWait,
} from '../../../fleet/boot/rules/boot-decision.ts'
import { isPending } from '../../../engine/capture/rules/order.ts'
import type { FlashSlot } from '../../../engine/inventory/rules/machine.ts'
import { renderQueuePosition, WAIT_SECONDS, type QueuePosition } from './queue.ts'
import { isHalfWritten, isHeldBack, type BootMode, type Machine } from './machine.ts'
import type { Surroundings } from './surroundings.ts'
import { checkReadiness, type Unready } from './target.ts'

export type BootRule =
  | 'ipxe-exit'
  | 'wizard'
  | 'disks-wanted'
  | 'disks-stale'
  | 'disks-known'
  | 'flash'
  | 'flash-retry'
  | 'flashed'
  | 'disk-allowed'
  | 'disarmed'
  | 'held-back'
  | 'disk-after-flash'
  | 'loop-to-disk'
  | 'loop-to-person'
  | 'no-live-system'
  | 'half-written'
  | 'queued'
  | 'capture'
  | Unready

export interface BootRuling {
  readonly rule: BootRule
  /** One sentence: why this machine gets this. */
  readonly reason: string
  readonly decision: BootDecision
  /** Where it stands in line; null: it does not have to wait. */
  readonly place: QueuePosition | null
  /** A live boot that the guard counts. */
  readonly counts: boolean
  /** It starts the cycle again: the disks have become too old. */
  readonly restarts: boolean
  /** The guard steps in with this very contact: `netboot.loop.suspected`. */
  readonly alarms: boolean
  /** A capture was ordered and started the live system too often: it is given up with this contact. */
  readonly givesUpCapture: boolean
}

/** What the machine gets now. Pure: `noteOffer` (contact.ts) makes the record that follows from it. */
export function decideBoot(machine: Machine, surroundings: Surroundings): BootRuling {
  const capture = decideCapture(machine, surroundings)
  const rule = decideRule(machine, surroundings, capture === 'due')
  const sets = pickSets(surroundings.sets, machine.arch)
  const isLive = GOES_LIVE.has(rule)
  const ruling = {
    rule,
    place: null,
    reason: REASONS[rule],
    counts: false,
    restarts: rule === 'disks-stale',
    alarms:
      (rule === 'loop-to-disk' || rule === 'loop-to-person') &&
      machine.cycle.loop_suspected_at === null,
    givesUpCapture: capture === 'looping',
  }
  const escape = chooseEscape(machine, surroundings)
  if (!isLive) return { ...ruling, decision: toDisk(machine) }
  if (sets === null) return { ...ruling, ...withoutLive(machine), decision: escape }
  const { base } = surroundings
  const place = FLASHING.has(rule) ? surroundings.placeOf(machine) : null
  if (place !== null) {
    const saying = renderQueuePosition(place)
    const decision = { kind: 'to-wait', base, seconds: WAIT_SECONDS, saying } as const
    return { ...ruling, rule: 'queued', reason: REASONS.queued, place, decision }
  }
  return {
    ...ruling,
    counts: !UNCOUNTED.has(rule),
    decision: {
      kind: 'to-live',
      base,
      sets,
      console: machine.serial_console,
      token: null,
      otherwise: escape,
    },
  }
}

/** What a restored state says comes after a disk that may be half written. */
function decideRule(machine: Machine, surroundings: Surroundings, isCaptured: boolean): BootRule {
  if (isCaptured) return 'capture'
  return isHeldBack(machine) ? 'held-back' : DECIDE[machine.boot_mode](machine, surroundings)
}

/** A capture comes before the mode, but never before the end of a flash (docs/decisions/0022). */
function decideCapture(machine: Machine, { settings }: Surroundings): 'due' | 'looping' | null {
  const { capture } = machine
  if (!isPending(capture) || isHalfWritten(machine)) return null
  return capture.offers >= settings.loop_limit ? 'looping' : 'due'
}

/** A person is there, or the order of a capture counts its own. */
const UNCOUNTED: ReadonlySet<BootRule> = new Set(['wizard', 'capture', 'held-back'])

/** A disk is written without a person there: where there is a limit, one after the other. */
const FLASHING: ReadonlySet<BootRule> = new Set(['flash', 'flash-retry'])

/** What the ruling means for the machine's place among those that flash. */
export function decideSlot({ rule }: BootRuling): FlashSlot {
  if (rule === 'queued') return 'queued'
  return FLASHING.has(rule) ? 'offered' : 'passed'
}

/** Why a machine gets what it gets, in a sentence. */
const REASONS: Readonly<Record<BootRule, string>> = {
  'ipxe-exit': 'Its mode is to boot its own disk.',
  wizard: 'Its mode is to open the wizard for the person in front of it.',
  'disks-wanted': 'Its disks have not been listed yet.',
  'disks-stale': 'The list of its disks is older than inventory_refresh.',
  'disks-known': 'Its disks are known.',
  flash: 'An image and a disk are selected: it is flashed.',
  'flash-retry': 'Its last flash never reported that it was done: it is flashed again.',
  flashed: 'It was flashed once, as configured.',
  'disk-allowed': 'An operator chose to boot its disk, although a flash never reported its end.',
  disarmed:
    'An older state of the server was restored, which arms no machine: it is flashed once an operator chooses Flash again.',
  'held-back':
    'A flash of it began and never reported its end, and an older state of the server was restored since: the disk may be half written.',
  'disk-after-flash': 'It was just flashed, and boot_disk_once_after_flash is on.',
  'loop-to-disk': 'It started the live system too often without finishing; nothing was written.',
  'loop-to-person':
    'Its flash was started too often without finishing: the disk may be half written.',
  'no-live-system': 'The server has no live system for this machine.',
  'half-written':
    'The end of a flash was never reported: the disk may be half written; no live system can flash it again.',
  capture: 'A capture of one of its disks was ordered.',
  queued: 'max_flashes machines are being flashed already: it waits for its turn.',
  locked: 'Locked, so it is not flashed.',
  'no-image': 'No image is assigned.',
  'unknown-image': 'The assigned image is not in the catalog.',
  'not-an-image': 'The assigned file is not a disk image.',
  'no-target': 'No target disk selected.',
}

/** The rules that start the live system. */
const GOES_LIVE: ReadonlySet<BootRule> = new Set([
  'wizard',
  'disks-wanted',
  'disks-stale',
  'flash',
  'flash-retry',
  'loop-to-person',
  'held-back',
  'capture',
])

const DECIDE: Readonly<Record<BootMode, (m: Machine, s: Surroundings) => BootRule>> = {
  'ipxe-exit': () => 'ipxe-exit',
  'flasher-tui': () => 'wizard',
  'flasher-inventory': decideInventory,
  'flasher-flash-always': decideFlash,
  'flasher-flash-once': decideFlash,
}

/** After each list of disks the machine boots its disk at least once, however short the refresh. */
function decideInventory({ cycle, known_disks_at }: Machine, s: Surroundings): BootRule {
  if (cycle.finished_at === null) {
    return cycle.offers >= s.settings.loop_limit ? 'loop-to-disk' : 'disks-wanted'
  }
  if (cycle.owes_disk_boot) return 'disks-known'
  return isStale(known_disks_at, s) ? 'disks-stale' : 'disks-known'
}

/**
 * The order counts: what may be half written is never booted, whatever else has become true, unless
 * an operator said so.
 */
function decideFlash(machine: Machine, s: Surroundings): BootRule {
  const { cycle } = machine
  const isLoop = cycle.offers >= s.settings.loop_limit
  const ended = decideEnded(machine)
  if (ended !== null) return ended
  if (isHalfWritten(machine)) return isLoop ? 'loop-to-person' : 'flash-retry'
  if (s.settings.boot_disk_once_after_flash && cycle.owes_disk_boot) return 'disk-after-flash'
  const unready = checkReadiness(machine, s).why
  if (unready !== null) return unready
  return isLoop ? 'loop-to-disk' : 'flash'
}

/** Null: its order is open. */
function decideEnded({
  boot_mode,
  cycle,
}: Machine): 'flashed' | 'disk-allowed' | 'disarmed' | null {
  if (boot_mode === 'flasher-flash-once' && cycle.finished_at !== null) return 'flashed'
  if (cycle.disk_allowed_at !== null) return 'disk-allowed'
  return cycle.disarmed_at === null ? null : 'disarmed'
}

function isStale(at: string | null, { now, settings }: Surroundings): boolean {
  if (at === null) return true
  const age = Temporal.Instant.from(now).since(Temporal.Instant.from(at))
  return age.total('seconds') >= settings.inventory_refresh
}

const toDisk = ({ sanboot_drive }: Machine): ToDisk => ({
  kind: 'to-disk',
  drive: sanboot_drive ?? DEFAULT_DRIVE,
})

/** What to boot when the live system is unavailable: the disk, unless it may be half written. */
const chooseEscape = (machine: Machine, { base }: Surroundings): ToDisk | ToWait =>
  isHalfWritten(machine)
    ? { kind: 'to-wait', base, seconds: 30, saying: 'the disk may be half written' }
    : toDisk(machine)

function withoutLive(machine: Machine): Pick<BootRuling, 'rule' | 'reason'> {
  const rule = isHalfWritten(machine) ? 'half-written' : 'no-live-system'
  return { rule, reason: REASONS[rule] }
}

const usable = (set: LiveSet | null) => (set !== null && isBootable(set) ? set : null)

/** The sets that the machine may need, by what it said of itself; null: none. */
function pickSets(sets: LiveSets, arch: string | null): LiveSets | null {
  const own = decideArch(arch)
  const x86_64 = own === 'x86_64' ? usable(sets.x86_64) : null
  // Who says nothing is asked by the script.
  const arm64 = own === 'arm64' || arch === null ? usable(sets.arm64) : null
  return x86_64 === null && arm64 === null ? null : { x86_64, arm64 }
}
