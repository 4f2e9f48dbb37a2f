/** Fetches small documents over HTTP: bounded in size and time, retried if that can help, or only where they have changed. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createFetch, type FetchContext, FetchError } from 'ofetch'
import { isPassing } from './rules/http-range.ts'
import type { HttpTarget } from './rules/image-location.ts'
import {
  codedError,
  decideDelay,
  describeFailure,
  NO_TLS,
  STALLED,
  TOO_LARGE,
} from './rules/network-failure.ts'
import { createHttpClient, type HttpAnswer, type HttpClient } from './http-client.ts'
import { readRetryAfter } from './http-remote.ts'
import type { Environment } from '#kit/host/shell.ts'
import { decodeList } from '#kit/foundation/checksum.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { CAN_WAIT } from './rules/event-stream.ts'

export interface DocumentRequest {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  /** An object is sent as JSON. */
  readonly body?: object | string | undefined
  readonly redirects?: 'follow' | 'answer'
  readonly maxBytes: number
  /** For one try, the body included. */
  readonly timeoutMs: number
  /** How often a failure that may pass is tried again. */
  readonly retries?: number
  /** Milliseconds before the first repeat. */
  readonly retryMs?: number
  /** Ends all of it at once. */
  readonly signal?: AbortSignal | undefined
}

export interface DocumentAnswer extends Pick<HttpAnswer, 'status' | 'headers'> {
  readonly bytes: Buffer
}

/** As `askDocument`, on a connection of its own; `env` names proxies and FLASHER_CA_FILE. */
export async function askOnce(
  env: Environment,
  target: HttpTarget,
  request: DocumentRequest,
): Promise<DocumentAnswer> {
  const { signal = new AbortController().signal, timeoutMs } = request
  // The time for all of it ends before that for one byte, so that it is what is reported.
  await using client = createHttpClient({ env, signal, stallMs: 2 * timeoutMs })
  return await askDocument(client, target, request)
}

/** Any status is an answer. Rejects with the network's errors (`describeFailure`). */
export async function askDocument(
  client: Pick<HttpClient, 'fetch'>,
  target: HttpTarget,
  request: DocumentRequest,
): Promise<DocumentAnswer> {
  const { method = 'GET', headers, body } = request
  const last: { answer: DocumentAnswer | null } = { answer: null }
  const wait = (context: FetchContext) => waitToRetry(context, request, last.answer)
  const { raw } = createFetch({
    async fetch(_, sent) {
      last.answer = null
      last.answer = await load(client, target, request, {
        method,
        headers: Object.fromEntries(new Headers(sent?.headers)),
        ...(typeof sent?.body === 'string' ? { body: sent.body } : {}),
      })
      // All that ofetch has to know. Servers may answer with a status that no Response can have.
      return new Response(null, { status: isPassing(last.answer.status) ? 503 : 200 })
    },
  })
  const options = {
    method,
    headers: { ...(typeof body === 'string' ? PLAIN_TEXT : {}), ...headers },
    body: typeof body === 'object' ? JSON.stringify(body) : body,
    retry: request.retries ?? 0,
    onRequestError: wait,
    onResponseError: wait,
  }
  await raw(target.url, options).catch((thrown: unknown) => {
    if (!(thrown instanceof FetchError)) throw thrown
    // Its message names the address, which may hold a signature; the cause does not.
    if (last.answer === null) throw thrown.cause
  })
  if (last.answer === null) throw new Error('a request ends with an answer or an error')
  return last.answer
}

/** Waits before each repeat; the wait that ofetch offers would not end with the signal. */
async function waitToRetry(
  { options, error }: FetchContext,
  { retries = 0, retryMs = 500, signal }: DocumentRequest,
  answer: DocumentAnswer | null,
): Promise<void> {
  if (error !== undefined && isHopeless(error)) options.retry = false
  if (!options.retry) return
  const asked = answer === null ? null : readRetryAfter(answer)
  const tries = retries - options.retry + 1
  await sleep(asked ?? decideDelay(tries, retryMs, Math.random()), undefined, { signal })
}

