/** A file on a web server: its current address, its metadata, and how to request it. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  describeHead,
  describeProbe,
  isPassing,
  mergeRepresentations,
  type Representation,
} from './rules/http-range.ts'
import type { HttpTarget } from './rules/image-location.ts'
import { describeFailure, type NetworkFailure } from './rules/network-failure.ts'
import { countTries, parseRetryAfter } from './rules/retry.ts'
import { notReachable, readingCancelled } from './rules/source-fault.ts'
import type { HttpAnswer, HttpClient, HttpRequest } from './http-client.ts'

interface RemoteOptions {
  /** Safe to show. */
  readonly name: string
  readonly target: HttpTarget
  readonly client: Pick<HttpClient, 'fetch'>
  readonly signal: AbortSignal
  /** Milliseconds before the first repeat. */
  readonly retryMs: number
  /** It is given up after one repeat, whatever that brings; absent: it is not. */
  readonly isHasty?: boolean | undefined
  /** HEAD is not asked, as the address is signed for GET alone; absent: it is. */
  readonly isGetOnly?: boolean
  /**
   * Returns a new address of the same file for one that has expired; null: there is none. Absent:
   * the address does not expire.
   */
  readonly renew?: ((url: string) => Promise<string | null>) | undefined
  /** Says what a refusal of the first look means and what helps; absent: the status says enough. */
  readonly explain?: (status: number) => RefusalWords
}

interface RefusalWords {
  readonly reason: string
  readonly hint: string | undefined
}

export interface Remote extends Pick<RemoteOptions, 'name' | 'retryMs'> {
  readonly isHasty: boolean
  /** Goes where the last redirect led, and back to the start where that has expired. */
  ask(request: HttpRequest): Promise<HttpAnswer>
  /** What is there; a Fault `input-missing` where it is unavailable. */
  inspect(): Promise<Representation>
  /** Throws what is no network failure, and a Fault `cancelled` after the signal. */
  failureOf(thrown: unknown): NetworkFailure
  pause(ms: number): Promise<void>
}

/**
 * An expired signed address is answered with any of these; the original address gives a new one.
 */
const isExpired = (status: number) => [400, 401, 403, 404, 410].includes(status)

/** It remembers where the last redirect led. */
export function createRemote(options: RemoteOptions): Remote {
  const { name, client, signal, retryMs, isHasty = false, renew } = options
  let { target } = options
  let current = target
  let renewal: Promise<boolean> | null = null

  async function fetchFrom(from: HttpTarget, request: HttpRequest) {
    try {
      const answer = await client.fetch(from, request)
      current = answer.status < 400 ? answer.target : target
      return answer
    } catch (thrown) {
      current = target // the other server may be the one that is gone
      throw thrown
    }
  }

  async function ask(request: HttpRequest): Promise<HttpAnswer> {
    const [from, start] = [current, target]
    let answer = await fetchFrom(from, request)
    if (!isExpired(answer.status)) return answer
    if (from !== target) {
      answer.drop()
      answer = await fetchFrom(target, request)
    }
    if (renew === undefined || !isExpired(answer.status) || !(await renewFrom(start))) return answer
    answer.drop()
    return fetchFrom(target, request)
  }

  /** Where several requests are refused at once, one of them asks for all. False: there is no new address. */
  async function renewFrom(start: HttpTarget): Promise<boolean> {
    if (target !== start) return true
    renewal ??= replaceTarget(start).finally(() => {
      renewal = null
    })
    return await renewal
  }

  async function replaceTarget({ url }: HttpTarget): Promise<boolean> {
    const fresh = (await renew?.(url)) ?? null
    if (fresh === null || fresh === url) return false
    target = { url: fresh, authorization: null }
    current = target
    return true
  }

  function failureOf(thrown: unknown): NetworkFailure {
    if (signal.aborted) throw readingCancelled(name)
    const failure = describeFailure(thrown)
    if (failure === null) throw thrown
    return failure
  }

  async function pause(ms: number) {
    // The one thing that ends a sleep early is the signal.
    await sleep(ms, undefined, { signal }).catch(() => {
      throw readingCancelled(name)
    })
  }

  const remote = { name, retryMs, isHasty, ask, failureOf, pause }
  const explain = options.explain ?? ((status) => ({ reason: `HTTP ${status}`, hint: undefined }))
  return {
    ...remote,
    inspect: () =>
      inspect(remote, explain, options.isGetOnly === true).catch((thrown: unknown) => {
        const { reason, hint } = failureOf(thrown)
        throw notReachable(name, reason, { hint, cause: thrown })
      }),
  }
}

async function inspect(
  remote: Omit<Remote, 'inspect'>,
  explain: (status: number) => RefusalWords,
  isGetOnly: boolean,
): Promise<Representation> {
  const head = isGetOnly ? null : await askHead(remote)
  const whole = head?.status === 200 ? describeHead(head.headers) : null
  if (whole !== null && head?.headers['accept-ranges'] === 'none') return whole
  // The one sure way to learn whether a server sends parts.
  const probe = await askPatiently(remote, { method: 'GET', headers: { range: 'bytes=0-0' } })
  const found = mergeRepresentations(whole, describeProbe(probe.status, probe.headers))
  if (found !== null) return found
  const { reason, hint } = explain(probe.status)
  throw notReachable(remote.name, reason, { hint })
}

const askHead = (remote: Omit<Remote, 'inspect'>): Promise<HttpAnswer | null> =>
  askPatiently(remote, { method: 'HEAD' }).catch((thrown: unknown) => {
    if (remote.failureOf(thrown).isHangUp) return null // some servers do so at a HEAD
    throw thrown
  })

/** Waits where the server names a time to come back. Any other refusal is an answer here. */
async function askPatiently(
  { ask, pause, isHasty }: Omit<Remote, 'inspect'>,
  request: HttpRequest,
): Promise<HttpAnswer> {
  for (let tries = 1; ; tries += 1) {
    const answer = await ask(request)
    answer.drop()
    const waitMs = readRetryAfter(answer)
    if (waitMs === null || tries > countTries(isHasty) || isTooLong(waitMs, isHasty)) return answer
    await pause(waitMs)
  }
}

/** A source that is not the only one is not waited for where it asks for more than this. */
const HASTY_WAIT_MS = 2000

export const isTooLong = (waitMs: number, isHasty: boolean): boolean =>
  isHasty && waitMs > HASTY_WAIT_MS

/** Returns the milliseconds that a busy server asks for; null: it does not, or is not busy. */
export function readRetryAfter(answer: Pick<HttpAnswer, 'status' | 'headers'>): number | null {
  const { status, headers } = answer
  if (!isPassing(status)) return null
  const text = headers['retry-after']
  return parseRetryAfter(text, Date.parse(text ?? '') - Date.now())
}
