/** One request to a machine server: bounded in size and time, never redirected, and no throw. */
import { setDefaultCACertificates } from 'node:tls'
import { ofetch } from 'ofetch'
import { parseJson } from '../../core/foundation/json-text.ts'
import { describeFailure } from '../../core/net/network-failure.ts'
import { printable } from '../../core/foundation/printable.ts'
import { isRedirect } from '../../core/net/redirect.ts'
import { accept, refuse, type Result } from '../../core/foundation/result.ts'
import { parseRetryAfter } from '../../core/net/retry.ts'
import { readAuthorities } from './authorities.ts'
import type { Environment } from '../host/shell.ts'

/** Why the server did not do what it was asked. */
export interface Rejection {
  /** A clause that is safe to show: `connection refused`, `HTTP 404: no machine record for …`. */
  readonly reason: string
  /** Null: it did not answer at all, or not in time. */
  readonly status: number | null
  /** Trying again can help. */
  readonly isPassing: boolean
  /** How long it asks us to wait, in milliseconds; null: it does not say. */
  readonly waitMs: number | null
}

export interface Sent {
  readonly method?: 'GET' | 'POST'
  /** Sent as JSON. */
  readonly body?: object
  readonly text?: string
}

interface Exchange extends Sent {
  /** Headers that only the server itself may see. */
  readonly secret?: Readonly<Record<string, string>>
  /** For all of it. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

const MAX_ANSWER_BYTES = 2 ** 20
const MAX_DETAIL = 300

/** A yes holds the JSON that came; undefined where none did. */
export async function exchange(url: string, how: Exchange): Promise<Result<unknown, Rejection>> {
  const { timeoutMs, signal } = how
  const late = AbortSignal.timeout(timeoutMs)
  try {
    const answer = await ofetch.raw<unknown, 'stream'>(url, {
      ...requestOf(how),
      responseType: 'stream',
      ignoreResponseError: true,
      retry: 0,
      // Whoever answers for the server could send a machine anywhere, with its token.
      redirect: 'manual',
      signal: AbortSignal.any([late, signal]),
    })
    const text = await readText(answer._data ?? null)
    return answer.ok ? readJson(text) : refuse(noOf(answer, text))
  } catch (thrown) {
    if (signal.aborted) return refuse({ ...SILENT, reason: 'cancelled', isPassing: false })
    if (!late.aborted) return refuse(silence(thrown))
    return refuse({ ...SILENT, reason: `no answer within ${timeoutMs / 1000} s` })
  }
}

/** Has every later connection of this process trust the authorities of FLASHER_CA_FILE as well. */
export async function trustAuthorities(env: Environment): Promise<void> {
  const authorities = await readAuthorities(env)
  if (authorities !== undefined) setDefaultCACertificates(authorities)
}

function requestOf({ method = 'GET', body, text, secret }: Exchange) {
  const sent = body === undefined ? text : JSON.stringify(body)
  const type = body === undefined ? 'text/plain; charset=utf-8' : 'application/json'
  return {
    method,
    headers: {
      accept: 'application/json',
      ...secret,
      ...(sent === undefined ? {} : { 'content-type': type }),
    },
    ...(sent === undefined ? {} : { body: sent }),
  }
}

async function readText(stream: ReadableStream<Uint8Array> | null): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of stream ?? []) {
    bytes += chunk.byteLength
    if (bytes > MAX_ANSWER_BYTES) throw coded('ERR_STALLED', 'its answer has no end')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function readJson(text: string): Result<unknown, Rejection> {
  if (text.trim() === '') return accept(undefined)
  const document = parseJson(text)
  if (document !== undefined) return accept(document)
  return refuse({ ...SILENT, reason: 'its answer is not JSON', status: 200, isPassing: false })
}

const SILENT = { status: null, isPassing: true, waitMs: null } as const

const PASSING: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504])

function noOf({ status, headers }: Response, text: string): Rejection {
  if (isRedirect(status)) {
    return { ...SILENT, reason: `it sends us elsewhere (HTTP ${status})`, status, isPassing: false }
  }
  const detail = detailOf(text)
  const after = headers.get('retry-after') ?? undefined
  return {
    reason: detail === null ? `HTTP ${status}` : `HTTP ${status}: ${detail}`,
    status,
    isPassing: PASSING.has(status),
    waitMs: parseRetryAfter(after, Date.parse(after ?? '') - Date.now()),
  }
}

/** `{"detail": "…"}`, or a list with the fields in question. */
function detailOf(text: string): string | null {
  const read = readJson(text)
  const document = read.ok ? read.value : null
  if (typeof document !== 'object' || document === null || !('detail' in document)) return null
  const { detail } = document
  const words = typeof detail === 'string' ? detail : (JSON.stringify(detail) ?? '')
  return printable(words.trim().slice(0, MAX_DETAIL)) || null
}

/** Node hides the system's own error below one that says only that fetching failed. */
function silence(thrown: unknown): Rejection {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 5; depth += 1) {
    const known = describeFailure(asSystemError(error))
    if (known !== null) return { ...SILENT, reason: known.reason, isPassing: !known.isFinal }
    error = error.cause
  }
  return { ...SILENT, reason: 'it cannot be reached' }
}

/** In the codes that core/net/network-failure.ts has words for. */
function asSystemError(error: Error): Error {
  if (error.name === 'HTTPParserError') return coded('HPE_INVALID', '')
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const own = UNDICI.get(code)
  return own === undefined ? error : coded(own, '')
}

const UNDICI: ReadonlyMap<string, string> = new Map([
  ['UND_ERR_SOCKET', 'ECONNRESET'],
  ['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT'],
  ['UND_ERR_HEADERS_TIMEOUT', 'ETIMEDOUT'],
  ['UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT'],
])

const coded = (code: string, message: string) => Object.assign(new Error(message), { code })
