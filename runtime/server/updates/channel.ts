/** The machines channel: sends each listener snapshots of what it views, as often as load allows. */
import { renderData, renderEvent, KEEP_ALIVE } from '#kit/net/rules/event-stream.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import type { Change, Changes } from '#kit/host/changes.ts'
import type { Machines } from '#fleet/state/machines.ts'
import type { Runs } from '#fleet/run/runs.ts'
import type { Caller, LogSink } from '#kit/web/answers/caller.ts'
import type { Bounds } from '#kit/web/answers/rules/rights.ts'
import { cutPage } from '#kit/web/ui/tables.ts'
import { delayUntilNext, intervalOf } from './rules/cadence.ts'

const SHARED: ReadonlySet<string> = new Set(['catalog', 'settings', 'fetch'])
const STALL_MS = 15_000
const KEEP_ALIVE_MS = 20_000
const SWEEP_MS = 1000
/** A bar moves within a second of the post. */
const BARS_MS = 400

export type Channel = ReturnType<typeof createChannel>

interface Subscriber {
  readonly listener: Listener
  readonly caller: Caller
  /** Ends the names of the events of one of several views; empty: there is one. */
  readonly tag: string
  /** Number of its newest snapshot: an older one never follows. */
  sent: number
}

export interface SeenFleet {
  readonly machines: Pick<Machines<MachineBase>, 'list'>
  readonly runs: Pick<Runs, 'listRunning'>
  /** Null: they see all. */
  readonly bounds: Bounds | null
}

/** The message is made once for all subscribers. */
interface SharedView {
  readonly seen: SeenFleet
  readonly query: URLSearchParams | null
  readonly subscribers: Set<Subscriber>
  /** The machines of its newest message; null: all. */
  shown: ReadonlySet<string> | null
  /** As all subscribers have them; empty: one has just come. */
  bars: string
}

interface ViewRequest {
  readonly query: URLSearchParams | null
  readonly tag: string
}

interface SenderDependencies {
  readonly views: ChannelViews<MachineBase>
  readonly machines: Pick<Machines<MachineBase>, 'list'>
  readonly runs: Pick<Runs, 'findRunning'>
  readonly log: Pick<LogSink, 'error'>
  now(): Date
}

interface ChannelDependencies extends SenderDependencies {
  readonly changes: Changes
  /** False once the session has ended. */
  isStillValid(caller: Caller): boolean
}

/** Synchronous, without I/O. */
export interface ChannelViews<M> {
  /** All that the query means, in its order; `cutPage` does the rest. */
  match(machines: readonly M[], query: URLSearchParams): readonly M[]
  /** In one spelling; null: no page. */
  columnsOf(query: URLSearchParams | null): string
  renderRow(machine: M, columns: string): string
  /** Whether time alone has changed the row; absent: never. */
  isLate?(machine: M): boolean
  /** On one line: the element that pages replace by its id. */
  renderBar(run: Run): string
}

