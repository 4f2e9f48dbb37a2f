/** The power of the fleet: whose BMC is where, one request at a time for each, and what was seen last. */
import { setTimeout as sleep } from 'node:timers/promises'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { openKeptFile } from '#kit/host/kept-file.ts'
import { createQueue } from '#kit/host/queue.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { PowerAnswer, PowerDriver, PowerVisit } from './driver.ts'
import { createDriver, type DriverDependencies, type PowerSubject } from './drivers.ts'
import {
  changeEntry,
  type Credential,
  EMPTY_BOOK,
  findCredential,
  type FoundCredential,
  type LabelCredential,
  type LearnedBmc,
  listSharing,
  NOTHING_LEARNED,
  type PowerBookContent,
  PowerBookSchema,
  type PowerChange,
  type PowerEntry,
  queueOf,
} from './rules/bmc.ts'
import {
  type BootOnce,
  lasting,
  passing,
  planPower,
  type PowerAction,
  type PowerDone,
  type PowerFailure,
  type PowerPress,
  type PowerReading,
  type PowerSeen,
  type PowerStep,
  type PowerTested,
  type PowerTrouble,
  stateOf,
} from './rules/power.ts'

interface PowerDependencies extends DriverDependencies {
  readonly book: PowerBook
  /** Read at each request, so that a changed setting counts at once. */
  times(): PowerTimes
  now(): Date
  onSeen?(mac: Mac): void
}

export type PowerService = ReturnType<typeof createPower>

/** Requests that may wait for one BMC. */
const MAX_WAITING = 16

/** Disposing ends what is under way. */
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
    const asked = `Power control of ${mac} failed`
    if (entry === null) return refuse({ ...NO_WAY, asked, state: 'unknown' })
    const key = queueOf(entry.bmc)
    const turn = enter(key)
    if (turn === null) return refuse({ ...FULL, asked, state: 'unknown' })
    mark(mac, 1)
    try {
      const context = { times: times(), signal: ending.signal }
      const done = await turn.run(async () => {
        if (ending.signal.aborted) return refuse({ ...ENDED, asked, state: 'unknown' as const })
        const subject = findSubject(book, mac, labels, key)
        if (subject === null) return refuse({ ...CHANGED, asked, state: 'unknown' as const })
        return await actOnPower(createDriver(subject, given), request, context)
      })
      // Broken off because the server ends: says nothing about the BMC.
      if (!done.ok && ending.signal.aborted) return refuse({ ...done.refusal, ...ENDED })
      keep(mac, done)
      return done
    } catch (thrown) {
      if (ending.signal.aborted) return refuse({ ...ENDED, asked, state: 'unknown' })
      throw thrown
    } finally {
      turn.leave()
      mark(mac, -1)
    }
  }

  /** Null: too many wait. */
  function enter(key: string) {
    const queue = queues.get(key) ?? { run: createQueue(1), waiting: 0 }
    if (queue.waiting >= MAX_WAITING) return null
    queues.set(key, queue)
    queue.waiting += 1
    return {
      run: queue.run,
      leave() {
        queue.waiting -= 1
        if (queue.waiting === 0) queues.delete(key)
      },
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
    // A failure that read nothing keeps the former state.
    const isKnown = done.ok || state !== 'unknown'
    const last = isKnown ? { state, at: now().toISOString() } : (before ?? NEVER)
    seen.set(mac, { ...last, failure: done.ok ? null : done.refusal })
  }

  /** Asks once what `change` would lead to, and keeps nothing. */
  async function test(
    mac: Mac,
    labels: readonly string[],
    change: PowerChange,
  ): Promise<Result<PowerTested, PowerTrouble>> {
    const entry = changeEntry(book.find(mac), change)
    let { learned } = entry
    const found = book.findCredential(entry, labels)
    const learn = async (more: Partial<LearnedBmc>) => void (learned = { ...learned, ...more })
    const subject = { mac, bmc: entry.bmc, found, learned: () => learned, learn }
    const signal = AbortSignal.any([ending.signal, AbortSignal.timeout(MAX_TEST_MS)])
    const turn = enter(queueOf(entry.bmc))
    if (turn === null) return refuse(FULL)
    const asked = turn
      .run(() => testDriver(createDriver(subject, given), signal))
      .catch((thrown: unknown) => {
        if (signal.aborted) return refuse(SLOW)
        throw thrown
      })
      .finally(turn.leave)
    // Its turn may come later than that.
    const tried = await Promise.race([asked, failAt(signal)])
    if (!tried.ok) return signal.aborted ? refuse(SLOW) : tried
    return accept({ ...tried.value, certificate: learned.certificate })
  }

  return {
    act,
    test,
    /** Null: nothing seen since the server's start. */
    lastSeen: (mac: Mac): PowerSeen | null => seen.get(mac) ?? null,
    isBusy: (mac: Mac): boolean => busy.has(mac),
    forget: (mac: Mac): void => void seen.delete(mac),
    signal: ending.signal,
    async [Symbol.asyncDispose]() {
      ending.abort()
      await Promise.all([...queues.values()].map(({ run }) => run(async () => {})))
    },
  }
}

