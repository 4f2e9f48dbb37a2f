/** A file on a web server: where it is just now, what the server says of it, and how to ask for it. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  describeHead,
  describeProbe,
  mergeRepresentations,
  type Headers,
  type Representation,
} from '../../core/net/http-range.ts'
import type { HttpTarget } from '../../core/net/image-location.ts'
import { describeFailure, type NetworkFailure } from '../../core/net/network-failure.ts'
import { parseRetryAfter, TRIES_WITHOUT_PROGRESS } from '../../core/net/retry.ts'
import { notReachable, readingCancelled } from '../../core/net/source-fault.ts'
import type { HttpAnswer, HttpClient, HttpRequest } from './http-client.ts'

interface RemoteOptions {
  /** Safe to show. */
  readonly name: string
  readonly target: HttpTarget
  readonly client: Pick<HttpClient, 'fetch'>
  readonly signal: AbortSignal
  /** Milliseconds before the first repeat. */
  readonly retryMs: number
}

export interface Remote extends Pick<RemoteOptions, 'name' | 'retryMs'> {
  /** Goes where the last redirect led, and back to the start where that has expired. */
  ask(request: HttpRequest): Promise<HttpAnswer>
  /** What is there; a Fault `input-missing` where nothing can be had. */
  look(): Promise<Representation>
  /** Throws what is no network failure, and a Fault `cancelled` after the signal. */
  failureOf(thrown: unknown): NetworkFailure
  pause(ms: number): Promise<void>
}

/** Signed addresses end with any of these; the original address gives a new one. */
const isExpired = (status: number) => [400, 401, 403, 404, 410].includes(status)

export function createRemote(options: RemoteOptions): Remote {
  const { name, target, client, signal, retryMs } = options
  let current = target

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
    const from = current
    const answer = await fetchFrom(from, request)
    if (from === target || !isExpired(answer.status)) return answer
    answer.drop()
    return fetchFrom(target, request)
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

  const unreachable = (thrown: unknown) => {
    const { reason, hint } = failureOf(thrown)
    return notReachable(name, reason, { hint, cause: thrown })
  }

  /** Waits where the server names a time to come back; any other no is an answer here. */
  async function askPatiently(request: HttpRequest) {
    for (let tries = 1; ; tries += 1) {
      const answer = await ask(request)
      const waitMs = readRetryAfter(answer)
      if (waitMs === null || tries > TRIES_WITHOUT_PROGRESS) return answer
      answer.drop()
      await pause(waitMs)
    }
  }

  /** Null: the server does not answer this; some end the connection at a HEAD. */
  async function head(): Promise<Headers | null> {
    try {
      const answer = await askPatiently({ method: 'HEAD' })
      answer.drop()
      return answer.status === 200 ? answer.headers : null
    } catch (thrown) {
      if (failureOf(thrown).isHangUp) return null
      throw unreachable(thrown)
    }
  }

  /** The one sure way to learn whether a server sends parts. */
  async function probe() {
    try {
      const answer = await askPatiently({ method: 'GET', headers: { range: 'bytes=0-0' } })
      answer.drop()
      return answer
    } catch (thrown) {
      throw unreachable(thrown)
    }
  }

  async function look(): Promise<Representation> {
    const headers = await head()
    const whole = headers === null ? null : describeHead(headers)
    if (whole !== null && headers?.['accept-ranges'] === 'none') return whole
    const answer = await probe()
    const found = mergeRepresentations(whole, describeProbe(answer.status, answer.headers))
    if (found === null) throw notReachable(name, `HTTP ${answer.status}`)
    return found
  }

  return { name, retryMs, ask, look, failureOf, pause }
}

/** Milliseconds that a busy server asks for; null: it does not, or is not busy. */
export function readRetryAfter({ status, headers }: HttpAnswer): number | null {
  if (status !== 429 && status !== 503) return null
  const text = headers['retry-after']
  return parseRetryAfter(text, Date.parse(text ?? '') - Date.now())
}
