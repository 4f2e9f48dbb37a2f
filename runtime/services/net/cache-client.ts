/** Talks to a cache service as its operator does: what it lists, and what it is to list. */
import { Fault, type FaultCode } from '../../core/foundation/fault.ts'
import { parseJson } from '../../core/foundation/json-text.ts'
import { type HttpTarget, parseLocation, renderSafeUrl } from '../../core/net/image-location.ts'
import { describeFailure } from '../../core/net/network-failure.ts'
import { accept, refuse, type Result } from '../../core/foundation/result.ts'
import { createHttpClient, type HttpAnswer, type HttpRequest } from './http-client.ts'
import type { Environment } from '../host/shell.ts'

/** A Fault `upstream-failed` is thrown where no cache answers, and one with its words where it says no. */
export interface CacheClient {
  /** `GET /catalog?all`, as it came. */
  list(): Promise<unknown>
  add(entry: object): Promise<unknown>
  download(name: string, options: { readonly force: boolean }): Promise<void>
  remove(name: string, options: { readonly force: boolean }): Promise<void>
  /** Its no is told, not thrown: not each cache takes pins. */
  pin(holder: string, refs: readonly string[]): Promise<Result<null, Fault>>
}

interface CacheClientOptions {
  /** `http://host:port`. */
  readonly base: string
  readonly token: string | null
  /** Names proxies and FLASHER_CA_FILE; none where it is left out. */
  readonly env?: Environment
  /** For one answer, all of it. */
  readonly timeoutMs?: number
  /** Ends what is asked. */
  readonly signal?: AbortSignal
}

const MAX_BYTES = 16 * 1024 * 1024

export function createCacheClient(options: CacheClientOptions): CacheClient {
  const { base, timeoutMs = 15_000 } = options
  const ask = async (method: HttpRequest['method'], path: string, body?: object) => {
    const late = AbortSignal.timeout(timeoutMs)
    const signal = options.signal === undefined ? late : AbortSignal.any([late, options.signal])
    try {
      const client = { env: options.env ?? {}, signal, stallMs: timeoutMs }
      return await exchange(client, targetOf(options, path), requestOf(method, body))
    } catch (thrown) {
      if (thrown instanceof Fault || options.signal?.aborted === true) throw thrown
      const reason = `no answer within ${timeoutMs / 1000} s`
      throw late.aborted ? silence(base, reason, thrown) : describe(base, thrown)
    }
  }
  const obtain = async (...asked: Parameters<typeof ask>) => {
    const answer = await ask(...asked)
    if (!answer.ok) throw answer.refusal
    return answer.value
  }
  return {
    list: () => obtain('GET', '/catalog?all'),
    add: (fields) => obtain('POST', '/catalog/entries', fields),
    async download(name, { force }) {
      await obtain('POST', `${entry(name)}/download${forced(force)}`)
    },
    async remove(name, { force }) {
      await obtain('DELETE', `${entry(name)}${forced(force)}`)
    },
    async pin(holder, refs) {
      const answer = await ask('POST', '/pins', { holder, refs })
      return answer.ok ? accept(null) : answer
    },
  }
}

async function exchange(
  options: Parameters<typeof createHttpClient>[0],
  target: HttpTarget,
  request: HttpRequest,
): Promise<Result<unknown, Fault>> {
  await using client = createHttpClient(options)
  const answer = await client.fetch(target, request)
  const document = parseJson(await readText(answer))
  return answer.status >= 200 && answer.status < 300
    ? accept(document)
    : refuse(refusalOf(answer.status, document))
}

/** The token goes to no other address than the one that was set. */
const requestOf = (method: HttpRequest['method'], body: object | undefined): HttpRequest => ({
  method,
  redirects: 'answer',
  headers: {
    accept: 'application/json',
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  },
  ...(body === undefined ? {} : { body: JSON.stringify(body) }),
})

function targetOf({ base, token }: CacheClientOptions, path: string): HttpTarget {
  const location = parseLocation(`${base}${path}`)
  if (!location.ok || location.value.kind !== 'http') {
    throw new Fault('input-invalid', `not the address of a cache service: ${renderSafeUrl(base)}`)
  }
  const { target } = location.value
  return token === null ? target : { ...target, authorization: `Bearer ${token}` }
}

async function readText(answer: HttpAnswer): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer.body()) {
    bytes += chunk.length
    if (bytes > MAX_BYTES) {
      throw new Fault('upstream-failed', `the cache's answer is larger than ${MAX_BYTES} bytes`)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

const entry = (name: string) => `/catalog/entries/${encodeURIComponent(name)}`
const forced = (force: boolean) => (force ? '?force=1' : '')

const CODES: Readonly<Record<number, FaultCode>> = {
  400: 'input-invalid',
  401: 'login-required',
  403: 'forbidden',
  404: 'not-found',
  409: 'conflict',
  422: 'input-invalid',
}

function refusalOf(status: number, document: unknown): Fault {
  const hint =
    status === 401 ? 'Run it as the user who runs the cache, or set cache.token.' : undefined
  const words = detailOf(document) ?? `HTTP ${status}`
  return new Fault(CODES[status] ?? 'upstream-failed', words, { hint })
}

function describe(base: string, thrown: unknown): unknown {
  const failure = describeFailure(thrown)
  if (failure === null) return thrown
  const { code, reason, hint } = failure
  return silence(base, code === 'ECONNREFUSED' ? null : reason, thrown, hint)
}

const START = 'Start one with "flasher-cache", or say where it is with [cache] host and port.'

function silence(base: string, reason: string | null, cause: unknown, hint = START): Fault {
  const where = `no cache answers at ${renderSafeUrl(base).replace(/\/$/, '')}`
  return new Fault('upstream-failed', reason === null ? where : `${where}: ${reason}`, {
    hint,
    cause,
  })
}

function detailOf(data: unknown): string | null {
  if (typeof data !== 'object' || data === null || !('detail' in data)) return null
  const { detail } = data
  if (typeof detail === 'string') return detail.slice(0, 1000)
  return Array.isArray(detail) ? detail.map(renderField).join('; ').slice(0, 1000) : null
}

function renderField(field: unknown): string {
  if (typeof field !== 'object' || field === null || !('msg' in field)) return 'invalid'
  const loc = 'loc' in field && Array.isArray(field.loc) ? field.loc.slice(1).join('.') : ''
  return [loc, String(field.msg)].filter(Boolean).join(': ')
}