/** Called when its turn has come; null: the machine is reached in another way by then. */
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
    found: book.findCredential(entry, labels),
    learned: () => book.find(mac)?.learned ?? NOTHING_LEARNED,
    learn: (learned) => book.learn(mac, learned, key),
  }
}

const failAt = (signal: AbortSignal) =>
  new Promise<Result<never, PowerTrouble>>((resolve) => {
    const fail = () => resolve(refuse(SLOW))
    if (signal.aborted) fail()
    else signal.addEventListener('abort', fail, { once: true })
  })

async function testDriver({ abilities, open }: PowerDriver, signal: AbortSignal) {
  signal.throwIfAborted()
  const opened = await open(signal)
  if (!opened.ok) return opened
  await using visit = opened.value
  const read = await visit.readState()
  if (!read.ok) return read
  const about = await visit.describe?.()
  const said = about?.ok ? about.value : { model: null, firmware: null, lacks: [] }
  const can = [...abilities.presses, ...abilities.boots].filter(
    (each) => !said.lacks.includes(each),
  )
  return accept({ ...said, can, state: abilities.reads ? stateOf(read.value) : null })
}

interface BmcQueue {
  readonly run: ReturnType<typeof createQueue>
  waiting: number
}

const NEVER = { state: 'unknown', at: null } as const

const SET_ONE = 'Set one by PUT /machines/{mac}/power.'
/** A person waits for the answer. */
const MAX_TEST_MS = 30_000
const ASK_AGAIN = 'Check its address, its network and whether its BMC is on.'
const SLOW = passing('unreachable', 'it did not answer within 30 seconds', ASK_AGAIN)
const NO_WAY = lasting('unsupported', 'no power control is set up', SET_ONE)
const FULL = passing(
  'busy',
  `${MAX_WAITING} requests wait for its BMC`,
  'Try again when they are done.',
)
const CHANGED = passing('busy', 'its power settings were changed in the meantime', 'Try again.')
const ENDED = passing(
  'busy',
  'the server was stopped in the meantime',
  'Read its state, and try again.',
)

export interface PowerRequest {
  readonly action: PowerAction
  /** For a boot that this request starts; null: the usual one. */
  readonly boot: BootOnce | null
  /** Reads the state and says whether the rest could be tried. */
  readonly isTrial?: boolean
  /** Asked right before each `off`, maybe long after the request; null: send it. */
  refuseOff?(): PowerTrouble | null
}

export interface PowerTimes {
  /** Milliseconds, as all of these: for one press to take effect, whatever fails meanwhile. */
  readonly limit: number
  readonly poll: number
  /** A press that changed nothing is sent again after this. */
  readonly again: number
  /** Between off and on if nothing can be read. */
  readonly rest: number
}

/** Equal readings in a row that count: BMCs report what was asked before it is so. */
const READINGS = 2

/** The failure says what was asked, what was seen, and what to do. */
export async function actOnPower(
  driver: PowerDriver,
  request: PowerRequest,
  { times, signal }: { readonly times: PowerTimes; readonly signal: AbortSignal },
): Promise<Result<PowerDone, PowerFailure>> {
  await using visits = createVisits(driver, signal)
  const { action, boot } = request
  const watch = { visits, times, signal, request, state: { current: 'unknown' as PowerReading } }
  const failed = (trouble: PowerTrouble, asked: string) =>
    refuse({ ...trouble, asked, state: stateOf(watch.state.current) })

  const read = driver.abilities.reads ? await readAtOnce(watch) : accept('unknown' as const)
  if (!read.ok) return failed(read.refusal, ASKED.read)
  const plan = planPower(action, boot, stateOf(read.value), driver.abilities)
  if (!plan.ok) return failed(plan.refusal, ASKED[action])
  const steps = request.isTrial === true ? [] : plan.value.steps
  const isRead = driver.abilities.reads
  for (const [at, step] of steps.entries()) {
    const made = isRead ? await makeSo(watch, step) : await sendUnseen(watch, step, at > 0)
    if (!made.ok) return failed(made.refusal, ASKED[step.press])
  }
  const isBooted = boot !== null && steps.some((step) => step.press === 'on')
  return accept({
    state: stateOf(watch.state.current),
    confirmed: isRead,
    changed: steps.length > 0,
    boot: isBooted ? bootWord(driver, plan.value.isOwnOrder) : null,
  })
}

