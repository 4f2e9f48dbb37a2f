/** A client for the machine server's API for machines: disks, plan, progress, log, the end. */
import { setTimeout as sleep } from 'node:timers/promises'
import { FEATURES } from '../../../appliance/contract.ts'
import { MAX_FOR_OLDER_SERVERS } from '../../engine/disk/rules/inventory-disk.ts'
import type { InventoryDisk } from '../../engine/inventory/rules/machine.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import { accept, type Result } from '../../kit/foundation/result.ts'
import { decideDelay } from '../../kit/net/rules/retry.ts'
import type { ProgressPost } from '../../engine/inventory/rules/run.ts'
import { isServerVersion } from '../../kit/net/rules/server-address.ts'
import type { DocumentRequest } from '../../kit/net/json-client.ts'
import { exchange, type Rejection } from './server-exchange.ts'
import type { Environment } from '../../kit/host/shell.ts'
import { linger } from '../../kit/host/watch.ts'

type Delivery = Result<null, Rejection>

export type ServerClient = ReturnType<typeof createServerClient>

interface InventoryBody {
  /** The best first. */
  readonly disks: readonly InventoryDisk[]
  /** The tree of `lshw -json`. */
  readonly lshw?: object
  /** Absent on a BIOS. */
  readonly secure_boot?: boolean
}

/** How long a call is repeated while that can help. */
export interface RetryTime {
  readonly ms: number
  /** This is called before each wait. */
  onRetry?(rejection: Rejection, waitMs: number): void
}

export interface ServerClientOptions {
  /** The address without a slash at its end. */
  readonly base: string
  readonly mac: Mac
  /** Proves that the server itself started this boot; null: it gave none. */
  readonly token: string | null
  /** Names FLASHER_CA_FILE; none where it is left out. */
  readonly env?: Environment
  /** Ends every call at once. */
  readonly signal: AbortSignal
  /** Milliseconds before the first repeat. */
  readonly retryMs?: number
  /** Milliseconds for one try. */
  readonly timeoutMs?: number
}

const MAX_REASON = 500

/**
 * Creates a client of one machine. Each call is one try, or with a time as many as fit; none
 * throws. `timeoutMs` is for one try, `retryMs` for the first pause, both in milliseconds.
 */
export function createServerClient(options: ServerClientOptions) {
  const { base, mac, token, env = {}, signal, retryMs = 1000, timeoutMs = 15_000 } = options
  const authorization = token === null ? null : `Bearer ${token}`
  const ask = (path: string, sent: Pick<DocumentRequest, 'method' | 'body'> = {}) =>
    exchange(`${base}/pxe/${mac}${path}`, { ...sent, env, authorization, timeoutMs, signal })

  /** One try after another until the server accepts, refuses for good, or time is over. */
  async function insist<Value>(
    attempt: () => Promise<Result<Value, Rejection>>,
    { ms, onRetry }: RetryTime,
  ): Promise<Result<Value, Rejection>> {
    const end = performance.now() + ms
    for (let tries = 1; ; tries += 1) {
      const answer = await attempt()
      if (answer.ok || !answer.refusal.isPassing || signal.aborted) return answer
      const waitMs = answer.refusal.waitMs ?? decideDelay(tries, retryMs, Math.random())
      if (performance.now() + waitMs > end) return answer
      onRetry?.(answer.refusal, waitMs)
      // The one thing that ends a sleep early is the signal; the next try says so.
      await sleep(waitMs, undefined, { signal }).catch(() => undefined)
    }
  }

  const once: RetryTime = { ms: 0 }
  const post = (path: string, body?: object | string) => ask(path, { method: 'POST', body })
  const send = async (path: string, body: object | string, time = once) =>
    toDelivery(await insist(() => post(path, body), time))

  /** A server of an older release refuses a long list whole: it gets as many as it takes. */
  let mostDisks = Infinity
  async function sendInventory(body: InventoryBody, time?: RetryTime): Promise<Delivery> {
    const disks = body.disks.slice(0, mostDisks)
    const answer = await send('/inventory', { ...body, disks }, time)
    const isRefused = !answer.ok && answer.refusal.status === 422
    if (!isRefused || disks.length <= MAX_FOR_OLDER_SERVERS) return answer
    mostDisks = MAX_FOR_OLDER_SERVERS
    return sendInventory(body, time)
  }

  async function postDone(run: string | null): Promise<Result<unknown, Rejection>> {
    const query = run === null ? '' : `?run=${encodeURIComponent(run)}`
    const answer = await post(`/done${query}`)
    const isOld = !answer.ok && (answer.refusal.status === 404 || answer.refusal.status === 405)
    return isOld ? await post(`/status${query}`, { status: 'done' }) : answer
  }

  return {
    /** `http://host:port`, as everything is asked from it. */
    base,
    mac,
    sendInventory,
    /** The plan as it came; anything at all. */
    fetchPlan: (time = once) =>
      insist(() => ask(`/plan?features=${Object.values(FEATURES).join(',')}`), time),
    /** Which first-boot template the machine has, and a token for it; 404: none. Anything at all. */
    offerFirstBoot: () => ask('/first-boot'),
    /** The first-boot configuration that the plan names, which is handed out once; anything at all. */
    fetchFirstBoot: (given: string, time = once) =>
      insist(() => post('/first-boot', { token: given }), time),
    sendProgress: (report: ProgressPost) => send('/progress', report),
    /** Plain text; its tail is what counts. */
    sendLog: (run: string, text: string) => send(`/log?run=${encodeURIComponent(run)}`, text),
    /**
     * The flash is done: `/done`, and `/status` for servers that have no such route. `run` null: it
     * reported none.
     */
    sendDone: async (time = once, run: string | null = null) =>
      toDelivery(await insist(() => postDone(run), time)),
    sendFailure: (reason: string, time?: RetryTime) =>
      send('/status', { status: 'failed', reason: reason.slice(0, MAX_REASON) }, time),
  }
}

/**
 * Returns the first of the addresses that answers as our server does within `timeoutMs`
 * milliseconds, all of them asked at once; null where none does. `bases` are sorted, the best
 * first.
 */
export async function findServer(
  bases: readonly string[],
  { signal, env = {}, timeoutMs = 5000 }: Pick<ServerClientOptions, 'signal' | 'env' | 'timeoutMs'>,
): Promise<string | null> {
  const answers = bases.map(async (base) => {
    const answer = await exchange(`${base}/version`, { env, timeoutMs, signal })
    return answer.ok && isServerVersion(answer.value)
  })
  for (const [index, base] of bases.entries()) if ((await answers[index]) === true) return base
  return null
}

interface ServerSearch extends Required<Pick<ServerClientOptions, 'signal' | 'env'>> {
  /** How long they are asked again, in milliseconds. */
  readonly ms: number
  /** Called once, when the first try found none. */
  onWait(): void
}

const TRY_MS = 1000

/** Asks the addresses as `findServer` does until one answers; null: none did in time. */
export async function searchServer(
  bases: readonly string[],
  { signal, env, ms, onWait }: ServerSearch,
): Promise<string | null> {
  const deadline = performance.now() + ms
  for (let tries = 1; ; tries += 1) {
    const found = await findServer(bases, { env, signal })
    if (found !== null || signal.aborted || performance.now() + TRY_MS > deadline) return found
    if (tries === 1) onWait()
    await linger(TRY_MS, signal)
  }
}

const toDelivery = (answer: Result<unknown, Rejection>): Delivery =>
  answer.ok ? accept(null) : answer
