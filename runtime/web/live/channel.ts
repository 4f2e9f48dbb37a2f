/** The machines channel: snapshots of what each listener looks at, as often as can be borne. */
import { delayUntilNext, intervalOf } from '../../core/foundation/cadence.ts'
import { renderEvent } from '../../core/net/event-stream.ts'
import type { MachineBase } from '../../core/machine/machine.ts'
import { renderError } from '../../core/foundation/fault.ts'
import { refuse } from '../http/faults.ts'
import type { Run } from '../../core/machine/run.ts'
import type { Feed } from '../../services/host/feed.ts'
import type { Machines } from '../../services/state/machines.ts'
import type { Runs } from '../../services/state/runs.ts'
import type { Caller, Log } from '../http/caller.ts'
import { BARS_MS, createBars } from './bars.ts'
import { createListener, type Listener } from './listener.ts'
import { cutPage } from '../ui/paging.ts'
import { createRowCache } from './row-cache.ts'

const SHARED: ReadonlySet<string> = new Set(['catalog', 'settings', 'fetch'])
const STALL_MS = 15_000
const KEEP_ALIVE_MS = 20_000
const SWEEP_MS = 1000

export interface Channel {
  /** `view` null: the whole table; else what the page with that query shows. */
  join(view: URLSearchParams | null, caller: Caller): Promise<ReadableStream<Uint8Array>>
  count(): number
  /** Ends every stream. */
  close(): void
}

interface Subscriber {
  readonly listener: Listener
  readonly caller: Caller
  /** Number of the newest snapshot that it got: one that was begun before never follows it. */
  sent: number
}

/** All who look at the same thing; the frame is made once for them. */
interface View {
  readonly query: URLSearchParams | null
  readonly subscribers: Set<Subscriber>
  /** Whose bars it gets: the machines of its newest frame; null: all. */
  shown: ReadonlySet<string> | null
  /** As all of its subscribers have them; empty: one has just come. */
  bars: string
}

interface ChannelDependencies<M extends MachineBase> {
  readonly views: ChannelViews<M>
  readonly machines: Pick<Machines<M>, 'list'>
  readonly runs: Pick<Runs, 'findLive' | 'listLive'>
  readonly feed: Feed
  readonly log: Pick<Log, 'error'>
  now(): Date
  /** False once the caller's session was ended or is over. */
  isLive(caller: Caller): boolean
}

/** How the machines table looks; synchronous and without I/O. */
export interface ChannelViews<M> {
  /** All machines that a page's query (`q`, `sort`…) means, in its order; `cutPage` does the rest. */
  match(machines: readonly M[], query: URLSearchParams): readonly M[]
  /** One `<tr>` of the machines table. */
  renderRow(machine: M): string
  /** How far a run is, on one line: the element that pages replace by its id. */
  renderBar(run: Run): string
}