/** Without readings a machine rests between off and on. */
async function sendUnseen(watch: PowerWatch, step: PowerStep, isLater: boolean): PowerAnswer<null> {
  if (isLater) await sleep(watch.times.rest, undefined, { signal: watch.signal })
  return await sendOnce(watch, step)
}

const ASKED: Readonly<Record<PowerAction | PowerPress, string>> = {
  on: 'Turning on failed',
  off: 'Turning off failed',
  restart: 'Restarting failed',
  read: 'Reading the power state failed',
}

function bootWord({ abilities }: PowerDriver, isOwnOrder: boolean): PowerDone['boot'] {
  if (isOwnOrder) return 'own'
  return abilities.confirmsBoot ? 'set' : 'sent'
}

interface PowerWatch {
  readonly visits: Visits
  readonly times: PowerTimes
  readonly signal: AbortSignal
  readonly request: PowerRequest
  readonly state: { current: PowerReading }
}

/** Passing troubles are tried again within the limit. */
async function readAtOnce(watch: PowerWatch): PowerAnswer<PowerReading> {
  const deadline = performance.now() + watch.times.limit
  for (;;) {
    const read = await readOnce(watch)
    if (read.ok || !read.refusal.passes || performance.now() >= deadline) return read
    await sleep(watch.times.poll, undefined, { signal: watch.signal })
  }
}

async function readOnce({ visits, state }: PowerWatch): PowerAnswer<PowerReading> {
  const read = await visits.with((visit) => visit.readState())
  if (read.ok) state.current = read.value
  return read
}

/** Presses and reads until it is so; a BMC that restarts meanwhile is asked again. */
async function makeSo(watch: PowerWatch, step: PowerStep): PowerAnswer<null> {
  const deadline = performance.now() + watch.times.limit
  const effort = createEffort(watch, step)
  do {
    const round = await effort.goOn()
    if (!round.ok && !round.refusal.passes) return round
    if (round.ok && round.value === 'so') return accept(null)
  } while (performance.now() < deadline)
  return refuse(effort.trouble() ?? notSo(watch))
}

/** Sends a press again if it changed nothing. */
function createEffort(watch: PowerWatch, step: PowerStep) {
  let [isBootSet, sentAt, readings] = [step.boot === null, -Infinity, 0]
  let trouble: PowerTrouble | null = null

  const isDue = () =>
    readings === 0 &&
    !(step.press === 'on' && watch.state.current === 'turning-on') &&
    performance.now() - sentAt >= watch.times.again

  async function send(): Promise<void> {
    if (!isDue()) return
    const sent = await sendOnce(watch, step, () => (isBootSet = true))
    trouble = sent.ok ? null : sent.refusal
    // After an accepted press, a refused repetition says nothing about the first.
    const isRepeat = sentAt > -Infinity && trouble?.kind === 'refused'
    if (trouble !== null && isRepeat) trouble = { ...trouble, passes: true }
    if (sent.ok || isRepeat) sentAt = performance.now()
  }

  return {
    trouble: () => trouble,
    async goOn(): PowerAnswer<'so' | 'not-yet'> {
      await send()
      if (trouble?.passes === false) return refuse(trouble)
      // A failed press may have worked: answers get lost, too.
      await sleep(watch.times.poll, undefined, { signal: watch.signal })
      const read = await readOnce(watch)
      if (!read.ok) trouble = read.refusal
      if (!read.ok) return read
      readings = read.value === step.press ? readings + 1 : 0
      if (readings < READINGS) return accept('not-yet')
      return isBootSet ? accept('so') : refuse({ ...(trouble ?? BY_ITSELF), passes: false })
    },
  }
}

const BY_ITSELF = lasting(
  'boot-lost',
  'it turned on by itself before its boot device was set',
  'Check what its BMC does after a power loss, then restart the machine.',
)

