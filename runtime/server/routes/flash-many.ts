/** Flashes a selection: boots its machines from the network, one after the other, and waits for what becomes of each. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Proof } from '#engine/inventory/rules/run.ts'
import { KEEP_ALIVE } from '#kit/net/rules/event-stream.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { By } from '#kit/web/answers/caller.ts'
import type { H3Event } from 'h3'
import { answer, json, type Answer } from '#kit/web/answers/answers.ts'
import {
  awaitEnd,
  EVENT_HEADERS,
  isEventStream,
  QUIET_MS,
  renderJson,
  renderRun,
  STEP_MS,
  type AwaitedOrder,
} from './flash-follow.ts'
import type { BootEachRequest, Site } from './site.ts'

interface ManyResult {
  readonly mac: string
  readonly result: 'done' | 'refused' | 'missing'
  readonly reason: string | null
  /** Only where it was waited for. */
  readonly outcome?: string
  readonly run?: string
  readonly proof?: Proof | null
}

type OneOrder = Pick<AwaitedOrder, 'mac' | 'order'>

interface ManyOrders {
  readonly results: readonly ManyResult[]
  readonly orders: readonly OneOrder[]
  readonly batch: string | null
  readonly until: AwaitedOrder['until']
  /** Seconds. */
  readonly wait: number
  /** Null: each is flashed at its next network boot. */
  readonly boot: BootMany | null
}

interface ManyAsked {
  readonly until?: AwaitedOrder['until'] | undefined
  readonly wait?: number | undefined
  readonly power?: boolean | 'restart' | undefined
  /** Seconds. */
  readonly stagger?: number | undefined
}

interface BootMany {
  readonly isRestart: boolean
  /** Milliseconds between two machines; undefined: the server's setting. */
  readonly pause: number | undefined
  readonly by: By
}

export function decideForesight(
  { power, machines }: Site,
  asked: ManyAsked['power'],
): (mac: Mac) => string | null {
  if (power === undefined || asked === undefined || asked === false) return () => null
  // A machine that is unknown counts as missing, not as refused.
  return (mac) => (machines.peek(mac) === null ? null : power.foresee(mac, asked === 'restart'))
}

export function planMany(
  { until = 'flashed', wait = 0, power = false, stagger }: ManyAsked,
  by: By,
): Pick<ManyOrders, 'until' | 'wait' | 'boot'> {
  const pause = stagger === undefined ? undefined : stagger * 1000
  const boot = power === false ? null : { isRestart: power === 'restart', pause, by }
  return { until, wait, boot }
}

export async function answerMany(site: Site, event: H3Event, many: ManyOrders): Promise<Answer> {
  if (many.wait === 0) {
    bootMany(site, many)
    return json(renderMany(many, many.results))
  }
  if (isEventStream(event)) return followMany(site, many)
  return json(renderMany(many, await awaitMany(site, many, event.req.signal)))
}

export function renderMany(
  { batch }: Pick<ManyOrders, 'batch'>,
  results: readonly ManyResult[],
  isDryRun = false,
) {
  const done = results.filter(({ result }) => result === 'done').length
  const outcomes = countOutcomes(results)
  return {
    dry_run: isDryRun,
    done,
    refused: results.length - done,
    results,
    ...(Object.keys(outcomes).length === 0 ? {} : { outcomes }),
    ...(batch === null ? {} : { batch }),
  }
}

/** Boots all that are armed, and waits for none: each has its event. */
function bootMany(site: Site, { orders, boot }: ManyOrders): void {
  if (boot === null) return
  bootEach(site, orders, boot).catch((thrown: unknown) => {
    site.log.error(`power of machines: ${String(thrown)}`)
  })
}

/** The system on each is looked at before its restart. */
async function bootEach(
  { power, proof }: Site,
  orders: readonly OneOrder[],
  request: BootEachRequest,
): Promise<void> {
  const macs = orders.map(({ mac }) => mac)
  const awaitReady = async (mac: Mac) => proof?.settle(mac)
  await power?.bootEach(macs, { ...request, awaitReady })
}