/** Disconnects a client after 15 s without a read, or within a second of its session's end. */
export function createChannel(parts: ChannelDependencies) {
  const views = new Map<string, SharedView>()
  const sender = createSender(parts, views)
  let keptAt = parts.now().getTime()
  let sweeper: NodeJS.Timeout | null = null
  let isClosed = false
  /** It listens to changes only while a page is open. */
  let stopListening: (() => void) | null = null

  function leave(key: string, view: SharedView, subscriber: Subscriber): void {
    view.subscribers.delete(subscriber)
    if (view.subscribers.size === 0 && views.get(key) === view) views.delete(key)
    if (views.size > 0) return
    if (sweeper !== null) clearInterval(sweeper)
    sweeper = null
    stopListening?.()
    stopListening = null
    sender.forgetRows()
  }

  /** One of each stream, however many views it has. */
  const list = () => {
    const all = [...views.values()].flatMap(({ subscribers }) => [...subscribers])
    return [...new Map(all.map((subscriber) => [subscriber.listener, subscriber])).values()]
  }

  function sweep(): void {
    const now = parts.now().getTime()
    const isKeepAlive = now - keptAt >= KEEP_ALIVE_MS
    if (isKeepAlive) keptAt = now
    for (const { listener, caller } of list()) {
      const since = listener.stalledSince()
      if (!parts.isStillValid(caller) || (since !== null && now - since >= STALL_MS))
        listener.close()
      else if (isKeepAlive) listener.keepAlive()
    }
  }

  return {
    count: () => list().length,
    /** Ends streams of sessions and tokens that have just ended; others follow within a second. */
    sweep,
    /**
     * Query null: the whole table. Tags end the event names where there are several views. Rejects
     * with a 503 where the server ends.
     */
    async join(queries: readonly ViewRequest[], caller: Caller, seen: SeenFleet) {
      // Browsers reconnect at once, on an open connection.
      if (isClosed) throw refuse(503, 'the server ends', { headers: { connection: 'close' } })
      const listener = createListener(() => {
        for (const end of ends) end()
      })
      sweeper ??= setInterval(sweep, SWEEP_MS).unref()
      stopListening ??= parts.changes.listen(sender.take)
      const seats = queries.map(({ query, tag }) => {
        const key = nameView(query, seen)
        const view = views.get(key) ?? createView(query, seen)
        views.set(key, view)
        const subscriber: Subscriber = { caller, listener, tag, sent: 0 }
        // Before the snapshot: a change from now on follows as a later one.
        view.subscribers.add(subscriber)
        view.bars = ''
        return { view, subscriber, end: () => leave(key, view, subscriber) }
      })
      const ends = seats.map(({ end }) => end)
      try {
        await Promise.all(seats.map(({ view, subscriber }) => sender.refresh(view, [subscriber])))
      } catch (error) {
        listener.close()
        throw error
      }
      return listener.body
    },
    close() {
      isClosed = true
      stopListening?.()
      sender.stop()
      if (sweeper !== null) clearInterval(sweeper)
      for (const { listener } of list()) listener.close()
    },
  }
}

const createView = (query: URLSearchParams | null, seen: SeenFleet): SharedView => ({
  seen,
  query,
  subscribers: new Set(),
  shown: null,
  bars: '',
})

/** Callers who see the same with the same query share a view. */
const nameView = (query: URLSearchParams | null, { bounds }: SeenFleet): string =>
  `${bounds === null ? '' : JSON.stringify(bounds.reach)}${query === null ? '' : `?${query.toString()}`}`

