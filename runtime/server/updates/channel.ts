/** The machines channel: sends each listener snapshots of what it views, as often as load allows. */
import { renderData, renderEvent } from '#kit/net/rules/event-stream.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import type { Change, Changes } from '#kit/host/changes.ts'
import type { Machines } from '#fleet/state/machines.ts'
import type { Runs } from '#fleet/run/runs.ts'
import type { Caller, LogSink } from '#kit/web/answers/caller.ts'
import type { Bounds } from '#kit/web/answers/rules/reach.ts'
import { createListener, type Listener } from './listener.ts'
import { cutPage } from '#kit/web/ui/paging.ts'
import { createRowCaches } from './row-cache.ts'
import { createTicker } from './ticker.ts'

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
  const stopListening = parts.changes.listen(sender.take)

  function leave(key: string, view: SharedView, subscriber: Subscriber): void {
    view.subscribers.delete(subscriber)
    if (view.subscribers.size === 0 && views.get(key) === view) views.delete(key)
    if (views.size > 0) return
    if (sweeper !== null) clearInterval(sweeper)
    sweeper = null
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
      stopListening()
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
      if (views.size === 0) return
      if (topic === 'run') barTicker.schedule()
      // Rows depend on these, too: names of images, whether there is a live system.
      if (SHARED.has(topic)) rows.clear()
      if (SHARED.has(topic) || topic === 'machine') rowTicker.schedule()
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
