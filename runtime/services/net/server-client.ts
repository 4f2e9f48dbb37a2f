/** Talks to a machine server as the machine that it drives: disks, plan, progress, log, the end. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { InventoryDisk } from '../../core/machine/machine.ts'
import type { Mac } from '../../core/machine/mac.ts'
import { accept, type Result } from '../../core/foundation/result.ts'
import { decideDelay } from '../../core/net/retry.ts'
import type { ProgressPost } from '../../core/machine/run.ts'
import { isServerVersion } from '../../core/net/server-address.ts'
import { exchange, type Sent, type Rejection } from './server-exchange.ts'

type Delivery = Result<null, Rejection>

/** Each call is one try, or `until` as many as fit; none throws. */
export interface ServerClient {
  /** `http://host:port`, as everything is asked from it. */
  readonly base: string
  sendInventory(body: InventoryBody, patience?: RetryTime): Promise<Delivery>
  /** The plan as it came; anything at all. */
  fetchPlan(patience?: RetryTime): Promise<Result<unknown, Rejection>>
  sendProgress(report: ProgressPost): Promise<Delivery>
  /** Plain text; its tail is what counts. */
  sendLog(run: string, text: string): Promise<Delivery>
  /** The flash is done: `/done`, and `/status` for servers that have no such route. */
  sendDone(patience?: RetryTime): Promise<Delivery>
  sendFailure(reason: string, patience?: RetryTime): Promise<Delivery>
}

interface InventoryBody {
  readonly disks: readonly InventoryDisk[]
  /** The tree of `lshw -json`. */
  readonly lshw?: object
}

/** For how long a call is tried again while that can help. */
export interface RetryTime {
  readonly ms: number
  /** Delivery before each wait. */
  onRetry?(no: Rejection, waitMs: number): void
}

export interface ServerClientOptions {
  /** Without a slash at its end. */
  readonly base: string
  readonly mac: Mac
  /** Proves that the server itself started this boot; null: it did not say. */
  readonly token: string | null
  /** Ends every call at once. */
  readonly signal: AbortSignal
  /** Milliseconds before the first repeat. */
  readonly retryMs?: number
  /** Milliseconds for one try. */
  readonly timeoutMs?: number
}

const TIMEOUT_MS = 15_000
const RETRY_MS = 1000
const MAX_REASON = 500

export function createServerClient(options: ServerClientOptions): ServerClient {
  const { base, mac, token, signal, retryMs = RETRY_MS, timeoutMs = TIMEOUT_MS } = options
  const at = `${base}/pxe/${mac}`
  const secret = token === null ? {} : { authorization: `Bearer ${token}` }

  const ask = (url: string, sent: Sent = {}) =>
    exchange(url, { ...sent, secret, timeoutMs, signal })

  /** One try after another until it is a yes, a no for good, or too late. */
  async function insist<Value>(
    attempt: () => Promise<Result<Value, Rejection>>,
    { ms, onRetry }: RetryTime,
  ): Promise<Result<Value, Rejection>> {
    const end = performance.now() + ms
    for (let tries = 1; ; tries += 1) {
      const made = await attempt()
      if (made.ok || !made.refusal.isPassing || signal.aborted) return made
      const waitMs = made.refusal.waitMs ?? decideDelay(tries, retryMs, Math.random())
      if (performance.now() + waitMs > end) return made
      onRetry?.(made.refusal, waitMs)
      // The one thing that ends a sleep early is the signal; the next try says so.
      await sleep(waitMs, undefined, { signal }).catch(() => undefined)
    }
  }

  const once: RetryTime = { ms: 0 }
  const tell = (path: string, sent: Sent) => ask(`${at}${path}`, { method: 'POST', ...sent })
  const tellStatus = (body: object) => tell('/status', { body })

  async function tellDone(): Promise<Result<unknown, Rejection>> {
    const told = await tell('/done', {})
    const isOld = !told.ok && (told.refusal.status === 404 || told.refusal.status === 405)
    return isOld ? await tellStatus({ status: 'done' }) : told
  }

  return {
    base,
    sendInventory: async (body, patience = once) =>
      toDelivery(await insist(() => tell('/inventory', { body }), patience)),
    fetchPlan: (patience = once) => insist(() => ask(`${at}/plan`), patience),
    sendProgress: async (report) => toDelivery(await tell('/progress', { body: report })),
    sendLog: async (run, text) =>
      toDelivery(await tell(`/log?run=${encodeURIComponent(run)}`, { text })),
    sendDone: async (patience = once) => toDelivery(await insist(tellDone, patience)),
    sendFailure: async (reason, patience = once) => {
      const body = { status: 'failed', reason: reason.slice(0, MAX_REASON) }
      return toDelivery(await insist(() => tellStatus(body), patience))
    },
  }
}

/**
 * The first of the addresses that answers as our server does, all of them asked at once; null: none.
 * `bases`: the best first.
 */
export async function findServer(
  bases: readonly string[],
  { signal, timeoutMs = 5000 }: { readonly signal: AbortSignal; readonly timeoutMs?: number },
): Promise<string | null> {
  const answers = bases.map(async (base) => {
    const answer = await exchange(`${base}/version`, { timeoutMs, signal })
    return answer.ok && isServerVersion(answer.value)
  })
  for (const [index, base] of bases.entries()) if ((await answers[index]) === true) return base
  return null
}

const toDelivery = (made: Result<unknown, Rejection>): Delivery => (made.ok ? accept(null) : made)