/** Each view once a round. */
function createSender(
  { views: looks, machines, runs, log, now }: SenderDependencies,
  views: ReadonlyMap<string, SharedView>,
) {
  const rows = createRowCaches(looks.renderRow, {
    findRun: runs.findRunning,
    isLate: (machine) => looks.isLate?.(machine) ?? false,
  })
  const renderBar = createBarRenderer(looks.renderBar)
  const clock = () => now().getTime()
  const failed = (error: unknown) => log.error(`live channel: ${renderError(error)}`)
  let begun = 0

  async function makeRows(view: SharedView): Promise<string> {
    const { query, seen } = view
    rows.trim((await machines.list()).length)
    const all = await seen.machines.list()
    const shown = query === null ? all : cutPage(looks.match(all, query), query).rows
    const wantsAll = query === null || query.get('bars') === 'all'
    view.shown = wantsAll ? null : new Set(shown.map(({ mac }) => mac))
    return rows.of(looks.columnsOf(query)).render(shown)
  }

  async function refresh(
    view: SharedView,
    to: Iterable<Subscriber> = view.subscribers,
  ): Promise<number> {
    const number = ++begun
    const messages = createMessages('machines-update', await makeRows(view))
    for (const subscriber of to) {
      if (number <= subscriber.sent) continue
      subscriber.sent = number
      subscriber.listener.offer('rows', subscriber.tag, messages.of(subscriber.tag), clock())
    }
    return messages.byteLength() * view.subscribers.size
  }

  async function refreshAll(): Promise<number> {
    const sizes = await Promise.all([...views.values()].map((view) => refresh(view)))
    return sizes.reduce((sum, size) => sum + size, 0)
  }

  function sendBars(): number {
    let sent = 0
    for (const view of views.values()) {
      const { seen, shown, subscribers } = view
      const running = seen.runs.listRunning().filter(({ mac }) => shown === null || shown.has(mac))
      const lines = running.map(renderBar).join('\n')
      if (lines === view.bars) continue
      view.bars = lines
      if (lines === '') continue
      const messages = createMessages('runs-update', lines)
      for (const { listener, tag } of subscribers) {
        listener.offer('bars', tag, messages.of(tag), clock())
      }
      sent += messages.byteLength() * subscribers.size
    }
    return sent
  }

  const rowTicker = createTicker({ minMs: 0, clock, work: refreshAll, failed })
  const barTicker = createTicker({ minMs: BARS_MS, clock, work: sendBars, failed })
  return {
    refresh,
    forgetRows: rows.clear,
    take({ topic }: Change) {
      if (topic === 'run') barTicker.schedule()
      // Rows depend on these, too: names of images, whether there is a live system.
      if (SHARED.has(topic)) rows.clear()
      if (SHARED.has(topic) || topic === 'machine' || topic === 'contact') rowTicker.schedule()
    },
    stop() {
      rowTicker.stop()
      barTicker.stop()
    },
  }
}

/** Once a change: the cost grows with the runs, not with the fleet. */
function createBarRenderer(render: (run: Run) => string) {
  const bars = new WeakMap<Run, string>()
  return (run: Run): string => bars.getOrInsertComputed(run, () => renderData(render(run)))
}

/** Encoded once, under each name that the event has. */
function createMessages(name: string, lines: string) {
  const messages = new Map<string, Uint8Array>()
  const of = (tag: string): Uint8Array =>
    messages.getOrInsertComputed(tag, () => Buffer.from(renderEvent(`${name}${tag}`, lines)))
  return { of, byteLength: () => messages.values().next().value?.byteLength ?? 0 }
}

/** Runs work soon after it is requested, and less often the more it costs. */
interface TickerOptions {
  readonly minMs: number
  clock(): number
  /** Resolves to the bytes that went out. */
  work(): number | Promise<number>
  failed(error: unknown): void
}

function createTicker({ minMs, clock, work, failed }: TickerOptions) {
  let [lastAt, interval] = [-Infinity, minMs]
  let timer: NodeJS.Timeout | null = null

  async function tick(): Promise<void> {
    timer = null
    lastAt = clock()
    const startedAt = performance.now()
    try {
      const sent = await work()
      interval = Math.max(minMs, intervalOf(sent, performance.now() - startedAt))
    } catch (error) {
      failed(error)
    }
  }

  return {
    schedule() {
      timer ??= setTimeout(() => void tick(), delayUntilNext(lastAt, clock(), interval)).unref()
    },
    stop() {
      if (timer !== null) clearTimeout(timer)
    },
  }
}

/** Rows of deleted machines that may stay. */
const SPARE = 100

interface CachedRow {
  readonly machine: MachineBase
  readonly run: Run | null
  readonly isLate: boolean
  readonly lines: string
}

interface RowSources {
  findRun(mac: string): Run | null
  /** Whether time alone has changed the row. */
  isLate(machine: MachineBase): boolean
}

/** Of columns; people have a few. */
const MAX_CHOICES = 8

export function createRowCaches(
  renderRow: (machine: MachineBase, columns: string) => string,
  beside: RowSources,
) {
  const caches = new Map<string, ReturnType<typeof createRowCache>>()
  return {
    of(columns: string) {
      const known = caches.get(columns)
      if (known !== undefined) return known
      if (caches.size >= MAX_CHOICES) caches.clear()
      const cache = createRowCache((machine: MachineBase) => renderRow(machine, columns), beside)
      caches.set(columns, cache)
      return cache
    },
    /** Empties a cache that holds much more than there are machines. */
    trim(machines: number): void {
      for (const cache of caches.values()) cache.trim(machines)
    },
    clear: () => caches.clear(),
  }
}

