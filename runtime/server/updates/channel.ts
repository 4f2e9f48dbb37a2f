/** The machines channel: sends each listener snapshots of what it views, as often as load allows. */
import { renderData, renderEvent } from '../../kit/net/rules/event-stream.ts'
import type { MachineBase } from '../../engine/inventory/rules/machine.ts'
import { renderError } from '../../kit/foundation/fault.ts'
import { refuse } from '../../kit/web/answers/faults.ts'
import type { Run } from '../../engine/inventory/rules/run.ts'
import type { Change, Changes } from '../../kit/host/changes.ts'
import type { Machines } from '../../fleet/state/machines.ts'
import type { Runs } from '../../fleet/run/runs.ts'
import type { Caller, LogSink } from '../../kit/web/answers/caller.ts'
import type { Bounds } from '../../kit/web/answers/rules/reach.ts'
import { createListener, type Listener } from './listener.ts'
import { cutPage } from '../../kit/web/ui/paging.ts'
import { createRowCaches } from './row-cache.ts'
import { createTicker } from './ticker.ts'

const SHARED: ReadonlySet<string> = new Set(['catalog', 'settings', 'fetch'])
const STALL_MS = 15_000
const KEEP_ALIVE_MS = 20_000
const SWEEP_MS = 1000
/** A bar moves on the page within a second of the post. */
const BARS_MS = 400

export type Channel = ReturnType<typeof createChannel>

interface Subscriber {
  readonly listener: Listener
  readonly caller: Caller
  /** Ends the names of its events: which of the views of one stream they are about; empty: it has one. */
  readonly tag: string
  /** Number of the newest snapshot that it got: one that was begun before never follows it. */
  sent: number
}

/** The machines and runs that somebody sees. */
export interface SeenFleet {
  readonly machines: Pick<Machines<MachineBase>, 'list'>
  readonly runs: Pick<Runs, 'listRunning'>
  /** Null: they see all. */
  readonly bounds: Bounds | null
}

/** All who look at the same thing; the message is made once for them. */
interface SharedView {
  readonly seen: SeenFleet
  readonly query: URLSearchParams | null
  readonly subscribers: Set<Subscriber>
  /** Whose bars it gets: the machines of its newest message; null: all. */
  shown: ReadonlySet<string> | null
  /** The bars as all of its subscribers have them; empty: one has just come. */
  bars: string
}

/** One view of a stream. */
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
  /** Returns false once the caller's session was ended or is over. */
  isStillValid(caller: Caller): boolean
}

/** How the machines table looks; synchronous and without I/O. */
export interface ChannelViews<M> {
  /** All machines that a page's query (`q`, `sort`…) means, in its order; `cutPage` does the rest. */
  match(machines: readonly M[], query: URLSearchParams): readonly M[]
  /** The columns of a page with this query, in one spelling; null: no page. */
  columnsOf(query: URLSearchParams | null): string
  /** One `<tr>` of the machines table with these columns. */
  renderRow(machine: M, columns: string): string
  /** Whether so much time has passed that the row says something else; absent: rows do not follow time. */
  isLate?(machine: M): boolean
  /** How far a run is, on one line: the element that pages replace by its id. */
  renderBar(run: Run): string
}

/**
 * Makes the channel. A client is disconnected when it takes nothing for 15 seconds, or within a second
 * of the end of its session.
 */
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
    /** Ends the streams of sessions and tokens that have just ended; others follow within a second. */
    sweep,
    /**
     * Resolves to the stream of a client, with what it sees. A query of null: the whole table; else what
     * that page shows. Tags end the names of events where there are several. Rejects with a 503 where the
     * server ends.
     */
    async join(queries: readonly ViewRequest[], caller: Caller, seen: SeenFleet) {
      // A browser asks again at once, on a connection that is still open.
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
        // Seated before the snapshot is made: a change from now on reaches it as a later one.
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
    /** Ends every stream. */
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

/** The name of what is looked at: who sees the same with the same query shares it. */
const nameView = (query: URLSearchParams | null, { bounds }: SeenFleet): string =>
  `${bounds === null ? '' : JSON.stringify(bounds.reach)}${query === null ? '' : `?${query.toString()}`}`

/** Makes the messages of all views, each once a round, and hands them to who looks at them. */
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

  /** Resolves to the bytes that went out. */
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

  /** Returns the bytes that went out. */
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
      // What a row says depends on these, too: names of images, whether there is a live system.
      if (SHARED.has(topic)) rows.clear()
      if (SHARED.has(topic) || topic === 'machine') rowTicker.schedule()
    },
    stop() {
      rowTicker.stop()
      barTicker.stop()
    },
  }
}

/** Each bar is rendered once a change: what it costs grows with what runs, never with the fleet. */
function createBarRenderer(render: (run: Run) => string) {
  const bars = new WeakMap<Run, string>()
  return (run: Run): string => bars.getOrInsertComputed(run, () => renderData(render(run)))
}

/** The same event under each name that a stream has for it, encoded once. */
function createMessages(name: string, lines: string) {
  const messages = new Map<string, Uint8Array>()
  const of = (tag: string): Uint8Array =>
    messages.getOrInsertComputed(tag, () => Buffer.from(renderEvent(`${name}${tag}`, lines)))
  return { of, byteLength: () => messages.values().next().value?.byteLength ?? 0 }
}
