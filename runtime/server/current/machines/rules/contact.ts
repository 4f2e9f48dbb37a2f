/** Current line: how a machine's own contacts change its record ("Transitions"). */
import { isDeepStrictEqual } from 'node:util'
import { DISCOVERED_MODE, MODES, flashesAlways, isFlashMode } from './boot-mode.ts'
import { endOrder, isPending, planOrder, type CaptureResult } from '#engine/capture/rules/order.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { epochOf } from '#kit/foundation/instants.ts'
import { keepPick, type Inventory } from '#engine/inventory/rules/machine.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { BootRuling } from './boot.ts'
import { expireOrder } from './disarming.ts'
import { startCycle } from './operator-edits.ts'
import { decideQueuedAt } from './queue.ts'
import { createMachine, targetOf, type Cycle, type Machine, parseHostname } from './machine.ts'
import type { Plan } from './plan.ts'
import { isExpired, isWaiting } from '#fleet/once/rules/once-order.ts'
import { decideOwner, describePlanned, type EndOwner } from './run.ts'

/** Where nothing changes, each function answers the very object it was given: nothing to store. */

export const discover = (mac: Mac, now: string): Machine => ({
  ...createMachine(mac, DISCOVERED_MODE, now),
  discovered_at: now,
})

/** Hostile: what the boot loader says of its machine in the query. */
interface Introduction {
  readonly buildarch?: string | undefined
  readonly hostname?: string | undefined
  readonly offered?: string | undefined
}

export function sight(
  machine: Machine,
  now: string,
  { buildarch = '', hostname = '' }: Introduction,
): Machine {
  const isArch = /^[a-z0-9_]{1,16}$/.test(buildarch)
  return change(machine, now, {
    discovered_at: machine.discovered_at ?? now,
    arch: isArch ? buildarch : machine.arch,
    hostname: (hostname === '' ? null : parseHostname(hostname)) ?? machine.hostname,
  })
}

/**
 * GRUB asks again within one boot if it could not start what it was `offered`. A live boot that
 * never began is not counted; what this contact is offered may be.
 */
export function takeBackOffer(machine: Machine, { offered }: Introduction): Machine {
  const { capture, cycle } = machine
  if (offered !== 'to-live') return machine
  if (isPending(capture) && capture.offers > 0) {
    return { ...machine, capture: { ...capture, offers: capture.offers - 1 } }
  }
  return cycle.offers > 0 ? { ...machine, cycle: { ...cycle, offers: cycle.offers - 1 } } : machine
}

export function rememberOffer(machine: Machine, ruling: BootRuling, now: string): Machine {
  if (ruling.rule === 'once') return rememberOnceOffer(machine, now)
  if (ruling.rule === 'capture') return rememberCaptureOffer(machine, ruling, now)
  const offered = rememberModeOffer(
    ruling.givesUpCapture ? giveUpCapture(machine, now) : machine,
    ruling,
    now,
  )
  return ruling.rule === 'expired' ? expireOrder(offered, now) : offered
}

/** Nothing of its cycle changes, so that the next boot is as it would have been. */
const rememberOnceOffer = (machine: Machine, now: string): Machine =>
  machine.once === null || machine.once.offered_at !== null
    ? machine
    : change(machine, now, { once: { ...machine.once, offered_at: now } })

/** A machine that comes again has booted what it was sent, or has come too late. */
export const endOnce = (machine: Machine, now: string): Machine =>
  machine.once === null || (isWaiting(machine.once) && !isExpired(machine.once, now))
    ? machine
    : change(machine, now, { once: null })

/** What is sent is booted, as far as is known here. */
export const rememberOnceUsed = (machine: Machine, now: string): Machine =>
  isWaiting(machine.once)
    ? change(machine, now, { once: { ...machine.once, used_at: now } })
    : machine

function rememberModeOffer(before: Machine, ruling: BootRuling, now: string): Machine {
  const machine = touch(ruling.restarts ? startCycle(before, now) : before, now)
  if (ruling.rule === 'queued') {
    return changeCycle(machine, now, { queued_at: decideQueuedAt(machine, ruling.place, now) })
  }
  if (ruling.decision.kind === 'to-wait') return machine
  const { cycle } = machine
  const bootsLiveSystem = ruling.decision.kind === 'to-live'
  return changeCycle(machine, now, {
    offers: cycle.offers + (ruling.counts ? 1 : 0),
    offered_at: isFlashOffer(ruling) ? now : cycle.offered_at,
    owes_disk_boot: false,
    loop_suspected_at: cycle.loop_suspected_at ?? (ruling.alarms ? now : null),
    failure: bootsLiveSystem ? null : cycle.failure,
    queued_at: null,
  })
}

