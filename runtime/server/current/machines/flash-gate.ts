/** Counts the machines that flash and queues the others; its only source is their records. */
import { epochOf } from '#kit/foundation/instants.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { FlashSlot } from '#engine/inventory/rules/machine.ts'
import type { Machine } from './rules/machine.ts'
import {
  compareQueued,
  holdsFlashSlot,
  isWaiting,
  type QueuePosition,
  type QueueRules,
} from './rules/queue.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { SYSTEM } from '#fleet/state/journal.ts'
import type { Site } from '#server/routes/site.ts'
import { canExpire, expireOrder } from './rules/disarming.ts'
import { endOnce } from './rules/contact.ts'
import { describeOnceEnd } from './rules/machine-events.ts'
import { isExpired, isOver } from '#fleet/once/rules/once-order.ts'
import type { Surroundings } from './rules/surroundings.ts'

export type FlashGate = ReturnType<typeof createFlashGate>

interface FlashGateDependencies {
  /** From memory. */
  find(mac: Mac): Machine | null
  settings(): QueueRules
  /** As stored at the start: machines keep their places. */
  readonly fleet: readonly Machine[]
  /** Milliseconds since this process heard of the machine; null: never. */
  silenceOf(mac: Mac): number | null
  now(): Date
  /** Milliseconds, monotonic; the process's own unless given. */
  elapsed?(): number
}

/** A machine's place, until its record says so. */
interface QueueClaim {
  readonly cycle: string
  readonly offers: number
  /** By `elapsed`. */
  readonly at: number
}

/** Milliseconds after which an unstored record never will be stored. */
const CLAIM_MS = 10_000
/** Milliseconds for which the queue's order may be stale; who is first is known at once. */
const ORDER_MS = 1000

/**
 * Keeps addresses and asks the records each time: done, failed, edited, deleted and silent machines
 * give their places back. Silence is monotonic: a clock that is set frees no place and keeps none.
 */
export function createFlashGate(given: FlashGateDependencies) {
  const { find, settings, fleet, elapsed = () => performance.now() } = given
  const flashing = new Map<Mac, QueueClaim | null>()
  /** In order of arrival, with its time by `elapsed`; here before the record says so. */
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

  /** From 0. */
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
    if (order !== null && !order.places.has(mac)) order.places.set(mac, order.places.size)
  }

  return {
    /** Null: it may flash now. Changes nothing. */
    placeOf({ mac }: Machine): QueuePosition | null {
      const { max_flashes } = settings()
      if (max_flashes === 0 || holds(mac)) return null
      const [busy, places] = [countFlashing(), line()]
      const known = places.get(mac)
      const [ahead, isNew] = [known ?? places.size, known === undefined]
      if (ahead < max_flashes - busy) return null
      return { place: ahead + 1, waiting: places.size + (isNew ? 1 : 0), flashing: busy, isNew }
    },
    /** In effect at once, before the record is on disk. */
    assign(machine: Machine, slot: FlashSlot): void {
      const { mac } = machine
      if (slot === 'queued') return enqueue(mac)
      if (slot === 'released') return void flashing.delete(mac)
      if (waiting.delete(mac)) order = null
      claimPlace(flashing, machine, slot, elapsed())
    },
    count: () => ({ flashing: countFlashing(), waiting: line().size }),
  }
}

/** For machines not heard of since the start, by the wall clock; future times say nothing. */
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
    // Another decision has replaced the one that claimed the place.
    flashing.delete(mac)
  }
}

/** By the record alone, which is all that a restart leaves. */
const isBegun = (machine: Machine): boolean => {
  const { offers, planned, finished_at } = machine.cycle
  return finished_at === null && (planned || (offers > 0 && !isTurnedAway(machine)))
}

/** Its plan after the newest offer was no flash, or its next plan will be none. */
const isTurnedAway = ({ locked, planned_at, cycle: { offered_at } }: Machine): boolean =>
  locked || (planned_at !== null && offered_at !== null && !isBefore(planned_at, offered_at))

const isBefore = (a: string, b: string) => Temporal.Instant.compare(a, b) < 0