const notSo = ({ state, times }: PowerWatch): PowerTrouble =>
  passing(
    'not-so',
    `the BMC accepted this, but the machine is still ${state.current.replace('-', ' ')} after ${Math.round(times.limit / 1000)} s`,
    'Check the machine and the log of its BMC.',
  )

/** The boot device right before the press: IPMI forgets it after a minute. */
const sendOnce = (
  { visits, request }: PowerWatch,
  { press, boot }: PowerStep,
  onBootSet: () => void = () => {},
): PowerAnswer<null> =>
  visits.with(async (visit) => {
    const set = boot === null ? accept(null) : await visit.setBoot(boot)
    if (!set.ok) return set
    onBootSet()
    const refusal = press === 'off' ? request.refuseOff?.() : null
    if (refusal) return refuse(refusal)
    return await visit.press(press)
  })

type Visits = ReturnType<typeof createVisits>

/** Replaces the visit after a trouble. */
function createVisits(driver: PowerDriver, signal: AbortSignal) {
  let open: PowerVisit | null = null
  const end = async () => {
    const ending = open
    open = null
    await ending?.[Symbol.asyncDispose]()
  }
  return {
    async with<T>(work: (visit: PowerVisit) => PowerAnswer<T>): PowerAnswer<T> {
      if (open === null) {
        const opened = await driver.open(signal)
        if (!opened.ok) return opened
        open = opened.value
      }
      const done = await work(open)
      if (!done.ok) await end()
      return done
    },
    [Symbol.asyncDispose]: end,
  }
}

export type PowerBook = Awaited<ReturnType<typeof openPowerBook>>

/**
 * Answers come from memory; a change is on disk before it resolves. Rejects with a Fault if the
 * file cannot be read. `share` is awaited after each change and gives it to other servers.
 */
export async function openPowerBook(path: string, share?: () => Promise<void>) {
  const { current, change } = await openKeptFile<PowerBookContent>({
    path,
    schema: PowerBookSchema,
    empty: EMPTY_BOOK,
    named: ['the power settings of machines', 'BMCs'],
    share,
  })
  const find = (mac: Mac): PowerEntry | null => current().machines[mac] ?? null

  return {
    find,
    list: (): readonly (readonly [mac: string, entry: PowerEntry])[] =>
      Object.entries(current().machines),
    findCredential: (entry: PowerEntry, labels: readonly string[]): FoundCredential | null =>
      findCredential(current(), entry, labels),
    listSharing: (mac: Mac): readonly string[] => listSharing(current(), mac),
    save: (changes: ReadonlyMap<Mac, PowerChange>) =>
      change((before) => {
        const machines = { ...before.machines }
        for (const [mac, each] of changes) machines[mac] = changeEntry(machines[mac] ?? null, each)
        return { ...before, machines }
      }),
    async remove(mac: Mac): Promise<boolean> {
      if (find(mac) === null) return false
      await change((before) => {
        const { [mac]: _, ...machines } = before.machines
        return { ...before, machines }
      })
      return true
    },
    /** If the machine still has the BMC of that queue (`queueOf`). */
    learn: (mac: Mac, learned: Partial<LearnedBmc>, queue: string) =>
      change((before) => {
        const entry = before.machines[mac]
        if (entry === undefined || queueOf(entry.bmc) !== queue) return before
        const next = { ...entry, learned: { ...entry.learned, ...learned } }
        return { ...before, machines: { ...before.machines, [mac]: next } }
      }),
    /** Without passwords; with the addresses that those of labels may be sent to. */
    listUsers() {
      const labels = Object.entries(current().labels)
      return {
        all: current().all?.user ?? null,
        labels: Object.fromEntries(labels.map(([label, { user }]) => [label, user])),
        addresses: Object.fromEntries(labels.map(([label, { addresses }]) => [label, addresses])),
      }
    },
    /** Labels with a password: giving one to a machine decides what is sent to its BMC. */
    listLabels: (): readonly string[] => Object.keys(current().labels),
    findForLabel: (label: string): LabelCredential | null =>
      Object.hasOwn(current().labels, label) ? (current().labels[label] ?? null) : null,
    /** `credential` null removes it. */
    saveForLabel: (label: string, credential: LabelCredential | null) =>
      change((before) => {
        const { [label]: _, ...labels } = before.labels
        return {
          ...before,
          labels: credential === null ? labels : { ...labels, [label]: credential },
        }
      }),
    saveForAll: (all: Credential | null) => change((before) => ({ ...before, all })),
  }
}