const PLAIN_TEXT = { 'content-type': 'text/plain; charset=utf-8' }

function isHopeless(error: Error): boolean {
  const failure = describeFailure(error)
  return failure === null || failure.isFinal || NO_TLS.has(failure.code)
}

async function load(
  client: Pick<HttpClient, 'fetch'>,
  target: HttpTarget,
  { maxBytes, timeoutMs, signal, redirects = 'follow' }: DocumentRequest,
  sent: Parameters<HttpClient['fetch']>[1],
): Promise<DocumentAnswer> {
  const late = AbortSignal.timeout(timeoutMs)
  const ending = signal === undefined ? late : AbortSignal.any([late, signal])
  try {
    const answer = await client.fetch(target, { ...sent, redirects, signal: ending })
    const { status, headers } = answer
    return { status, headers, bytes: await readBody(answer, maxBytes) }
  } catch (thrown) {
    if (!late.aborted || signal?.aborted === true) throw thrown
    throw codedError(STALLED, `no answer within ${timeoutMs / 1000} s`)
  }
}

async function readBody(answer: HttpAnswer, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer.body()) {
    bytes += chunk.length
    if (bytes > maxBytes) {
      throw codedError(TOO_LARGE, `its answer is larger than ${maxBytes} bytes`)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

interface DocumentQuery extends Pick<DocumentRequest, 'maxBytes' | 'timeoutMs' | 'signal'> {
  readonly target: HttpTarget
  /** Safe to show. */
  readonly name: string
  /** Names proxies and FLASHER_CA_FILE. */
  readonly env: Environment
  /** The one of the copy that we hold. */
  readonly etag: string | null
  /** For so many seconds the server may wait for a change of that copy, if it can; absent: it answers at once. */
  readonly waitSeconds?: number
}

interface TextDocument {
  readonly text: string
  readonly etag: string | null
}

/** Null: the copy of that `etag` is up to date. A Fault `input-missing` says why there is none. */
export const fetchDocument = async (query: DocumentQuery): Promise<TextDocument | null> =>
  (await fetchNews(query)).document

interface News {
  /** Null: the copy of that `etag` is up to date. */
  readonly document: TextDocument | null
  /** Whether the server would wait for a change. */
  readonly canWait: boolean
}

export async function fetchNews(query: DocumentQuery): Promise<News> {
  const { target, name, env, etag, waitSeconds = 0, ...given } = query
  const bounds = { ...given, timeoutMs: given.timeoutMs + waitSeconds * 1000 }
  const headers = {
    ...(etag === null ? {} : { 'if-none-match': etag }),
    ...(waitSeconds === 0 ? {} : { prefer: `wait=${waitSeconds}` }),
  }
  const answer = await askOnce(env, target, { ...bounds, headers }).catch((thrown: unknown) => {
    const failure = describeFailure(thrown)
    if (failure === null) throw thrown
    throw unreachable(name, failure.reason, thrown, failure.hint)
  })
  const canWait = answer.headers[CAN_WAIT.name] === CAN_WAIT.value
  if (answer.status === 304 && etag !== null) return { document: null, canWait }
  if (answer.status !== 200) throw unreachable(name, `HTTP ${answer.status}`)
  return { document: { text: decodeList(answer.bytes), etag: etagOf(answer) }, canWait }
}

/** A server answered, only not with the document: a failure of the network has a cause. */
export const isAnswered = (thrown: unknown): boolean =>
  thrown instanceof Fault && thrown.code === 'input-missing' && thrown.cause === undefined

/** It is sent back as it came, so it is taken only in a harmless form. */
function etagOf({ headers: { etag } }: DocumentAnswer): string | null {
  return etag !== undefined && /^(W\/)?"[\x21\x23-\x7e]{0,512}"$/.test(etag) ? etag : null
}

const unreachable = (name: string, reason: string, cause?: unknown, hint?: string) =>
  new Fault('input-missing', `${name} cannot be read: ${reason}`, { cause, hint })