const isOpen = ({ cycle, offers, at }: QueueClaim, machine: Machine | null, now: number): boolean =>
  machine !== null &&
  machine.cycle.started_at === cycle &&
  machine.cycle.offers < offers &&
  now - at < CLAIM_MS

// Ends orders to flash that nobody began within `[pxe] armed_hours`, by a clock that is never set back.

interface OrderClockDependencies {
  /** As stored at the start. */
  readonly fleet: readonly Machine[]
  now(): Date
  /** Milliseconds, monotonic; the process's own unless given. */
  elapsed?(): number
}

/** More than the clocks of servers differ: a clock further behind was set back. */
const DOUBT_MS = 60_000

/**
 * Goes on when the clock is set back. If the clock is behind the state at the start, nobody knows
 * how long the server was off: orders from before have ended.
 */
export function createOrderClock({
  fleet,
  now,
  elapsed = () => performance.now(),
}: OrderClockDependencies) {
  const known = Math.max(0, ...fleet.map(latestOf))
  const started = now().getTime()
  const isDoubtful = known - started > DOUBT_MS
  const ended = isDoubtful ? Math.max(0, ...fleet.map(endOf)) : 0
  let base = { at: Math.max(known, started), elapsed: elapsed() }

  function read(): number {
    const [wall, passed] = [now().getTime(), elapsed()]
    const at = Math.max(wall, base.at + passed - base.elapsed)
    base = { at, elapsed: passed }
    return at
  }

  return {
    /** ISO time. */
    isPast(time: string): boolean {
      const at = epochOf(time)
      return at <= ended || at <= read()
    },
  }
}

const latestOf = ({ updated_at, last_seen_at }: Machine): number =>
  Math.max(epochOf(updated_at), last_seen_at === null ? 0 : epochOf(last_seen_at))

const endOf = ({ cycle: { expires_at } }: Machine): number =>
  expires_at === null ? 0 : epochOf(expires_at)

/** A contact looks at its own machine by itself. */
const SWEEP_MS = 30_000

/** For orders whose machines do not come. */
export function startOrderExpiry(
  site: Site<Machine>,
  { isPast = (time) => time <= site.now().toISOString() }: Pick<Surroundings, 'isPast'>,
): Disposable {
  function isDue(machine: Machine): boolean {
    const { expires_at } = machine.cycle
    return expires_at !== null && canExpire(machine) && isPast(expires_at)
  }
  async function endDue() {
    for (const machine of site.machines.peekAll()) {
      if (isDue(machine)) await endOrder(site, machine.mac, isDue)
      if (isEnded(machine, site.now().toISOString())) await endOnceOrder(site, machine.mac)
    }
  }
  const endDueOrLog = () =>
    void endDue().catch((thrown: unknown) =>
      site.log.error(`the end of orders: ${renderError(thrown)}`),
    )
  const timer = setInterval(endDueOrLog, SWEEP_MS).unref()
  endDueOrLog()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

const isEnded = ({ once }: Machine, now: string): boolean =>
  once !== null && (isExpired(once, now) || isOver(once, now))

const endOnceOrder = ({ fleet, now }: Site<Machine>, mac: Machine['mac']) =>
  fleet.update(mac, SYSTEM, (machine) => {
    if (machine === null || !isEnded(machine, now().toISOString())) return null
    const after = endOnce(machine, now().toISOString())
    return { machine: after, events: describeOnceEnd(machine, machine.once) }
  })

/** Unless its newest record says otherwise. */
async function endOrder(
  { fleet, now }: Site<Machine>,
  mac: Machine['mac'],
  isDue: (machine: Machine) => boolean,
): Promise<void> {
  await fleet.update(mac, SYSTEM, (machine) => {
    if (machine === null || !isDue(machine)) return null
    const event = {
      kind: 'machine.order_expired',
      summary: `${mac} is no longer armed, because its order has expired`,
      details: { expires_at: machine.cycle.expires_at },
    }
    return { machine: expireOrder(machine, now().toISOString()), events: [event], slot: 'released' }
  })
}
