/** Waits for what becomes of an order to flash, and of the system that it wrote: answered at its end, or followed as server-sent events. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { H3Event } from 'h3'
import type { Proof, ProofState } from '#engine/inventory/rules/run.ts'
import { toWireRun } from '#fleet/run/rules/run-record.ts'
import { KEEP_ALIVE, renderData, renderEvent } from '#kit/net/rules/event-stream.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { answer, type Answer } from '#kit/web/answers/answers.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import type { RecordedOutcome } from '#fleet/machine/rules/flash-events.ts'
import type { ServerBase, Site } from './site.ts'

export interface AwaitedOrder {
  readonly mac: Mac
  readonly order: string
  readonly until: 'flashed' | 'booted'
  /** Seconds. */
  readonly wait: number
}

interface EndedOrder {
  readonly outcome: string
  /** The run whose first boot was waited for. */
  readonly run?: string
  readonly proof?: Proof | null
}

/** A restore or a deletion ends the wait, too. */
export function awaitOutcome<M extends MachineBase>(
  { line, machines, changes }: ServerBase<M>,
  mac: Mac,
  order: string,
  signal: AbortSignal,
): Promise<RecordedOutcome | null> {
  const { promise, resolve } = Promise.withResolvers<RecordedOutcome | null>()
  const check = () => {
    const machine = machines.peek(mac)
    const outcome = machine === null ? 'deleted' : line.decideOutcome(machine, order)
    if (outcome !== null) resolve(outcome)
  }
  const stop = changes.listen((change) => {
    if (change.topic === 'settings' || (change.topic === 'machine' && change.mac === mac)) check()
  })
  const leave = () => resolve(null)
  signal.addEventListener('abort', leave, { once: true })
  check()
  if (signal.aborted) leave()
  return promise.finally(() => {
    stop()
    signal.removeEventListener('abort', leave)
  })
}

/** Only `signal` ends the wait early. */
export async function awaitEnd(
  { fleet, proof }: Site,
  { mac, order, until, wait }: AwaitedOrder,
  given: AbortSignal,
): Promise<EndedOrder> {
  const signal = AbortSignal.any([AbortSignal.timeout(wait * 1000), given])
  const outcome = (await fleet.awaitOutcome(mac, order, signal)) ?? 'timeout'
  if (outcome !== 'flashed' || until === 'flashed') return { outcome }
  const run = (await proof?.awaitEnd(mac, order, signal)) ?? null
  if (run === null || run.proof === null) return { outcome: signal.aborted ? 'timeout' : outcome }
  return { outcome: nameBoot(run.proof.state), run: run.id, proof: run.proof }
}

const nameBoot = (state: ProofState): string => (state === 'failed' ? 'failed-to-boot' : state)

export const EVENT_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store, no-transform',
  // Without it, nginx buffers the stream.
  'x-accel-buffering': 'no',
}
export const isEventStream = ({ req }: H3Event): boolean =>
  req.headers.get('accept')?.includes('text/event-stream') === true

/** Milliseconds between two looks for news, and after which a silent stream gets a keepalive. */
export const STEP_MS = 1000
export const QUIET_MS = 15_000

/** Events: `armed` with the machine, `run` after each change, `end` with the plain answer. */
export const followOrder = (
  site: Site,
  armed: Readonly<Record<string, unknown>>,
  awaited: AwaitedOrder,
): Answer =>
  answer(200, EVENT_HEADERS, async function* (signal) {
    const encoder = new TextEncoder()
    yield encoder.encode(renderJson('armed', armed))
    for await (const event of follow(site, awaited, signal)) yield encoder.encode(event)
  })

async function* follow(
  site: Site,
  awaited: AwaitedOrder,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const end = awaitEnd(site, awaited, signal)
  let [shown, quiet] = ['', 0]
  for (;;) {
    const ended = await Promise.race([end, pause(signal)])
    const event = renderRun(site, awaited)
    quiet = event === shown ? quiet + STEP_MS : 0
    if (event !== shown) yield event
    shown = event
    if (ended !== null) {
      const machine = site.machines.peek(awaited.mac)
      const wire = machine === null ? null : site.line.toWire(machine)
      return yield renderJson('end', { ...ended, machine: wire })
    }
    if (quiet < QUIET_MS) continue
    quiet = 0
    yield KEEP_ALIVE
  }
}

const pause = (signal: AbortSignal): Promise<null> =>
  sleep(STEP_MS, null, { signal }).catch(() => null)

/** Empty: there is no run yet. */
export function renderRun(
  { runs }: Site,
  { mac, order }: Pick<AwaitedOrder, 'mac' | 'order'>,
): string {
  const [newest] = runs.list({ mac, limit: 1 })
  return newest?.run.order === order ? renderJson('run', toWireRun(newest.run)) : ''
}

export const renderJson = (name: string, value: object): string =>
  renderEvent(name, renderData(JSON.stringify(value)))
