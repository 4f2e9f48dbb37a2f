/** The power of the fleet: one request at a time for each BMC, and what was seen last. */
import { refuse, type Result } from '../../kit/foundation/result.ts'
import { createQueue } from '../../kit/host/queue.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import { createDriver, type DriverDependencies, type PowerSubject } from './drivers.ts'
import { actOnPower, type PowerRequest, type PowerTimes } from './power-actor.ts'
import type { PowerBook } from './power-store.ts'
import { NOTHING_LEARNED, queueOf } from './rules/bmc.ts'
import { lasting, passing } from './rules/power.ts'
import type { PowerDone, PowerFailure, PowerSeen } from './rules/power.ts'

interface PowerDependencies extends DriverDependencies {
  readonly book: PowerBook
  /** The limit is asked at each request, so that a changed setting counts at once. */
  times(): PowerTimes
  now(): Date
  /** The listener is called when what is known of a machine has changed. */
  onSeen?(mac: Mac): void
}

export type PowerService = ReturnType<typeof createPower>

/** How many requests may wait for one BMC. */
const MAX_WAITING = 16

/** Creates the service; it ends what is under way when it is given back. */
export function createPower(given: PowerDependencies) {
  const { book, times, now, onSeen } = given
  const ending = new AbortController()
  const seen = new Map<Mac, PowerSeen>()
  const busy = new Map<Mac, number>()
  const queues = new Map<string, BmcQueue>()

  async function act(
    mac: Mac,
    labels: readonly string[],
    request: PowerRequest,
  ): Promise<Result<PowerDone, PowerFailure>> {
    const entry = book.find(mac)
    const asked = `The power of ${mac} was to be controlled`
    if (entry === null) return refuse({ ...NO_WAY, asked, state: 'unknown' })
    const key = queueOf(entry.bmc)
    const queue = queues.get(key) ?? { run: createQueue(1), waiting: 0 }
    if (queue.waiting >= MAX_WAITING) return refuse({ ...FULL, asked, state: 'unknown' })
    queues.set(key, queue)
    queue.waiting += 1
    mark(mac, 1)
    try {
      const context = { times: times(), signal: ending.signal }
      const done = await queue.run(async () => {
        if (ending.signal.aborted) return refuse({ ...ENDED, asked, state: 'unknown' as const })
        const subject = findSubject(book, mac, labels, key)
        if (subject === null) return refuse({ ...CHANGED, asked, state: 'unknown' as const })
        return await actOnPower(createDriver(subject, given), request, context)
      })
      // What broke off because the server ends says nothing of the BMC.
      if (!done.ok && ending.signal.aborted) return refuse({ ...done.refusal, ...ENDED })
      keep(mac, done)
      return done
    } catch (thrown) {
      if (ending.signal.aborted) return refuse({ ...ENDED, asked, state: 'unknown' })
      throw thrown
    } finally {
      queue.waiting -= 1
      if (queue.waiting === 0) queues.delete(key)
      mark(mac, -1)
    }
  }

  function mark(mac: Mac, change: 1 | -1): void {
    const count = (busy.get(mac) ?? 0) + change
    if (count === 0) busy.delete(mac)
    else busy.set(mac, count)
    onSeen?.(mac)
  }

  function keep(mac: Mac, done: Result<PowerDone, PowerFailure>): void {
    const state = done.ok ? done.value.state : done.refusal.state
    const before = seen.get(mac)
    // A failure that read nothing leaves what was seen before it.
    const isKnown = done.ok || state !== 'unknown'
    const last = isKnown ? { state, at: now().toISOString() } : (before ?? NEVER)
    seen.set(mac, { ...last, failure: done.ok ? null : done.refusal })
  }

  return {
    act,
    /** Null: nothing was seen since the server started. */
    lastSeen: (mac: Mac): PowerSeen | null => seen.get(mac) ?? null,
    isBusy: (mac: Mac): boolean => busy.has(mac),
    /** Forgets what was seen, for a machine that is reached in another way now. */
    forget: (mac: Mac): void => void seen.delete(mac),
    /** It is aborted when the service ends. */
    signal: ending.signal,
    async [Symbol.asyncDispose]() {
      ending.abort()
      await Promise.all([...queues.values()].map(({ run }) => run(async () => {})))
    },
  }
}

/** What is contacted when its turn has come; null: the machine is reached in another way by then. */
function findSubject(
  book: PowerBook,
  mac: Mac,
  labels: readonly string[],
  key: string,
): PowerSubject | null {
  const entry = book.find(mac)
  if (entry === null || queueOf(entry.bmc) !== key) return null
  return {
    mac,
    bmc: entry.bmc,
    found: book.findCredential(mac, labels),
    learned: () => book.find(mac)?.learned ?? NOTHING_LEARNED,
    learn: (learned) => book.learn(mac, learned, key),
  }
}

interface BmcQueue {
  readonly run: ReturnType<typeof createQueue>
  waiting: number
}

const NEVER = { state: 'unknown', at: null } as const

const SET_ONE = 'Set one by PUT /machines/{mac}/power.'
const NO_WAY = lasting('unsupported', 'no way to its power is set', SET_ONE)
const FULL = passing(
  'busy',
  `${MAX_WAITING} requests wait for its BMC`,
  'Try again when they are done.',
)
const CHANGED = passing(
  'busy',
  'it is reached in another way since this was asked',
  'Ask for it again.',
)
const ENDED = passing('busy', 'the server ended meanwhile', 'Read its state, and try again.')