export function createChannel<M extends MachineBase>(parts: ChannelDependencies<M>): Channel {
  const { views: looks, machines, runs, feed } = parts
  const views = new Map<string, View>()
  const rows = createRowCache(looks.renderRow, runs.findLive)
  const bars = createBars(runs.listLive, looks.renderBar)
  const clock = () => parts.now().getTime()
  let begun = 0
  let lastAt = -Infinity
  let interval = 0
  let timer: NodeJS.Timeout | null = null
  let [barsAt, barsInterval] = [-Infinity, BARS_MS]
  let barsTimer: NodeJS.Timeout | null = null
  let keptAt = clock()
  let sweeper: NodeJS.Timeout | null = null
  let isClosed = false

  const count = () =>
    [...views.values()].reduce((sum, { subscribers }) => sum + subscribers.size, 0)

  async function makeFrame(view: View): Promise<Uint8Array> {
    const { query } = view
    const all = await machines.list()
    rows.trim(all.length)
    const shown = query === null ? all : cutPage(looks.match(all, query), query).rows
    const wantsAll = query === null || query.get('bars') === 'all'
    view.shown = wantsAll ? null : new Set(shown.map(({ mac }) => mac))
    return Buffer.from(renderEvent('machines-update', rows.render(shown)))
  }

  function offer(subscriber: Subscriber, number: number, frame: Uint8Array): void {
    if (number <= subscriber.sent) return
    subscriber.sent = number
    subscriber.listener.offer('rows', frame, clock())
  }

  /** Resolves to the bytes that went out. */
  async function refresh(view: View): Promise<number> {
    const number = ++begun
    const frame = await makeFrame(view)
    for (const subscriber of view.subscribers) offer(subscriber, number, frame)
    return frame.byteLength * view.subscribers.size
  }

  /** Returns the bytes that went out. */
  function sendBars(): number {
    let sent = 0
    for (const view of views.values()) {
      const { subscribers } = view
      const lines = bars.render(view.shown)
      if (lines === view.bars) continue
      view.bars = lines
      if (lines === '') continue
      const frame = Buffer.from(renderEvent('runs-update', lines))
      for (const { listener } of subscribers) listener.offer('bars', frame, barsAt)
      sent += frame.byteLength * subscribers.size
    }
    return sent
  }

  function tickBars(): void {
    barsTimer = null
    barsAt = clock()
    try {
      const startedAt = performance.now()
      const sent = sendBars()
      barsInterval = Math.max(BARS_MS, intervalOf(sent, performance.now() - startedAt))
    } catch (error) {
      parts.log.error(`live channel: ${renderError(error)}`)
    }
  }

  function scheduleBars(): void {
    if (barsTimer !== null || views.size === 0) return
    barsTimer = setTimeout(tickBars, delayUntilNext(barsAt, clock(), barsInterval)).unref()
  }

  async function tick(): Promise<void> {
    timer = null
    lastAt = clock()
    try {
      const startedAt = performance.now()
      const sizes = await Promise.all([...views.values()].map(refresh))
      const sent = sizes.reduce((sum, size) => sum + size, 0)
      interval = intervalOf(sent, performance.now() - startedAt)
    } catch (error) {
      parts.log.error(`live channel: ${renderError(error)}`)
    }
  }

  function schedule(): void {
    if (timer !== null || views.size === 0) return
    const delay = delayUntilNext(lastAt, clock(), interval)
    timer = setTimeout(() => void tick(), delay).unref()
  }

  const stop = feed.listen((change) => {
    if (change.topic === 'run') scheduleBars()
    // What a row says depends on these, too: names of images, whether there is a live system.
    if (SHARED.has(change.topic)) rows.clear()
    if (SHARED.has(change.topic) || change.topic === 'machine') schedule()
  })

  function leave(key: string, view: View, subscriber: Subscriber): void {
    view.subscribers.delete(subscriber)
    if (view.subscribers.size === 0 && views.get(key) === view) views.delete(key)
    if (views.size > 0) return
    if (sweeper !== null) clearInterval(sweeper)
    sweeper = null
    rows.clear()
  }

  function sweep(): void {
    const now = clock()
    const isKeepAlive = now - keptAt >= KEEP_ALIVE_MS
    if (isKeepAlive) keptAt = now
    for (const { listener, caller } of [...views.values()].flatMap(({ subscribers }) => [
      ...subscribers,
    ])) {
      const since = listener.stalledSince()
      if (!parts.isLive(caller) || (since !== null && now - since >= STALL_MS)) listener.close()
      else if (isKeepAlive) listener.keepAlive()
    }
  }

  return {
    count,
    async join(query, caller) {
      // A browser asks again at once, on a connection that is still open.
      if (isClosed) throw refuse(503, 'the server ends', { headers: { connection: 'close' } })
      const key = query === null ? '' : `?${query.toString()}`
      const view = views.get(key) ?? { query, subscribers: new Set(), shown: null, bars: '' }
      views.set(key, view)
      const listener = createListener(() => leave(key, view, subscriber))
      const subscriber: Subscriber = { caller, listener, sent: 0 }
      sweeper ??= setInterval(sweep, SWEEP_MS).unref()
      // Seated before the snapshot is made: a change from now on reaches it as a later one.
      view.subscribers.add(subscriber)
      view.bars = ''
      const number = ++begun
      try {
        offer(subscriber, number, await makeFrame(view))
      } catch (error) {
        listener.close()
        throw error
      }
      return listener.body
    },
    close() {
      isClosed = true
      stop()
      if (timer !== null) clearTimeout(timer)
      if (barsTimer !== null) clearTimeout(barsTimer)
      if (sweeper !== null) clearInterval(sweeper)
      for (const { subscribers } of views.values())
        for (const { listener } of subscribers) listener.close()
    },
  }
}