/** Counts a capture's offer only where it is booted: without a live system, nothing was offered. */
function rememberCaptureOffer(machine: Machine, { decision }: BootRuling, now: string): Machine {
  const { capture } = machine
  if (!isPending(capture) || decision.kind !== 'to-live') return machine
  return change(machine, now, { capture: { ...capture, offers: capture.offers + 1 } })
}

function giveUpCapture(machine: Machine, now: string): Machine {
  const { capture } = machine
  if (!isPending(capture)) return machine
  return change(machine, now, { capture: endOrder(capture, 'failed', CAPTURE_LOOP, now) })
}

const CAPTURE_LOOP =
  'It started the live system too often without reporting the end of the capture.'

/** A report of a run that began before the order is about another one. */
export function rememberCaptureEnded(
  machine: Machine,
  { result, reason, startedAt }: CaptureEnded,
  now: string,
): Machine {
  const { capture } = machine
  const isOwn = startedAt === null || (capture !== null && startedAt >= capture.ordered_at)
  return isPending(capture) && isOwn
    ? change(machine, now, { capture: endOrder(capture, result, reason, now) })
    : machine
}

interface CaptureEnded {
  readonly result: CaptureResult
  readonly reason: string | null
  /** When its run was first heard of; null: unknown. */
  readonly startedAt: string | null
}

const isFlashOffer = ({ rule }: BootRuling) => rule === 'flash' || rule === 'flash-retry'

export const rememberBootFile = (machine: Machine, now: string): Machine =>
  isFlashMode(machine.boot_mode) || MODES[machine.boot_mode].does === 'list-disks'
    ? touch(change(machine, now, { saw_flasher_boot: true }), now)
    : machine

/** The record must be on disk before the answer is sent. */
export function rememberPlan(machine: Machine, plan: Plan, now: string): Machine {
  if (plan.mode === 'interactive') {
    return change(touch(machine, now), now, { planned_at: now, planned_as: null })
  }
  if (plan.mode === 'capture') return rememberCapturePlan(machine, now)
  if (plan.mode !== 'flash') return machine
  const begun = changeCycle(touch(machine, now), now, BEGUN)
  const planned = saysPlan(begun, plan.image)
    ? begun
    : { ...begun, planned_as: describePlanned(begun, plan.image), updated_at: now }
  // A client that asks again at once costs no write.
  return planned === machine && isJustPlanned(machine, now)
    ? machine
    : change(planned, now, { planned_at: now })
}

function rememberCapturePlan(machine: Machine, now: string): Machine {
  const { capture } = machine
  const planned = capture === null ? null : planOrder(capture, now)
  return planned === capture ? machine : change(machine, now, { capture: planned })
}

const AGAIN_MS = 1000

function isJustPlanned({ planned_at, cycle: { offered_at } }: Machine, now: string): boolean {
  if (planned_at === null || (offered_at !== null && offered_at > planned_at)) return false
  const age = epochOf(now) - epochOf(planned_at)
  return age >= 0 && age < AGAIN_MS
}

/**
 * A machine that writes without a plan of ours gets its place as if it had one. A post that comes
 * after the end of its flash changes nothing.
 */
export function rememberRunBegan(machine: Machine, now: string): Machine {
  const { finished_at, queued_at, offered_at } = machine.cycle
  const isAwaited = finished_at === null && (queued_at !== null || offered_at !== null)
  if (!isFlashMode(machine.boot_mode) || !isAwaited) return machine
  return changeCycle(touch(machine, now), now, BEGUN)
}

/** Machines ask again, and describing the plan costs more. */
const saysPlan = (machine: Machine, { ref, sha256 }: CatalogEntry): boolean =>
  machine.planned_as !== null &&
  machine.planned_as.order === machine.cycle.started_at &&
  machine.planned_as.image?.ref === ref &&
  machine.planned_as.image.sha256 === sha256 &&
  machine.planned_as.disk?.serial === targetOf(machine)?.name

const BEGUN = { planned: true, failure: null, queued_at: null } as const

/** The machine came since its cycle began: the end of a flash that it reports next is of this cycle. */
const touch = (machine: Machine, now: string): Machine =>
  machine.cycle.begun_at === null ? changeCycle(machine, now, { begun_at: now }) : machine

type ReportedInventory = Pick<Inventory, 'disks'> &
  Partial<Pick<Inventory, 'secureBoot' | 'bmcAddress' | 'ownSerials' | 'firmware'>>