function createRowCache(
  renderRow: (machine: MachineBase) => string,
  { findRun, isLate }: RowSources,
) {
  const entries = new Map<string, CachedRow>()

  function linesOf(machine: MachineBase): string {
    const known = entries.get(machine.mac)
    const run = findRun(machine.mac)
    const late = isLate(machine)
    const isKnown =
      known !== undefined &&
      known.run === run &&
      known.isLate === late &&
      isSame(known.machine, machine)
    if (isKnown) return known.lines
    const lines = renderData(renderRow(machine))
    entries.set(machine.mac, { machine, run, isLate: late, lines })
    return lines
  }
  return {
    /** The `data:` lines of these rows. */
    render: (machines: readonly MachineBase[]) =>
      machines.length === 0 ? 'data: ' : machines.map(linesOf).join('\n'),
    trim(machines: number): void {
      if (entries.size > 2 * machines + SPARE) entries.clear()
    },
  }
}

const isSame = (a: MachineBase, b: MachineBase) =>
  a === b || (a.updated_at === b.updated_at && a.last_seen_at === b.last_seen_at)

// One client of a live channel: at most one write at a time, and only the newest message of each view and kind.

/** Rows are sent before bars. */
type UpdateKind = 'rows' | 'bars'

interface PendingUpdate {
  readonly kind: UpdateKind
  readonly message: Uint8Array
  readonly since: number
}

type Listener = ReturnType<typeof createListener>

const COMMENT = new TextEncoder().encode(KEEP_ALIVE)

/** Not h3's `createEventStream`: that keeps every message for a client that does not read. */
function createListener(ended: () => void) {
  const pending = new Map<string, PendingUpdate>()
  let wanted: (() => void) | null = null
  let isClosed = false
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null

  function finish() {
    if (isClosed) return
    isClosed = true
    pending.clear()
    wanted?.()
    ended()
  }

  function send(message: Uint8Array, resolve: () => void): void {
    wanted = null
    controller?.enqueue(message)
    resolve()
  }

  function sendNext(): void {
    if (wanted === null || pending.size === 0) return
    const all = [...pending]
    const [key, next] = all.find(([, { kind }]) => kind === 'rows') ?? all[0] ?? []
    if (key === undefined || next === undefined) return
    pending.delete(key)
    send(next.message, wanted)
  }

  const body = new ReadableStream<Uint8Array>(
    {
      start(made) {
        controller = made
      },
      pull() {
        if (isClosed) return undefined
        return new Promise<void>((resolve) => {
          wanted = resolve
          sendNext()
        })
      },
      cancel: finish,
    },
    { highWaterMark: 0 },
  )

  return {
    body,
    /** Replaces the unsent one of this view and kind. */
    offer(kind: UpdateKind, view: string, message: Uint8Array, now: number): void {
      if (isClosed) return
      const key = `${kind}${view}`
      pending.set(key, { kind, message, since: pending.get(key)?.since ?? now })
      sendNext()
    },
    /** Only where nothing else is waiting. */
    keepAlive(): void {
      if (!isClosed && pending.size === 0 && wanted !== null) send(COMMENT, wanted)
    },
    /** Since when the client takes nothing; null: it keeps up. */
    stalledSince: () =>
      pending.size === 0 ? null : Math.min(...[...pending.values()].map(({ since }) => since)),
    /** Cuts off a client that still has to take a message. */
    close(): void {
      if (isClosed) return
      const isStalled = pending.size > 0 || wanted === null
      finish()
      // An error cuts the connection: an end would wait for the client for ever.
      if (isStalled) controller?.error(new Error('the client does not read'))
      else controller?.close()
    },
  }
}