/** If the wait ends early, no more machines are turned on. */
async function awaitMany(
  site: Site,
  many: ManyOrders,
  signal: AbortSignal,
): Promise<readonly ManyResult[]> {
  const ended = new Map<string, ManyResult>()
  await endAll(site, many, { signal, onEnd: (end) => void ended.set(end.mac, end) })
  return many.results.map((result) => ended.get(result.mac) ?? result)
}

interface EndListener {
  readonly signal: AbortSignal
  onEnd(result: ManyResult): void
}

async function endAll(site: Site, many: ManyOrders, { signal, onEnd }: EndListener): Promise<void> {
  const { orders, until, wait, boot } = many
  const notBooted = new Map<Mac, PromiseWithResolvers<string>>(
    orders.map(({ mac }) => [mac, Promise.withResolvers<string>()]),
  )
  const onFailure = (mac: Mac, why: string) => notBooted.get(mac)?.resolve(why)
  const over = new AbortController()
  const mayBoot = AbortSignal.any([signal, over.signal])
  const booting =
    boot === null ? null : bootEach(site, orders, { ...boot, signal: mayBoot, onFailure })
  const awaited = orders.map(async ({ mac, order }) => {
    const own = new AbortController()
    const end = awaitEnd(site, { mac, order, until, wait }, AbortSignal.any([signal, own.signal]))
    const failed = notBooted.get(mac)?.promise.then((reason) => ({ outcome: 'not-booted', reason }))
    const first = await Promise.race([end, ...(failed === undefined ? [] : [failed])])
    own.abort()
    onEnd({ mac, result: 'done', reason: null, ...first })
  })
  await Promise.all(awaited)
  over.abort()
  await booting
}

function countOutcomes(results: readonly ManyResult[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { outcome } of results) {
    if (outcome !== undefined) counts[outcome] = (counts[outcome] ?? 0) + 1
  }
  return counts
}

/** Events: `armed`, `run` per change, `machine` per ended order, `end` with the plain answer. */
const followMany = (site: Site, many: ManyOrders): Answer =>
  answer(200, EVENT_HEADERS, async function* (signal) {
    const encoder = new TextEncoder()
    yield encoder.encode(renderJson('armed', renderMany(many, many.results)))
    for await (const event of follow(site, many, signal)) {
      const text = typeof event === 'string' ? event : renderJson('end', renderMany(many, event))
      yield encoder.encode(text)
    }
  })

async function* follow(
  site: Site,
  many: ManyOrders,
  signal: AbortSignal,
): AsyncGenerator<string | readonly ManyResult[]> {
  const orders = new Map<string, OneOrder>(many.orders.map((each) => [each.mac, each]))
  const changed = new Set(many.orders)
  const stop = site.changes.listen(
    (change) => {
      const order = change.topic === 'run' ? orders.get(change.mac) : undefined
      if (order !== undefined) changed.add(order)
    },
    ['run'],
  )
  try {
    const ended = new Map<string, ManyResult>()
    const fresh: ManyResult[] = []
    const onEnd = (end: ManyResult) => {
      ended.set(end.mac, end)
      fresh.push(end)
    }
    const all = endAll(site, many, { signal, onEnd }).then(() => true)
    for (let [quiet, isOver] = [0, false]; !isOver;) {
      isOver = await Promise.race([all, sleep(STEP_MS, false, { signal }).catch(() => false)])
      const events = [...listRuns(site, changed), ...fresh.splice(0).map(renderEnd)]
      quiet = events.length === 0 ? quiet + STEP_MS : 0
      yield* events
      if (quiet >= QUIET_MS) [quiet] = [0, yield KEEP_ALIVE]
    }
    yield many.results.map((result) => ended.get(result.mac) ?? result)
  } finally {
    stop()
  }
}

const renderEnd = (result: ManyResult): string => renderJson('machine', result)

/** Empties `changed`. */
function listRuns(site: Site, changed: Set<OneOrder>): readonly string[] {
  const orders = [...changed]
  changed.clear()
  return orders.map((order) => renderRun(site, order)).filter((event) => event !== '')
}
