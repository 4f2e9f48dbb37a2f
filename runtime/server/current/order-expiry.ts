/** Ends orders to flash that nobody began within `[pxe] armed_hours`, by a clock that is never set back. */
import { epochOf } from '#kit/foundation/instants.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { SYSTEM } from '#fleet/state/journal.ts'
import type { Site } from '#server/routes/site.ts'
import { canExpire, expireOrder } from './rules/disarming.ts'
import type { Machine } from './rules/machine.ts'
import type { Surroundings } from './rules/surroundings.ts'

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
      summary: `${mac} is not armed any more: its order has expired`,
      details: { expires_at: machine.cycle.expires_at },
    }
    return { machine: expireOrder(machine, now().toISOString()), events: [event], slot: 'released' }
  })
}