/** `POST /pxe/{mac}/inventory`: replaces the whole list; fields that it lacks stay. */
export function rememberDisks(
  machine: Machine,
  { disks, secureBoot, bmcAddress, ownSerials, firmware: reads }: ReportedInventory,
  now: string,
): Machine {
  const secure_boot = secureBoot ?? machine.secure_boot
  const bmc_address = bmcAddress ?? machine.bmc_address
  const own_serials = ownSerials ?? machine.own_serials
  const firmware = reads ?? machine.firmware
  const target = targetOf(machine)
  const target_disk_seen = target === null ? null : keepPick(target, disks).seen
  const reported = { known_disks: disks, secure_boot, bmc_address, own_serials, firmware }
  const listed = { ...reported, known_disks_at: now, target_disk_seen }
  const known = { ...machine, ...listed, updated_at: now }
  const isAwaited =
    MODES[machine.boot_mode].does === 'list-disks' && machine.cycle.finished_at === null
  return isAwaited ? changeCycle(known, now, { finished_at: now, owes_disk_boot: true }) : known
}

/** Hardware that came after the flash says nothing new of its disks; whose it is, and what it starts, it does say. */
export function rememberLateHardware(machine: Machine, reported: Inventory): Machine {
  const own_serials = reported.ownSerials ?? machine.own_serials
  const firmware = reported.firmware ?? machine.firmware
  return isDeepStrictEqual([own_serials, firmware], [machine.own_serials, machine.firmware])
    ? machine
    : { ...machine, own_serials, firmware }
}

/** `POST /pxe/{mac}/done` never changes the mode. */
export function rememberDone(
  machine: Machine,
  now: string,
  owner: EndOwner = decideOwner(machine),
): Machine {
  const flashed = { ...machine, last_flashed_at: now, updated_at: now }
  switch (owner) {
    case 'other':
      return flashed
    case 'before':
      return endBefore(flashed, now)
    case 'carried':
      return endBefore(changeCycle(flashed, now, { carried: false }), now)
    case 'current': {
      const heard = { ...flashed, planned_as: null }
      return machine.cycle.disarmed_at === null ? endFlash(heard, now) : endDisarmed(heard, now)
    }
  }
}

/** `POST /pxe/{mac}/status` with `failed`. What was flashed before stays flashed. */
export const rememberFailure = (machine: Machine, reason: string | null, now: string): Machine =>
  machine.cycle.finished_at === null
    ? changeCycle(machine, now, { failure: { at: now, reason } })
    : machine

/** The same end, reported again, changes nothing: a flash that was planned since may have written by now. */
function endBefore(machine: Machine, now: string): Machine {
  const { cycle, planned_as } = machine
  if (cycle.before === null || cycle.before.finished_at !== null) return machine
  const isHeard = planned_as?.order !== cycle.started_at
  const heard = isHeard ? { ...machine, planned_as: null } : machine
  return changeCycle(heard, now, { carried: false, before: { ...cycle.before, finished_at: now } })
}

const endCarried = (machine: Machine, now: string): Machine =>
  changeCycle(machine, now, { carried: false, failure: null })

/** Its disk is whole, and it stays disarmed: `flasher-flash-always` too. */
const endDisarmed = (machine: Machine, now: string): Machine =>
  changeCycle(machine, now, { carried: false, planned: false, failure: null })

/** If its mode flashes no longer, only the end is noted. */
function endFlash(machine: Machine, now: string): Machine {
  if (!isFlashMode(machine.boot_mode)) return endCarried(machine, now)
  if (flashesAlways(machine.boot_mode)) {
    const armed = startCycle(machine, now)
    const before = { started_at: machine.cycle.started_at, finished_at: now }
    // A pause ends when an operator ends it.
    const { paused_at, batch } = machine.cycle
    const paused = paused_at === null ? {} : { paused_at, batch }
    const cycle = { ...armed.cycle, carried: false, before, owes_disk_boot: true, ...paused }
    return { ...armed, cycle }
  }
  return changeCycle({ ...machine, saw_flasher_boot: true }, now, {
    finished_at: machine.cycle.finished_at ?? now,
    owes_disk_boot: machine.cycle.finished_at === null,
    carried: false,
    failure: null,
  })
}

function change(machine: Machine, now: string, fields: Partial<Machine>): Machine {
  return holds(machine, fields) ? machine : { ...machine, ...fields, updated_at: now }
}

function changeCycle(machine: Machine, now: string, fields: Partial<Cycle>): Machine {
  if (holds(machine.cycle, fields)) return machine
  return { ...machine, cycle: { ...machine.cycle, ...fields }, updated_at: now }
}

function holds<T extends object>(before: T, fields: Partial<T>): boolean {
  for (const name in fields) if (before[name] !== fields[name]) return false
  return true
}
