/** Counts the machines that flash and queues the others; its only source is their records. */
import { epochOf } from '../../kit/foundation/instants.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import type { FlashSlot } from '../../engine/inventory/rules/machine.ts'
import type { Machine } from './rules/machine.ts'
import {
  compareQueued,
  holdsFlashSlot,
  isInLine,
  type QueuePosition,
  type QueueRules,
} from './rules/queue.ts'

export type FlashGate = ReturnType<typeof createFlashGate>

interface FlashGateDependencies {
  /** As stored; from memory. */
  find(mac: Mac): Machine | null
  settings(): QueueRules
  /** All of the fleet, at the start: who waited or flashed then goes on. */
  readonly fleet: readonly Machine[]
}

/** A place that was given, until the record says so. */
interface Claim {
  readonly cycle: string
  readonly offers: number
  readonly at: number
}

/** A record that was not stored by then never will be. */
const CLAIM_MS = 10_000
/** The order of the line may be this old; who is first is always known at once. */
const ORDER_MS = 1000

/**
 * Holds the addresses of machines that may flash or wait, and asks their records each time: done,
 * failed, edited, deleted and silent ones give their places back by what is stored of them.
 */
export function createFlashGate({ find, settings, fleet }: FlashGateDependencies) {
  const flashing = new Map<Mac, Claim | null>()
  /** Since when, in milliseconds: who begins to wait is in line before its record says so. */
  const waiting = new Map<Mac, number>()
  let order: { readonly at: number; readonly places: Map<Mac, number> } | null = null
  for (const machine of fleet) {
    if (machine.cycle.queued_at !== null) waiting.set(machine.mac, 0)
    else if (isBegun(machine)) flashing.set(machine.mac, null)
  }

  function holds(mac: Mac, now: string): boolean {
    const claim = flashing.get(mac)
    if (claim === undefined) return false
    const machine = find(mac)
    if (claim !== null && isOpen(claim, machine, now)) return true
    return machine !== null && holdsFlashSlot(machine, now, settings())
  }

  function countFlashing(now: string): number {
    let count = 0
    for (const mac of flashing.keys()) {
      if (holds(mac, now)) count += 1
      else flashing.delete(mac)
    }
    return count
  }

  /** Places from 0, of those who still wait. */
  function line(now: string): Map<Mac, number> {
    const at = epochOf(now)
    if (order !== null && Math.abs(at - order.at) < ORDER_MS) return order.places
    const members: Machine[] = []
    for (const [mac, since] of waiting) {
      const machine = find(mac)
      if (machine !== null && isInLine(machine, now)) members.push(machine)
      else if (Math.abs(at - since) > CLAIM_MS) waiting.delete(mac)
    }
    const places = new Map(members.toSorted(compareQueued).map(({ mac }, place) => [mac, place]))
    order = { at, places }
    return places
  }

  function enqueue(mac: Mac, at: number): void {
    if (!waiting.has(mac)) waiting.set(mac, at)
    // At the end of the line, which is where a machine that begins to wait stands.
    if (order !== null && !order.places.has(mac)) order.places.set(mac, order.places.size)
  }

  return {
    /** Null: it may flash now. Asking changes nothing. */
    placeOf({ mac }: Machine, now: string): QueuePosition | null {
      const { max_flashes } = settings()
      if (max_flashes === 0 || holds(mac, now)) return null
      const [busy, places] = [countFlashing(now), line(now)]
      const ahead = places.get(mac) ?? places.size
      if (ahead < max_flashes - busy) return null
      const total = places.size + (places.has(mac) ? 0 : 1)
      return { place: ahead + 1, waiting: total, flashing: busy }
    },
    /** What was decided of a machine's place: it holds at once, before the record is on disk. `at`: ms. */
    assign(machine: Machine, slot: FlashSlot, at: number): void {
      const { mac } = machine
      if (slot === 'queued') return enqueue(mac, at)
      if (slot === 'released') return void flashing.delete(mac)
      if (waiting.delete(mac)) order = null
      claimPlace(flashing, machine, slot, at)
    },
    /** How many flash and how many wait. */
    count: (now: string) => ({ flashing: countFlashing(now), waiting: line(now).size }),
  }
}

/** Flashing machines and what was claimed for them, after one more decision. */
function claimPlace(
  flashing: Map<Mac, Claim | null>,
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

/** By the record alone, which is all that a restart leaves: what was released stays so. */
const isBegun = (machine: Machine): boolean => {
  const { offers, planned, finished_at } = machine.cycle
  return finished_at === null && (planned || (offers > 0 && !isTurnedAway(machine)))
}

/** It asked for its plan after the newest offer and that was no flash; or its next plan will be none. */
const isTurnedAway = ({ locked, planned_at, cycle: { offered_at } }: Machine): boolean =>
  locked || (planned_at !== null && offered_at !== null && !isBefore(planned_at, offered_at))

const isBefore = (a: string, b: string) => Temporal.Instant.compare(a, b) < 0

/** Whether the record does not yet hold what was claimed. */
const isOpen = ({ cycle, offers, at }: Claim, machine: Machine | null, now: string): boolean =>
  machine !== null &&
  machine.cycle.started_at === cycle &&
  machine.cycle.offers < offers &&
  Math.abs(epochOf(now) - at) < CLAIM_MS
