/** Counts the machines that flash and queues the others; its only source is their records. */
import { epochOf } from '../../kit/foundation/instants.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import type { FlashSlot } from '../../engine/inventory/rules/machine.ts'
import type { Machine } from './rules/machine.ts'
import {
  compareQueued,
  holdsFlashSlot,
  isWaiting,
  type QueuePosition,
  type QueueRules,
} from './rules/queue.ts'

export type FlashGate = ReturnType<typeof createFlashGate>

interface FlashGateDependencies {
  /** Finds a machine as stored, from memory. */
  find(mac: Mac): Machine | null
  settings(): QueueRules
  /** The fleet as it was stored at the start: machines that waited or flashed then keep their places. */
  readonly fleet: readonly Machine[]
  /** Returns the milliseconds since this process heard of the machine; null: it never did. */
  silenceOf(mac: Mac): number | null
  now(): Date
  /** The milliseconds of a clock that nobody sets; the process's own unless given. */
  elapsed?(): number
}

/** A place that was given to a machine, until its record says so. */
interface QueueClaim {
  readonly cycle: string
  readonly offers: number
  /** The time by `elapsed`. */
  readonly at: number
}

/** Milliseconds after which a record that is not stored yet never will be. */
const CLAIM_MS = 10_000
/** The order of the queue may be this many milliseconds old; who is first is always known at once. */
const ORDER_MS = 1000

/**
 * Holds the addresses of machines that may flash or wait, and asks their records each time: done,
 * failed, edited, deleted and silent ones give their places back by what is stored of them. A clock
 * that is set frees no place and keeps none: silence is counted by one that nobody sets.
 */
export function createFlashGate(given: FlashGateDependencies) {
  const { find, settings, fleet, elapsed = () => performance.now() } = given
  const flashing = new Map<Mac, QueueClaim | null>()
  /**
   * The waiting machines in the order in which they came, with the time of that by `elapsed`: a machine
   * that begins to wait is here before its record says so.
   */
  const waiting = new Map<Mac, number>()
  let order: { readonly at: number; readonly places: Map<Mac, number> } | null = null
  for (const { mac } of fleet.filter(isQueued).toSorted(compareQueued)) waiting.set(mac, -Infinity)
  for (const machine of fleet) {
    if (!isQueued(machine) && isBegun(machine)) flashing.set(machine.mac, null)
  }
  const silenceOf = createSilence(given, elapsed)

  function holds(mac: Mac): boolean {
    const claim = flashing.get(mac)
    if (claim === undefined) return false
    const machine = find(mac)
    if (claim !== null && isOpen(claim, machine, elapsed())) return true
    return machine !== null && holdsFlashSlot(machine, silenceOf(machine), settings())
  }

  function countFlashing(): number {
    let count = 0
    for (const mac of flashing.keys()) {
      if (holds(mac)) count += 1
      else flashing.delete(mac)
    }
    return count
  }

  /** Returns the positions of those who still wait, from 0. */
  function line(): Map<Mac, number> {
    const at = elapsed()
    if (order !== null && at - order.at < ORDER_MS) return order.places
    const places = new Map<Mac, number>()
    for (const [mac, since] of waiting) {
      const machine = find(mac)
      if (machine !== null && isWaiting(machine, silenceOf(machine))) places.set(mac, places.size)
      else if (at - since > CLAIM_MS) waiting.delete(mac)
    }
    order = { at, places }
    return places
  }

  function enqueue(mac: Mac): void {
    if (!waiting.has(mac)) waiting.set(mac, elapsed())
    // A machine that begins to wait is put at the end.
    if (order !== null && !order.places.has(mac)) order.places.set(mac, order.places.size)
  }

  return {
    /** Returns the position of a machine in the queue; null: it may flash now. Asking changes nothing. */
    placeOf({ mac }: Machine): QueuePosition | null {
      const { max_flashes } = settings()
      if (max_flashes === 0 || holds(mac)) return null
      const [busy, places] = [countFlashing(), line()]
      const known = places.get(mac)
      const [ahead, isNew] = [known ?? places.size, known === undefined]
      if (ahead < max_flashes - busy) return null
      return { place: ahead + 1, waiting: places.size + (isNew ? 1 : 0), flashing: busy, isNew }
    },
    /** Takes in what was decided of a machine's place: that holds at once, before the record is on disk. */
    assign(machine: Machine, slot: FlashSlot): void {
      const { mac } = machine
      if (slot === 'queued') return enqueue(mac)
      if (slot === 'released') return void flashing.delete(mac)
      if (waiting.delete(mac)) order = null
      claimPlace(flashing, machine, slot, elapsed())
    },
    /** Counts the machines that flash and those that wait. */
    count: () => ({ flashing: countFlashing(), waiting: line().size }),
  }
}

/**
 * Returns the milliseconds since a machine was heard of. How long one that has not come since the start
 * was silent before it, only the clock on the wall says; a time that lies ahead says nothing.
 */
function createSilence(
  { silenceOf, now }: Pick<FlashGateDependencies, 'silenceOf' | 'now'>,
  elapsed: () => number,
) {
  const start = { at: now().getTime(), elapsed: elapsed() }
  return ({ mac, last_seen_at, updated_at }: Machine): number =>
    silenceOf(mac) ??
    Math.max(0, start.at - epochOf(last_seen_at ?? updated_at)) + elapsed() - start.elapsed
}

const isQueued = ({ cycle }: Machine) => cycle.queued_at !== null

/** Updates the flashing machines, and what was claimed for them, after one more decision. */
function claimPlace(
  flashing: Map<Mac, QueueClaim | null>,
  { mac, cycle }: Machine,
  slot: 'offered' | 'passed' | 'planned',
  at: number,
): void {
  if (slot === 'offered') {
    flashing.set(mac, { cycle: cycle.started_at, offers: cycle.offers, at })
  } else if (slot === 'planned') {
    if (!flashing.has(mac)) flashing.set(mac, null)
  } else if (flashing.get(mac) !== null) {
    // The decision that claimed a place has been replaced by another one.
    flashing.delete(mac)
  }
}

/**
 * Says whether the record alone, which is all that a restart leaves, has a flash that began; what was
 * released stays so.
 */
const isBegun = (machine: Machine): boolean => {
  const { offers, planned, finished_at } = machine.cycle
  return finished_at === null && (planned || (offers > 0 && !isTurnedAway(machine)))
}

/**
 * Says whether the machine asked for its plan after the newest offer and that was no flash, or whether
 * its next plan will be none.
 */
const isTurnedAway = ({ locked, planned_at, cycle: { offered_at } }: Machine): boolean =>
  locked || (planned_at !== null && offered_at !== null && !isBefore(planned_at, offered_at))

const isBefore = (a: string, b: string) => Temporal.Instant.compare(a, b) < 0

/** Whether the record does not yet hold what was claimed. */
const isOpen = ({ cycle, offers, at }: QueueClaim, machine: Machine | null, now: number): boolean =>
  machine !== null &&
  machine.cycle.started_at === cycle &&
  machine.cycle.offers < offers &&
  now - at < CLAIM_MS
