/** A client for the machine server's API for machines: disks, plan, progress, log, the end. */
import { setTimeout as sleep } from 'node:timers/promises'
import { FEATURES } from '#appliance/contract.ts'
import { MAX_FOR_OLDER_SERVERS } from '#engine/disk/rules/disk.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { accept, type Result } from '#kit/foundation/result.ts'
import { decideDelay } from '#kit/net/rules/retry.ts'
import type { ProgressPost } from '#engine/inventory/rules/run.ts'
import type { DocumentRequest } from '#kit/net/json-client.ts'
import type { Rejection } from './server-exchange.ts'
import { createServerSite, type SiteOptions } from './server-site.ts'

type Delivery = Result<null, Rejection>

export type ServerClient = ReturnType<typeof createServerClient>

interface InventoryBody {
  /** The best first. */
  readonly disks: readonly InventoryDisk[]
  /** The tree of `lshw -json`. */
  readonly lshw?: object
  /** Absent on a BIOS. */
  readonly secure_boot?: boolean
  /** As the machine's own device reports it; absent: none. */
  readonly bmc_address?: string
}

export interface RetryTime {
  readonly ms: number
  onRetry?(rejection: Rejection, waitMs: number): void
}

export interface ServerClientOptions extends SiteOptions {
  readonly mac: Mac
  /** Proves that the server started this boot; null: it gave none. */
  readonly token: string | null
  /** Further query of a request for a plan, about this boot. */
  readonly bootTimes?: () => Promise<string>
  /** Milliseconds. */
  readonly retryMs?: number
}

const MAX_REASON = 500
const KNOWN = Object.values(FEATURES).join(',')
const NO_TIMES = () => Promise.resolve('')

/** Each call is one try, or with a time as many as fit; none throws. */
export function createServerClient(options: ServerClientOptions) {
  const { mac, token, signal, retryMs = 1000, bootTimes = NO_TIMES } = options
  const site = createServerSite(options)
  const authorization = token === null ? null : `Bearer ${token}`
  const ask = (path: string, sent: Pick<DocumentRequest, 'method' | 'body'> = {}) =>
    site.ask(`/pxe/${mac}${path}`, { ...sent, authorization })

  /** Until the server accepts, refuses for good, or time is over. */
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
      // Only the signal ends a sleep early; the next try reports that.
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
    /** `http://host:port` of the server that answered last. */
    get base() {
      return site.current()
    },
    servers: site.servers,
    mac,
    sendInventory,
    fetchPlan: (time = once) =>
      insist(async () => ask(`/plan?features=${KNOWN}${await bootTimes()}`), time),
    /** Unchecked. 404: the machine has no template. */
    offerFirstBoot: () => ask('/first-boot'),
    /** The answer is unchecked, and handed out once. */
    fetchFirstBoot: (given: string, time = once) =>
      insist(() => post('/first-boot', { token: given }), time),
    /** The answer is unchecked. */
    askPeers: (reader: object) => post('/peers', reader),
    sendProgress: (report: ProgressPost) => send('/progress', report),
    /** Plain text; the server keeps the tail. */
    sendLog: (run: string, text: string) => send(`/log?run=${encodeURIComponent(run)}`, text),
    /** `/done`, or `/status` for servers without that route. `run` null: nothing was reported. */
    sendDone: async (time = once, run: string | null = null) =>
      toDelivery(await insist(() => postDone(run), time)),
    sendFailure: (reason: string, time?: RetryTime) =>
      send('/status', { status: 'failed', reason: reason.slice(0, MAX_REASON) }, time),
  }
}

const toDelivery = (answer: Result<unknown, Rejection>): Delivery =>
  answer.ok ? accept(null) : answer
